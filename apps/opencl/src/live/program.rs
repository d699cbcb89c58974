//! Live programs, and their binaries.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sde::key::Digest;

use super::kernel::Kernel;
use crate::Error;
use crate::context::{Context, lock};
use crate::driver::RawProgram;
use crate::identity::Descriptor;
use crate::make;
use crate::persistent::{StoredProgram, Wanted};
use crate::stats::Event;

/// A program that kernels can be had from. Cloning is cheap, and clones are one program.
#[derive(Clone)]
pub struct Program(pub(crate) Arc<Live>);

/// What is known of a program beside what it was made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) log: String,
    pub(crate) build_time: Duration,
    pub(crate) kernels: Vec<String>,
}

/// What a program counts with whose binary nobody has seen, beside its source. Small ones of PoCL have
/// some tens of kilobytes.
const UNSEEN: usize = 64 << 10;

fn estimate(descriptor: &Descriptor) -> usize {
    UNSEEN + descriptor.source_length()
}

pub(crate) struct Live {
    pub(crate) context: Context,
    pub(crate) device: usize,
    pub(crate) descriptor: Descriptor,
    /// Always there until it is dropped.
    raw: Option<RawProgram>,
    facts: Facts,
    /// Kernels that were launched in this process.
    launched: Mutex<BTreeSet<String>>,
    /// Kernels that had been launched when the kept binary was captured; `None` if none is kept.
    kept: Mutex<Option<BTreeSet<String>>>,
    /// How long the binary is, as far as is known.
    bytes: AtomicUsize,
}

impl Program {
    pub(crate) fn new(
        context: &Context,
        device: usize,
        descriptor: &Descriptor,
        raw: RawProgram,
        facts: Facts,
        kept: Option<&[String]>,
    ) -> Self {
        let kept = kept.map(|launched| launched.iter().cloned().collect());
        let live = Arc::new(Live {
            context: context.clone(),
            device,
            descriptor: descriptor.clone(),
            raw: Some(raw),
            facts,
            launched: Mutex::default(),
            kept: Mutex::new(kept),
            bytes: AtomicUsize::new(estimate(descriptor)),
        });
        context.note_live(&live);
        Self(live)
    }

    /// What it was made from.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.0.descriptor
    }

    /// What the compiler said when it was built: in this process, or in the one whose binary it has.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.0.facts.log
    }

    /// How long the build took, wherever it was.
    #[must_use]
    pub fn build_time(&self) -> Duration {
        self.0.facts.build_time
    }

    /// The names of its kernels.
    #[must_use]
    pub fn kernel_names(&self) -> &[String] {
        &self.0.facts.kernels
    }

    /// Which device of the context it is for.
    #[must_use]
    pub fn device(&self) -> usize {
        self.0.device
    }

    /// The binary, as the driver gives it now; empty if it gives none.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn binary(&self) -> Result<Vec<u8>, Error> {
        let live = &self.0;
        let binary = live.driver().binary(live.raw(), live.device);
        binary.map_err(|refusal| live.refused("reading a binary", refusal))
    }

    /// How much memory it is taken to need.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// A kernel that no cache knows of; [`Context::kernel`] remembers what it gives.
    ///
    /// # Errors
    /// If there is no such kernel, or the driver refuses.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        Kernel::alone(self, name)
    }

    /// As it is to be kept, with the binary as it is now; `None` if the driver gives none.
    pub(crate) fn to_keep(&self) -> Result<Option<StoredProgram>, Error> {
        self.0.to_keep()
    }
}

impl Live {
    pub(crate) fn raw(&self) -> &RawProgram {
        // It is taken in `drop` only.
        match &self.raw {
            Some(raw) => raw,
            None => unreachable!("a program is used after it was given back"),
        }
    }

    fn driver(&self) -> &dyn crate::driver::Driver {
        &*self.context.0.driver
    }

    pub(crate) fn note_launch(&self, kernel: &str) {
        let mut launched = lock(&self.launched);
        if !launched.contains(kernel) {
            launched.insert(kernel.to_owned());
        }
    }

    pub(crate) fn note_bytes(&self, binary: &[u8]) {
        self.bytes.store(binary.len(), Ordering::Relaxed);
    }

    pub(crate) fn note_kept(&self, program: &StoredProgram) {
        self.note_bytes(&program.binary);
        *lock(&self.kept) = Some(program.launched.iter().cloned().collect());
    }

