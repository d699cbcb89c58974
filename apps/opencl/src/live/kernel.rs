//! Kernels, each launch with arguments of its own.
//!
//! OpenCL says that the arguments of one kernel must not be set from two threads, and that a launch
//! takes those that are set when it is enqueued. A cache that gives many callers one kernel
//! makes them race. So a launch borrows a kernel that nobody else has: an idle one, or a new one.

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

/// How many kernels wait for a launch: as many as there are threads on most machines that launch.
const IDLE: usize = 64;

/// A kernel of a live program.
#[derive(Clone)]
pub struct Kernel(Arc<Idle>);

/// Kernels that nobody is launching.
pub(crate) struct Idle {
    program: Program,
    /// The same as the engine has it, which does not let go what somebody holds.
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

    /// A kernel for one launch, or for several in turn: its arguments are nobody else's. It is given back
    /// when it is dropped, with the arguments it has; the next launch sets its own.
    ///
    /// # Errors
    /// If the driver has no more, also after the kernels of this context that wait for a launch were let go.
    /// [`Context::release_unused`](crate::Context::release_unused) lets go programs too.
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
    /// A kernel that no cache knows of; [`Context::kernel`](crate::Context::kernel) remembers what it gives.
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

    /// The same, once more without the kernels that nobody launches, if there is no room for one.
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

/// A kernel that nobody else has, until it is dropped.
pub struct Launch {
    idle: Arc<Idle>,
    /// Always there until it is dropped.
    raw: Option<RawKernel>,
    /// The same, for opencl3. It does not own it.
    view: ManuallyDrop<opencl3::kernel::Kernel>,
}

impl Launch {
    /// The kernel, to set its arguments and to enqueue it, with `ExecuteKernel` for example;
    /// `None` on a simulated driver. Say [`enqueued`](Self::enqueued) when it was.
    #[must_use]
    pub fn opencl(&self) -> Option<&opencl3::kernel::Kernel> {
        self.idle.program.0.context().opencl()?;
        Some(&self.view)
    }

    /// Says that it was enqueued, so that the binary is captured again, with the code that the driver
    /// finishes at the first launch. Who does not say it loses no more than that.
    ///
    /// It is noted for the kernel, whatever the size of its work groups. A driver that compiles for each
    /// size has code in the kept binary for those it was launched with before that was captured.
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
