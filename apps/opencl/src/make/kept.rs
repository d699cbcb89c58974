//! Programs that a store has, and builds that are kept in one.

use std::collections::BTreeSet;

use sde::Handle;

use super::Making;
use crate::Error;
use crate::driver::{RawProgram, Refusal};
use crate::keep::{Code, keep_built};
use crate::live::{Facts, Program};
use crate::persistent::{KernelStore, StoredProgram, Wanted};
use crate::stats::Event;

/// What a store has for a program.
#[derive(Default, PartialEq)]
struct Kept {
    /// If it can be used.
    program: Option<StoredProgram>,
    is_there: bool,
}

impl Making<'_> {
    /// With a store: what it has, or a build that is kept in it.
    pub(super) fn kept(&self, sde: &Handle, store: &dyn KernelStore) -> Result<Program, Error> {
        let first = match self.context.0.brought.take(&self.wanted()) {
            Some(found) => self.checked(found),
            None => self.find(store),
        };
        if let Some(program) = self.load(first.program.as_ref())? {
            return Ok(program);
        }
        let device_type = self.context.devices()[self.device].kind;
        if !store.keeps(device_type) {
            return self.build(sde);
        }
        let turn = store.turn(&self.wanted());
        if let Some(took) = turn.waited {
            let key = self.descriptor.key();
            self.note(&Event::Waited { key, took });
        }
        // Whoever had the turn may have put it meanwhile, but not what was refused just now.
        let second = self.find(store);
        if second != first
            && let Some(program) = self.load(second.program.as_ref())?
        {
            return Ok(program);
        }
        let program = self.build(sde)?;
        keep_built(&program, turn, second.is_there);
        Ok(program)
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            key: self.descriptor.key(),
            full: self.descriptor.full_key(),
            device_type: self.context.devices()[self.device].kind,
        }
    }

    /// What the store has, if it is this program, whole. Trouble with the store is no reason not to build.
    fn find(&self, store: &dyn KernelStore) -> Kept {
        let found = match store.get(&[self.wanted()]) {
            Ok(found) => found.into_iter().next().flatten(),
            Err(error) => {
                self.context.store_failed(&error);
                None
            }
        };
        self.checked(found)
    }

    fn checked(&self, found: Option<StoredProgram>) -> Kept {
        let Some(found) = found else {
            return Kept::default();
        };
        let why = if !found.is_whole() {
            "its checksum is wrong"
        } else if found.full != *self.descriptor.full_key() {
            "it is another program with the same digest"
        } else if found.binary.is_empty() {
            "it has no binary"
        } else {
            return Kept {
                program: Some(found),
                is_there: true,
            };
        };
        let key = self.descriptor.key();
        self.note(&Event::Unfit { key, why });
        Kept {
            program: None,
            is_there: true,
        }
    }

    /// From a kept binary that was checked; nothing if the driver refuses it.
    fn load(&self, found: Option<&StoredProgram>) -> Result<Option<Program>, Error> {
        let Some(found) = found else {
            return Ok(None);
        };
        let key = self.descriptor.key();
        let facts = Facts {
            log: found.log.clone(),
            build_time: found.build_time,
            kernels: found.kernels.clone(),
        };
        let loaded = self.with_binary(&found.binary).and_then(|raw| {
            let has_kernels = self.has_kernels(raw.get(), &found.kernels)?;
            Ok(has_kernels.then_some(raw))
        });
        match loaded {
            Ok(Some(raw)) => {
                self.note(&Event::Loaded { key });
                let program = self.live(raw, facts, Code::from_store(&found.launched));
                program.0.note_bytes(&found.binary);
                Ok(Some(program))
            }
            Ok(None) => {
                let why = "it has not the kernels that it is said to have".to_owned();
                self.note(&Event::Refused { key, why });
                Ok(None)
            }
            Err(refusal) if refusal.is_out_of_resources() => Err(self.refused(refusal)),
            Err(refusal) => {
                let why = refusal.to_string();
                self.note(&Event::Refused { key, why });
                Ok(None)
            }
        }
    }

    /// Whether a driver finds these kernels, in whatever order.
    fn has_kernels(&self, raw: &RawProgram, kernels: &[String]) -> Result<bool, Refusal> {
        let names = self.context.0.driver.kernel_names(raw)?;
        let names: BTreeSet<_> = names.into_iter().collect();
        Ok(names.iter().eq(kernels.iter().collect::<BTreeSet<_>>()))
    }
}
