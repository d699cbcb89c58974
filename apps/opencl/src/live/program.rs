//! Live programs, and their binaries.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::Error;
use crate::capture::{Code, Ended};
use crate::context::Context;
use crate::driver::{Driver, RawProgram};
use crate::identity::Descriptor;
use crate::kept::Facts;
use crate::make::Making;

/// A program that gives kernels. Cloning is cheap, and clones are one program.
#[derive(Clone)]
pub struct Program(pub(crate) Arc<Live>);

/// The size that a program counts with, beside its source, before its binary was seen. Small binaries of PoCL have
/// some tens of kilobytes.
const UNSEEN: usize = 64 << 10;

fn estimate(descriptor: &Descriptor) -> usize {
    UNSEEN + descriptor.source_length()
}

/// A program of a driver, given back when this is dropped, also after an error or a panic.
pub(crate) struct Owned {
    context: Context,
    raw: RawProgram,
}

impl Owned {
    pub(crate) fn new(context: &Context, raw: RawProgram) -> Self {
        let context = context.clone();
        Self { context, raw }
    }

    pub(crate) fn get(&self) -> &RawProgram {
        &self.raw
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let raw = std::mem::take(&mut self.raw);
        self.context.0.driver.release_program(raw);
    }
}

pub(crate) struct Live {
    pub(crate) making: Making,
    raw: Owned,
    pub(crate) facts: Facts,
    pub(crate) code: Code,
    /// The length of the binary, or an estimate.
    bytes: AtomicUsize,
}

impl Program {
    pub(crate) fn new(making: Making, raw: Owned, facts: Facts, code: Code) -> Self {
        let live = Arc::new(Live {
            bytes: AtomicUsize::new(estimate(&making.descriptor)),
            making,
            raw,
            facts,
            code,
        });
        live.context().0.living.note_program(&live);
        Self(live)
    }

    /// The descriptor that it was made from.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        self.0.descriptor()
    }

    /// The compiler's log of the build, in this process or in the one whose binary it has.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.0.facts.log
    }

    /// The time of the build, in this process or in the one whose binary it has; zero for a program from a blob or a
    /// foreign one.
    #[must_use]
    pub fn build_time(&self) -> Duration {
        self.0.facts.build_time
    }

    /// The names of its kernels.
    #[must_use]
    pub fn kernel_names(&self) -> &[String] {
        &self.0.facts.kernels
    }

    /// The number of its device in the context.
    #[must_use]
    pub fn device(&self) -> usize {
        self.0.device()
    }

    /// The binary, with the code that was finished at launches until now; empty if the driver gives none.
    /// Ask for it when the launches have ended.
    ///
    /// It may take as long as a build after a launch: some drivers put that code only into the binary
    /// of a new program, which is then made.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn binary(&self) -> Result<Vec<u8>, Error> {
        Ok(self.0.captured(Ended::All)?.binary)
    }
}

impl Live {
    /// The memory that it is taken to need.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn context(&self) -> &Context {
        &self.making.context
    }

    pub(crate) fn device(&self) -> usize {
        self.making.device
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.making.descriptor
    }

    pub(crate) fn raw(&self) -> &RawProgram {
        &self.raw.raw
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.context().0.driver
    }

    pub(crate) fn note_bytes(&self, binary: &[u8]) {
        self.bytes.store(binary.len(), Ordering::Relaxed);
    }

    pub(crate) fn refused(&self, doing: &str, refusal: crate::Refusal) -> Error {
        let device = &self.context().devices()[self.device()].identity.name;
        let what = format!("{doing} of {}", self.descriptor().name());
        Error::refused(what, device, refusal)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.keep_at_the_end();
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("descriptor", self.descriptor())
            .field("device", &self.device())
            .finish_non_exhaustive()
    }
}

/// A compiled part of a program, to be linked.
pub struct Object {
    pub(crate) descriptor: Descriptor,
    raw: Owned,
    log: String,
}

impl Object {
    pub(crate) fn new(descriptor: &Descriptor, raw: Owned, log: String) -> Self {
        let descriptor = descriptor.clone();
        Self {
            descriptor,
            raw,
            log,
        }
    }

    pub(crate) fn raw(&self) -> &RawProgram {
        &self.raw.raw
    }

    /// The compiler's log.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    pub(crate) fn bytes(&self) -> usize {
        estimate(&self.descriptor)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}
