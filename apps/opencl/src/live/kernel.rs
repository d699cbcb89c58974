//! Kernels, each launch with arguments of its own.
//!
//! OpenCL says that the arguments of one kernel must not be set from two threads, and that a launch
//! takes those that are set when it is enqueued. A cache that gives many callers one kernel
//! makes them race. So a launch borrows a kernel that nobody else has: an idle one, or a new one.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use opencl3::types::cl_kernel;
use sde::Value;

use super::program::Program;
use crate::Error;
use crate::context::lock;
use crate::driver::RawKernel;

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

    /// A kernel of a program that no engine has.
    pub(super) fn alone(program: &Program, name: &str) -> Result<Self, Error> {
        Self::new(program, None, name)
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
        let first = idle.make()?;
        lock(&idle.raw).push(first);
        program.0.context.note_idle(&idle);
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
    /// If the driver has no more.
    pub fn launch(&self) -> Result<Launch, Error> {
        let idle = lock(&self.0.raw).pop();
        let raw = match idle {
            Some(raw) => raw,
            None => self.0.make()?,
        };
        let view = opencl3::kernel::Kernel::new(raw.address() as cl_kernel);
        Ok(Launch {
            idle: Arc::clone(&self.0),
            raw: Some(raw),
            view: ManuallyDrop::new(view),
            enqueued: AtomicBool::new(false),
        })
    }
}

impl Idle {
    fn make(&self) -> Result<RawKernel, Error> {
        let live = &self.program.0;
        let made = live.context.0.driver.kernel(live.raw(), &self.name);
        made.map_err(|refusal| live.refused(&format!("creating the kernel {}", self.name), refusal))
    }

    pub(crate) fn release(&self) {
        let raw = std::mem::take(&mut *lock(&self.raw));
        let driver = &*self.program.0.context.0.driver;
        raw.into_iter().for_each(|raw| driver.release_kernel(raw));
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
    enqueued: AtomicBool,
}

impl Launch {
    /// The kernel, to set its arguments and to enqueue it, with `ExecuteKernel` for example;
    /// `None` on a simulated driver.
    #[must_use]
    pub fn opencl(&self) -> Option<&opencl3::kernel::Kernel> {
        self.idle.program.0.context.opencl()?;
        self.enqueued();
        Some(&self.view)
    }

    /// Says that it was enqueued, so that the binary is captured again. [`opencl`](Self::opencl) says it
    /// too.
    pub fn enqueued(&self) {
        self.enqueued.store(true, Ordering::Relaxed);
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.enqueued.load(Ordering::Relaxed) {
            self.idle.program.0.note_launch(&self.idle.name);
        }
        let Some(raw) = self.raw.take() else {
            return;
        };
        let mut idle = lock(&self.idle.raw);
        if idle.len() < IDLE {
            idle.push(raw);
        } else {
            drop(idle);
            self.idle.program.0.context.0.driver.release_kernel(raw);
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
