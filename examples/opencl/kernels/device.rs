//! A device: its buffers, its kernels, their launches.
//!
//! Launches wait until they are finished, which is slower than it must be and easy to measure.

#![allow(
    unsafe_code,
    reason = "kernels are launched by OpenCL's calls, which can't see what a kernel does"
)]

use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context as ClContext;
use opencl3::error_codes::ClError;
use opencl3::memory::{self, Buffer, ClMem};
use opencl3::types::{CL_TRUE, cl_mem};
use sde::opencl::{Context, DeviceIdentity, DeviceInfo, Kernel, ProgramSpec, Settings};
use sde::{Fingerprint, Handle, Value};

use crate::failure::Failure;
use crate::meter::{Family, Meter};
use crate::source::Element;

/// What can go wrong between a kernel and its results.
#[derive(Debug)]
pub struct DeviceError(String);

impl std::fmt::Display for DeviceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DeviceError {}

fn failed(doing: &str) -> impl Fn(ClError) -> DeviceError {
    move |error| DeviceError(format!("{doing}: {error}"))
}

/// A device with its kernels. What it computes is known by what the device is.
#[derive(Clone, Fingerprint)]
pub struct Gpu {
    identity: DeviceIdentity,
    #[fingerprint(skip)]
    inside: Arc<Inside>,
}

struct Inside {
    context: Context,
    queue: CommandQueue,
    has_doubles: bool,
    /// How many items may run together.
    largest_group: usize,
    meter: Mutex<Meter>,
}

impl Gpu {
    /// The device of this number, with binaries kept as the settings say.
    pub fn open(number: usize, settings: Settings) -> Result<Self, Failure> {
        let begun = Instant::now();
        let found = sde::opencl::devices()?;
        let found = found.get(number).ok_or_else(|| {
            let there = found.len();
            Failure::of_input(format!(
                "there is no device {number}; --devices lists all {there}"
            ))
        })?;
        let opencl = ClContext::from_device(&found.device);
        let opencl = Arc::new(opencl.map_err(Failure::of_calculation)?);
        // SAFETY: the device is the one of the context.
        let queue =
            unsafe { CommandQueue::create_with_properties(&opencl, found.device.id(), 0, 0) };
        Ok(Self {
            identity: found.info.identity.clone(),
            inside: Arc::new(Inside {
                context: Context::on(opencl).keep(settings).build()?,
                queue: queue.map_err(Failure::of_calculation)?,
                has_doubles: found.device.double_fp_config().is_ok_and(|bits| bits != 0),
                largest_group: found.device.max_work_group_size().unwrap_or(1),
                meter: Mutex::new(Meter::since(begun)),
            }),
        })
    }

    pub fn context(&self) -> &Context {
        &self.inside.context
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.inside.context.devices()[0]
    }