    fn to_keep(&self) -> Result<Option<StoredProgram>, Error> {
        // What is launched while the binary is read may be in it; it is not relied on.
        let launched = lock(&self.launched).clone();
        let kept = lock(&self.kept).clone().unwrap_or_default();
        let is_first = lock(&self.kept).is_none();
        let binary = match is_first || !self.driver().freezes_binaries(self.device) {
            true => {
                let binary = self.driver().binary(self.raw(), self.device);
                binary.map_err(|refusal| self.refused("reading a binary", refusal))?
            }
            false => make::binary_anew(&self.context, self.device, &self.descriptor)?,
        };
        if binary.is_empty() {
            return Ok(None);
        }
        let program = StoredProgram {
            key: self.descriptor.key(),
            full: self.descriptor.full_key().clone(),
            device_type: self.context.devices()[self.device].kind,
            name: self.descriptor.name().to_owned(),
            binary,
            log: self.facts.log.clone(),
            build_time: self.facts.build_time,
            kernels: self.facts.kernels.clone(),
            // A binary that was loaded has what was in it.
            launched: launched.union(&kept).cloned().collect(),
            checksum: Digest::from_bytes([0; 32]),
        };
        Ok(Some(program.seal()))
    }

    /// Keeps the binary if kernels were launched that the kept one has no finished code for. Gives
    /// whether it did.
    pub(crate) fn keep_if_better(&self) -> bool {
        let Some(store) = &self.context.0.store else {
            return false;
        };
        let kind = self.context.devices()[self.device].kind;
        let is_better = match &*lock(&self.kept) {
            None => false,
            Some(kept) => !lock(&self.launched).is_subset(kept),
        };
        if !is_better || !store.keeps(kind) || self.descriptor.is_cacheable().is_err() {
            return false;
        }
        let notes = &self.context.0.notes;
        let program = match self.to_keep() {
            Ok(Some(program)) => program,
            Ok(None) => return false,
            Err(error) => {
                tracing::warn!("a binary could not be captured after a launch: {error}");
                return false;
            }
        };
        let wanted = Wanted {
            key: program.key,
            full: &program.full,
            device_type: kind,
        };
        // Another process may have kept one that is as good meanwhile.
        store.refresh();
        let there = store
            .look(&[wanted])
            .ok()
            .and_then(|mut found| found.pop()?);
        let there = there.filter(|there| there.is_whole() && there.full == program.full);
        if there.is_some_and(|there| !program.is_better_than(&there)) {
            self.note_kept(&program);
            return false;
        }
        match store.put(std::slice::from_ref(&program)) {
            Ok(0) => false,
            Ok(_) => {
                self.note_kept(&program);
                notes.note(&Event::Kept {
                    key: program.key,
                    bytes: program.binary.len(),
                    replaced: true,
                });
                true
            }
            Err(error) => {
                let why = error.to_string();
                notes.note(&Event::StoreFailed { why });
                false
            }
        }
    }

    pub(crate) fn refused(&self, doing: &str, refusal: crate::Refusal) -> Error {
        let device = self.context.devices()[self.device].name.clone();
        match refusal.is_out_of_resources() {
            true => Error::OutOfResources { device, refusal },
            false => Error::Driver {
                what: format!("{doing} of {}", self.descriptor.name()),
                device,
                refusal,
            },
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.keep_if_better();
        if let Some(raw) = self.raw.take() {
            self.driver().release_program(raw);
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("descriptor", &self.0.descriptor)
            .field("device", &self.0.device)
            .finish_non_exhaustive()
    }
}

/// A compiled part of a program, to be linked.
pub struct Object {
    context: Context,
    pub(crate) descriptor: Descriptor,
    raw: Option<RawProgram>,
    pub(crate) log: String,
}

impl Object {
    pub(crate) fn new(
        context: &Context,
        descriptor: &Descriptor,
        raw: RawProgram,
        log: String,
    ) -> Self {
        Self {
            context: context.clone(),
            descriptor: descriptor.clone(),
            raw: Some(raw),
            log,
        }
    }

    pub(crate) fn raw(&self) -> Option<&RawProgram> {
        self.raw.as_ref()
    }

    /// What the compiler said.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    pub(crate) fn bytes(&self) -> usize {
        estimate(&self.descriptor)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            self.context.0.driver.release_program(raw);
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}
