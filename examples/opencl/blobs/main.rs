//! A program that keeps binaries itself, in files: oneDNN's cache blobs.
//!
//! The first run builds and writes a file. The next one makes the program from that. A file that is damaged is told from a whole one,
//! and the program is built. A database or a server in place of the files takes nothing else.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs, ptr};

use sde::Sde;
use sde::opencl::opencl3::command_queue::CommandQueue;
use sde::opencl::opencl3::context::Context as ClContext;
use sde::opencl::opencl3::kernel::ExecuteKernel;
use sde::opencl::opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use sde::opencl::opencl3::types::CL_TRUE;
use sde::opencl::{Context, Descriptor, Launch, Program, ProgramSpec, devices};

const SOURCE: &str = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("usage: blobs FOLDER")?;
    let found = devices()?;
    let opencl = ClContext::from_device(&found[0].device)?;
    let context = Context::on(Arc::new(opencl)).build()?;
    let twice = context.describe(0, &ProgramSpec::source(SOURCE).named("twice"))?;
    // The name stands for all that a build reads: with another driver it is another file.
    let id = twice.blob_id().map(|byte| format!("{byte:02x}")).concat();
    let file = Path::new(&folder).join(id);

    let kept = from_file(&context, &twice, &file);
    let program = match &kept {
        Ok(program) => program.clone(),
        Err(why) => {
            println!("built: {why}");
            let built = context.program(&Sde::new(), 0, &twice)?;
            Program::clone(&built)
        }
    };
    println!(
        "{:?}",
        launch(&context, &program.kernel("twice")?.launch()?)?
    );
    if kept.is_err() {
        // After the launch: many drivers finish code only then. A reader sees all of a file or nothing.
        let unfinished = file.with_extension(std::process::id().to_string());
        fs::write(&unfinished, program.blob()?)?;
        fs::rename(unfinished, file)?;
    }
    println!("{} builds", context.stats().builds);
    Ok(())
}

fn from_file(
    context: &Context,
    twice: &Descriptor,
    file: &Path,
) -> Result<Program, Box<dyn Error>> {
    Ok(context.from_blob(0, twice, &fs::read(file)?)?)
}

#[allow(
    unsafe_code,
    reason = "kernels are launched by OpenCL's calls, which can't see what a kernel does"
)]
fn launch(context: &Context, launch: &Launch) -> Result<[f32; 3], Box<dyn Error>> {
    let opencl = context.opencl().ok_or("the driver is simulated")?;
    let kernel = launch.opencl().ok_or("the driver is simulated")?;
    let mut numbers = [1.0, 2.0, 3.0];
    // SAFETY: the device is one of the context; the buffer is as long as what is written and read, which is awaited; each item of the
    // kernel touches one element of it.
    unsafe {
        let queue = CommandQueue::create_with_properties(opencl, opencl.devices()[0], 0, 0)?;
        let (access, length) = (CL_MEM_READ_WRITE, numbers.len());
        let mut x = Buffer::<f32>::create(opencl, access, length, ptr::null_mut())?;
        queue.enqueue_write_buffer(&mut x, CL_TRUE, 0, &numbers, &[])?;
        ExecuteKernel::new(kernel)
            .set_arg(&x)
            .set_global_work_size(length)
            .enqueue_nd_range(&queue)?;
        launch.enqueued();
        queue.enqueue_read_buffer(&x, CL_TRUE, 0, &mut numbers, &[])?;
    }
    Ok(numbers)
}