    /// The types of numbers that it computes with.
    pub fn elements(&self) -> &'static [Element] {
        match self.inside.has_doubles {
            true => &[Element::Float, Element::Double],
            false => &[Element::Float],
        }
    }

    /// Whether it has groups for these tiles.
    pub fn check_tiles(&self, tiles: &[usize]) -> Result<(), Failure> {
        let most = self.inside.largest_group;
        match tiles.iter().find(|tile| **tile * **tile > most) {
            None => Ok(()),
            Some(tile) => Err(Failure::of_input(format!(
                "a tile of {tile} takes {} items at once, and this device has {most}; give smaller ones to \
                 --tiles",
                tile * tile
            ))),
        }
    }

    pub fn meter(&self) -> MutexGuard<'_, Meter> {
        let meter = self.inside.meter.lock();
        meter.unwrap_or_else(PoisonError::into_inner)
    }

    /// Kernels of one family, in order: each remembered, loaded or built, several at a time.
    pub fn kernels(
        &self,
        sde: &Handle,
        family: Family,
        programs: &[ProgramSpec],
    ) -> Result<Vec<Value<Kernel>>, sde::opencl::Error> {
        let (begun, before, context) = (Instant::now(), self.context().stats(), self.context());
        let programs = programs.iter().map(|spec| context.describe(0, spec));
        let programs = programs.collect::<Result<Vec<_>, _>>()?;
        // They stay for as long as `live` does, and the kernels are had of them.
        let live = context.programs(sde, 0, &programs).into_iter();
        let _live = live.collect::<Result<Vec<_>, _>>()?;
        let kernels = programs.iter();
        let kernels = kernels.map(|program| context.kernel(sde, 0, program, family.name()));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let (took, after) = (begun.elapsed(), context.stats());
        let built = after.builds - before.builds;
        let loaded = after.loads - before.loads;
        let ready = (kernels.len() as u64).saturating_sub(built + loaded);
        let had = [built, loaded, ready];
        self.meter().had(family, had, took);
        Ok(kernels)
    }

    /// Numbers on the device.
    pub fn buffer<T>(&self, values: &[T]) -> Result<Numbers<T>, DeviceError> {
        let mut numbers = self.empty(values.len())?;
        if !values.is_empty() {
            let queue = &self.inside.queue;
            // SAFETY: the buffer is as long as the values; the call returns when it has copied them.
            let written =
                unsafe { queue.enqueue_write_buffer(&mut numbers.buffer, CL_TRUE, 0, values, &[]) };
            written.map_err(failed("writing to the device"))?;
        }
        Ok(numbers)
    }

    /// Room for so many numbers, of any value.
    pub fn empty<T>(&self, length: usize) -> Result<Numbers<T>, DeviceError> {
        let context = self.context().opencl();
        let context = context.ok_or_else(|| DeviceError("this is no device".to_owned()))?;
        let flags = memory::CL_MEM_READ_WRITE;
        // OpenCL has no empty buffers.
        let size = length.max(1);
        // SAFETY: no memory of the host is given.
        let buffer = unsafe { Buffer::create(context, flags, size, ptr::null_mut()) };
        let buffer = buffer.map_err(failed("making a buffer"))?;
        Ok(Numbers { buffer, length })
    }

    /// What is in a buffer.
    pub fn read<T: Copy + Default>(&self, numbers: &Numbers<T>) -> Result<Vec<T>, DeviceError> {
        let mut values = vec![T::default(); numbers.length];
        if !values.is_empty() {
            let queue = &self.inside.queue;
            // SAFETY: the buffer is as long as the values; the call returns when it has copied them.
            // Any bytes are numbers of the types that are used here.
            let read =
                unsafe { queue.enqueue_read_buffer(&numbers.buffer, CL_TRUE, 0, &mut values, &[]) };
            read.map_err(failed("reading from the device"))?;
        }
        Ok(values)
    }

    /// Launches a kernel, and waits until it is finished.
    ///
    /// # Safety
    /// The arguments must be those of the kernel, their buffers alive, and it must stay inside of them.
    pub unsafe fn launch(
        &self,
        family: Family,
        kernel: &Kernel,
        arguments: &[Argument],
        global: &[usize],
        local: &[usize],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let begun = Instant::now();
        let launch = kernel.launch()?;
        let Some(own) = launch.opencl() else {
            return Err("this is no device".into());
        };
        for (place, argument) in (0..).zip(arguments) {
            // SAFETY: the caller says that these are the kernel's arguments; a handle of memory and
            // an `int` are given as what they are.
            let set = unsafe {
                match argument {
                    Argument::Buffer(handle) => own.set_arg(place, handle),
                    Argument::Int(value) => own.set_arg(place, value),
                }
            };
            set.map_err(failed("setting an argument"))?;
        }
        let queue = &self.inside.queue;
        let dimensions = u32::try_from(global.len())?;
        // SAFETY: both sizes have as many numbers as there are dimensions; the rest is the caller's.
        let enqueued = unsafe {
            queue.enqueue_nd_range_kernel(
                own.get(),
                dimensions,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                &[],
            )
        };
        enqueued.map_err(failed("launching a kernel"))?;
        launch.enqueued();
        queue.finish().map_err(failed("waiting for a kernel"))?;
        self.meter().launched(family, begun.elapsed());
        Ok(())
    }
}

/// Numbers on a device.
pub struct Numbers<T> {
    buffer: Buffer<T>,
    length: usize,
}

impl<T> Numbers<T> {
    pub fn argument(&self) -> Argument {
        Argument::Buffer(self.buffer.get())
    }
}

/// An argument of a kernel.
pub enum Argument {
    Buffer(cl_mem),
    Int(i32),
}
