//! Getting programs and kernels, and releasing them.

use sde::{Handle, Value};

use super::{Context, Keeping};
use crate::Error;
use crate::apps;
use crate::capture::{self, Ended, let_go};
use crate::failed::given;
use crate::identity::Descriptor;
use crate::live::{Kernel, Program};
use crate::make;
use crate::stats::Event;

impl Context {
    /// A live program: remembered, waited for, made from a kept binary, or built.
    ///
    /// `sde` is the engine, or the handle of an app that needs the program. If a resource is
    /// lacking, programs and kernels that are not held are released, and the build is tried once more.
    ///
    /// A program that is [not cacheable](Descriptor::is_cacheable) is built each time.
    ///
    /// # Errors
    /// If it does not build: the same error for all callers, until the app's cache is cleaned. If it needs a build
    /// and an included file has changed since it was described. If the driver refuses, or resources are still
    /// lacking.
    pub fn program(
        &self,
        sde: &Handle,
        device: usize,
        program: &Descriptor,
    ) -> Result<Value<Program>, Error> {
        self.with_room(sde, || self.program_once(sde, device, program))
    }

    /// As [`program`](Self::program), without the second try.
    pub(crate) fn program_once(
        &self,
        sde: &Handle,
        device: usize,
        program: &Descriptor,
    ) -> Result<Value<Program>, Error> {
        if program.is_cacheable().is_ok() {
            let outcome = apps::program_build.call(sde, self, device, program);
            if let Some(outcome) = given(outcome, program, |found| found.descriptor()) {
                return outcome;
            }
        }
        Ok(Value::new(make::program(sde, self, device, program)?))
    }

    /// A kernel of a program, which is made as [`program`](Self::program) makes it.
    ///
    /// If the program is [not cacheable](Descriptor::is_cacheable), each call builds it: call `program` once,
    /// and take its kernels by [`Program::kernel`].
    ///
    /// # Errors
    /// As [`program`](Self::program), and if the program has no such kernel.
    pub fn kernel(
        &self,
        sde: &Handle,
        device: usize,
        program: &Descriptor,
        name: &str,
    ) -> Result<Value<Kernel>, Error> {
        self.with_room(sde, || {
            if program.is_cacheable().is_ok() {
                let outcome = apps::kernel.call(sde, self, device, program, name);
                let own = given(outcome, program, |found| found.program().descriptor());
                if let Some(outcome) = own {
                    return outcome;
                }
            }
            let program = self.program_once(sde, device, program)?;
            Ok(Value::new(Kernel::of(&program, name)?))
        })
    }

    fn with_room<T>(&self, sde: &Handle, have: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        match have() {
            Err(error) if error.is_out_of_resources() => {
                let why = error.to_string();
                self.0.notes.note(&Event::OutOfResources { why });
                self.release_unused(sde);
                have()
            }
            outcome => outcome,
        }
    }

    /// The limit of the bytes of programs that may be [live](crate::ContextBuilder::memory_limit).
    #[must_use]
    pub fn memory_limit(&self) -> usize {
        self.0.memory_limit
    }

    /// Releases the programs and kernels that an engine remembers and nobody holds, and kernels that wait for their
    /// next launch. Call it when a resource is lacking elsewhere, as for a buffer. Programs released so are not
    /// captured once
    /// more; call [`keep_launched`](Self::keep_launched) before for that.
    pub fn release_unused(&self, sde: &Handle) {
        let_go(|| {
            self.release_idle();
            for app in apps::NAMES {
                sde.evict(app, 0);
            }
        });
    }

    /// If the context is above its limit, evicts the engine's results of each app of this crate down to that limit.
    pub(crate) fn keep_to_limit(&self, sde: &Handle) {
        let limit = self.0.memory_limit;
        let programs = self.0.living.programs();
        let bytes = programs
            .iter()
            .map(|program| program.bytes())
            .sum::<usize>();
        drop(programs);
        if bytes > limit {
            for app in apps::NAMES {
                sde.evict(app, limit);
            }
        }
    }

    /// Releases kernels that wait for their next launch. They are made again when they are needed.
    pub fn release_idle(&self) {
        let_go(|| {
            for kernels in self.0.living.idle() {
                kernels.release();
            }
        });
    }

    /// Keeps the binaries of programs whose kernels were launched since they were last kept: many drivers finish
    /// code at the first launch. Call it only when queues have finished. Dropping a program does it too, for
    /// kernels whose launches the driver no longer references. Gives how many were kept.
    ///
    /// It also saves the uses of a directory's entries. It may take as long as a build: some drivers make
    /// the program once more. A program that another process is building or capturing is left to that process.
    pub fn keep_launched(&self) -> usize {
        let programs = self.0.living.programs();
        let programs = programs.iter().map(|program| &**program);
        let count = capture::keep_launched(self, programs, Ended::All);
        if let Keeping::Dir(dir) = &self.0.keeping
            && let Err(error) = dir.note_uses()
        {
            sde::warning!("{error:#}");
        }
        count
    }
}
