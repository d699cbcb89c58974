//! Devices with their live programs and kernels.

mod batch;
mod builder;
mod living;
mod programs;

use std::fmt;
use std::sync::Arc;

use sde::Fingerprint;
use sde::key::{Encoder, FingerprintError, Short};

use crate::Error;
use crate::driver::{DeviceIdentity, DeviceInfo, Driver};
use crate::identity::{Describe, Descriptor, Environment, ProgramSpec};
use crate::kept::{KernelDir, KernelStore, StoreError};
use crate::stats::{Event, Notes, Stats};

use batch::Brought;
pub use builder::ContextBuilder;
use living::Living;

/// A set of devices whose programs and kernels are remembered together.
///
/// A clone is the same context. Two contexts that were built apart, even on one context of OpenCL, do not find each
/// other's live programs, but share binaries. Build one and clone it.
///
/// Programs and kernels that an [`Sde`](sde::Sde) remembers hold their context, and with it the context of OpenCL.
/// They outlive the last clone, until they are cleaned, evicted by a [limit](ContextBuilder::memory_limit) or a
/// [budget](crate::memory_budget), or the `Sde` is dropped. A program that builds context after context sets a
/// budget, or cleans.
///
/// Dropping a program captures its binary, if a kernel was launched that the kept one has no code for. On PoCL 3.1 that
/// takes 26 ms for each program, once in all: 13 s for 500 that were just built. To avoid it, call
/// [`release_unused`](Self::release_unused) first; then the next process compiles at its first launches.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// Unique among the contexts of a process.
    number: u64,
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) environment: Environment,
    pub(crate) keeping: Keeping,
    pub(crate) notes: Notes,
    memory_limit: usize,
    bits: Option<usize>,
    pub(crate) living: Living,
    pub(crate) brought: Brought,
}

/// Where binaries are kept.
pub(crate) enum Keeping {
    /// Nowhere; with the reason, if binaries were to be kept.
    Nowhere(Option<StoreError>),
    Dir(KernelDir),
    Store(Arc<dyn KernelStore>),
}

impl Context {
    /// The context of OpenCL; `None` on a simulated driver.
    #[must_use]
    pub fn opencl(&self) -> Option<&Arc<opencl3::context::Context>> {
        self.0.driver.context()
    }

    /// The devices, as their drivers describe them.
    #[must_use]
    pub fn devices(&self) -> &[DeviceInfo] {
        self.0.driver.devices()
    }

    /// Describes a program for a device: reads the files it includes, adds the environment's switches,
    /// makes the key. That takes from microseconds to milliseconds, depending on the included
    /// files: do it once, and keep the descriptor.
    ///
    /// # Errors
    /// If there is no such device; a promised file is missing, or a file can't be read; the options or constants
    /// make no sense; a linked program has no parts, or a part that is linked itself.
    pub fn describe(&self, device: usize, program: &ProgramSpec) -> Result<Descriptor, Error> {
        self.describe_with(device, program, "")
    }

    /// Describes a program, with options of this call after the program's own. For a linked program they go to the
    /// linker.
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub fn describe_with(
        &self,
        device: usize,
        program: &ProgramSpec,
        options: &str,
    ) -> Result<Descriptor, Error> {
        self.describing(device, options, false)?.describe(program)
    }

    /// A program that was built with its own options and no others.
    pub(crate) fn describe_built(
        &self,
        device: usize,
        program: &ProgramSpec,
    ) -> Result<Descriptor, Error> {
        self.describing(device, "", true)?.describe(program)
    }

    fn describing<'a>(
        &'a self,
        device: usize,
        options: &'a str,
        is_built: bool,
    ) -> Result<Describe<'a>, Error> {
        Ok(Describe {
            device: self.identity(device)?,
            environment: &self.0.environment,
            options,
            is_built,
            bits: self.0.bits,
        })
    }

    /// The counts of events until now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.0.notes.stats();
        if let Keeping::Dir(dir) = &self.0.keeping {
            dir.count(&mut stats);
        }
        let of_store = || self.store_error().map(ToString::to_string);
        stats.why_not_kept = stats.why_not_kept.or_else(of_store);
        stats
    }

    /// Why the directory that was to keep binaries keeps none: it could not be opened, or can only be read. A
    /// program that can tell its user should look once, after [`build`](ContextBuilder::build).
    #[must_use]
    pub fn store_error(&self) -> Option<&StoreError> {
        match &self.0.keeping {
            Keeping::Nowhere(why) => why.as_ref(),
            Keeping::Dir(dir) => dir.only_read(),
            Keeping::Store(_) => None,
        }
    }

    /// The blobs that the user's store has for these ids.
    pub(crate) fn get(&self, store: &dyn KernelStore, ids: &[[u8; 32]]) -> Vec<Option<Vec<u8>>> {
        let found = store.get(ids);
        let found = found.inspect_err(|error| self.store_failed(store, error));
        let mut found = found.unwrap_or_default();
        found.resize_with(ids.len(), || None);
        found
    }

    pub(crate) fn store_failed(&self, store: &dyn KernelStore, error: &StoreError) {
        let why = format!("{}: {error}", store.describe());
        self.0.notes.note(&Event::StoreFailed { why });
    }

    pub(crate) fn identity(&self, device: usize) -> Result<&DeviceIdentity, Error> {
        let info = self.devices().get(device).ok_or(Error::NoDevice {
            device,
            devices: self.devices().len(),
        });
        Ok(&info?.identity)
    }

    /// The first device with the same identity.
    pub(crate) fn first_like(&self, device: usize) -> usize {
        let wanted = self.devices().get(device).map(|info| &info.identity);
        let mut all = self.devices().iter();
        all.position(|info| Some(&info.identity) == wanted)
            .unwrap_or(device)
    }
}

/// A context is identified by its number: a program that is live in one is of no use in another.
impl Fingerprint for Context {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Context", |fields| fields.field("number", &self.0.number))
    }

    fn describe(&self, out: &mut Short) {
        out.show(format_args!("context {}", self.0.number));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("number", &self.0.number)
            .field("devices", &self.devices())
            .finish_non_exhaustive()
    }
}
