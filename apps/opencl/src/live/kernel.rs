//! Kernels, each launch with arguments of its own.
//!
//! OpenCL says that the arguments of one kernel must not be set from two threads, and that a launch
//! takes those that are set when it is enqueued. Callers that share one cached kernel would
//! race. So a launch borrows a kernel exclusively: an idle one, or a new one.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

use opencl3::types::cl_kernel;
use sde::Value;

use super::program::Program;
use crate::Error;
use crate::driver::RawKernel;
use crate::lock::lock;
use crate::stats::Event;

/// The most idle kernels that are kept: as many as the launching threads of most machines.
const IDLE: usize = 64;

/// A kernel of a live program.
#[derive(Clone)]
pub struct Kernel(Arc<Idle>);

/// Kernels that nobody is launching.
pub(crate) struct Idle {
    program: Program,
    /// The engine's value of the program: the engine does not evict what is held.
    _held: Option<Value<Program>>,
    name: String,
    raw: Mutex<Vec<RawKernel>>,
}

impl Kernel {
    /// A kernel of a program that the engine has.
    pub(crate) fn of(program: &Value<Program>, name: &str) -> Result<Self, Error> {
        Self::new(program, Some(program.clone()), name)
    }

    fn new(program: &Program, held: Option<Value<Program>>, name: &str) -> Result<Self, Error> {
        let there = program.kernel_names();
        if !there.iter().any(|there| there == name) {
            return Err(Error::NoKernel {
                program: program.descriptor().name().to_owned(),
                name: name.to_owned(),
                there: there.to_vec(),
            });
        }
        let idle = Arc::new(Idle {
            program: program.clone(),
            _held: held,
            name: name.to_owned(),
            raw: Mutex::default(),
        });
        let first = idle.make_with_room()?;
        lock(&idle.raw).push(first);
        program.0.context().0.living.note_idle(&idle);
        Ok(Self(idle))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The program it is of.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// A kernel for one launch, or for several in turn: nobody else sets its arguments. Dropping it
    /// returns it with its arguments; the next launch sets its own.
    ///
    /// # Errors
    /// If the driver has no more, even after this context's idle kernels were released.
    /// [`Context::release_unused`](crate::Context::release_unused) releases programs too.
    pub fn launch(&self) -> Result<Launch, Error> {
        let idle = lock(&self.0.raw).pop();
        let raw = match idle {
            Some(raw) => raw,
            None => self.0.make_with_room()?,
        };
        let view = opencl3::kernel::Kernel::new(raw.address() as cl_kernel);
        Ok(Launch {
            idle: Arc::clone(&self.0),
            raw: Some(raw),
            view: ManuallyDrop::new(view),
        })
    }
}

impl Program {
    /// A kernel outside any cache; [`Context::kernel`](crate::Context::kernel) remembers its kernels.
    ///
    /// # Errors
    /// If there is no such kernel, or the driver refuses.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        Kernel::new(self, None, name)
    }
}

impl Idle {
    fn make(&self) -> Result<RawKernel, Error> {
        let live = &self.program.0;
        let made = live.driver().kernel(live.raw(), &self.name);
        made.map_err(|refusal| live.refused(&format!("creating the kernel {}", self.name), refusal))
    }

    /// As [`make`](Self::make); if there is no room, releases idle kernels and tries once more.
    fn make_with_room(&self) -> Result<RawKernel, Error> {
        match self.make() {
            Err(error) if error.is_out_of_resources() => {
                let context = self.program.0.context();
                let why = error.to_string();
                context.0.notes.note(&Event::OutOfResources { why });
                context.release_idle();
                self.make()
            }
            outcome => outcome,
        }
    }

    pub(crate) fn release(&self) {
        let raw = std::mem::take(&mut *lock(&self.raw));
        raw.into_iter().for_each(|raw| self.give_back(raw));
    }

    fn give_back(&self, raw: RawKernel) {
        let live = &self.program.0;
        if live.driver().may_be_queued(&raw) {
            live.code.note_perhaps_queued(&self.name);
        }
        live.driver().release_kernel(raw);
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.0.name)
            .field("program", &self.0.program)
            .finish()
    }
}

/// A kernel that is borrowed exclusively, until this is dropped.
pub struct Launch {
    idle: Arc<Idle>,
    /// `None` only during the drop.
    raw: Option<RawKernel>,
    /// The raw kernel as opencl3 has it, not owned.
    view: ManuallyDrop<opencl3::kernel::Kernel>,
}

impl Launch {
    /// The kernel, to set its arguments and to enqueue it, with `ExecuteKernel` for example;
    /// `None` on a simulated driver. Call [`enqueued`](Self::enqueued) afterwards.
    #[must_use]
    pub fn opencl(&self) -> Option<&opencl3::kernel::Kernel> {
        self.idle.program.0.context().opencl()?;
        Some(&self.view)
    }

    /// Notes that the kernel was enqueued, so that the binary is captured again, with the code that the driver
    /// finishes at the first launch. Without this call only that capture is lost.
    ///
    /// The note covers the kernel, not the size of its work groups. With a driver that compiles for each
    /// size, the kept binary has code for the sizes launched before the capture.
    pub fn enqueued(&self) {
        self.idle.program.0.code.note_launch(&self.idle.name);
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        let Some(raw) = self.raw.take() else {
            return;
        };
        let mut idle = lock(&self.idle.raw);
        if idle.len() < IDLE {
            idle.push(raw);
        } else {
            drop(idle);
            self.idle.give_back(raw);
        }
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("kernel", &self.idle.name)
            .finish_non_exhaustive()
    }
}
