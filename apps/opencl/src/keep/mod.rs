//! Keeping binaries: when a program was built, when kernels of it were launched since, when a user
//! says so.
//!
//! Many drivers finish code at the first launch, so a binary that is captured before has no code for
//! the device in it, and each new process compiles it again. So what was launched is noted, and the
//! binary captured once more: when the program is let go, or when a user says that his queues have
//! finished. That costs a build with some drivers. So it is found out first whether the kept binary lacks
//! anything; of several processes that find so one captures it, and the others leave it to that one.
//!
//! What a kept binary is said to have, nobody captures again. So that is said only of kernels
//! whose launches are known to have ended, and not where a driver puts no finished code into binaries.

mod code;
mod giving;
mod together;

use std::time::Instant;

use sde::key::Digest;

use crate::driver::Capture;
use crate::live::Live;
use crate::lock::lock;
use crate::persistent::{StoredProgram, Turn, Wanted};
use crate::stats::Event;
use crate::{Error, make};

pub(crate) use code::{Code, Ended};
use code::{Kept, Names};
use giving::is_letting_go;
pub(crate) use giving::{giving, keep_built, keep_what_was_built, let_go};
use together::Captured;
pub(crate) use together::launched;

impl Live {
    /// The binary with all that was finished, and for which kernels that is.
    pub(crate) fn capture(&self, ended: Ended) -> Result<(Vec<u8>, Names), Error> {
        let names = self.finished(ended);
        let is_new_program_better = self.driver().captures(self.device) == Capture::NewProgram
            && lock(&self.code.frozen)
                .as_ref()
                .is_some_and(|frozen| !names.is_subset(frozen));
        let binary = match is_new_program_better {
            false => self.binary(&names)?,
            true => {
                let begun = Instant::now();
                let binary = make::binary_anew(&self.context, self.device, &self.descriptor)?;
                let (key, took) = (self.descriptor.key(), begun.elapsed());
                self.note(&Event::Recompiled { key, took });
                binary
            }
        };
        Ok((binary, names))
    }

    /// The binary as it is, whatever was launched since it was put together.
    pub(crate) fn binary_as_it_is(&self) -> Result<Vec<u8>, Error> {
        self.binary(&self.finished(Ended::IfTheDriverSaysSo))
    }

    /// The binary of the program itself. If it is put together now, it has code for what was launched before.
    fn binary(&self, finished: &Names) -> Result<Vec<u8>, Error> {
        lock(&self.code.frozen).get_or_insert_with(|| finished.clone());
        let binary = self.driver().binary(self.raw(), self.device);
        binary.map_err(|refusal| self.refused("reading a binary", refusal))
    }

    /// For which kernels a binary that is captured now has finished code.
    fn finished(&self, ended: Ended) -> Names {
        let mut names = self.code.loaded.clone();
        if self.driver().captures(self.device) != Capture::Never {
            names.extend(self.code.launched(ended));
        }
        names
    }

    /// Keeps the binary of a program that was just built. The caller has the turn.
    fn keep_built(&self, replaced: bool) {
        let Some(store) = &self.context.0.store else {
            return;
        };
        match self.captured(Ended::IfTheDriverSaysSo, replaced, None) {
            Ok(captured) => {
                together::put(&self.context, &**store, captured.into_iter().collect());
            }
            Err(error) => {
                self.code.set_kept(Kept::NotOurs);
                sde::warning!("a program is not kept, its driver gives no binary: {error}");
            }
        }
    }

    /// Keeps the binary of a program that this crate did not build. Gives whether the store has it.
    pub(crate) fn keep_foreign(&self) -> Result<bool, Error> {
        {
            let mut kept = lock(&self.code.kept);
            if matches!(*kept, Kept::NotOurs) {
                *kept = Kept::NotYet;
            }
        }
        self.keep_if_better(Ended::IfTheDriverSaysSo)?;
        Ok(matches!(*lock(&self.code.kept), Kept::With(_)))
    }

    /// Keeps the binary if none is kept, or kernels were launched that the kept one has no finished
    /// code for.
    fn keep_if_better(&self, ended: Ended) -> Result<(), Error> {
        if let Some(store) = &self.context.0.store
            && let Some(captured) = self.captured_if_better(ended)?
        {
            together::put(&self.context, &**store, vec![captured]);
        }
        Ok(())
    }

    /// The binary, if it is to be kept: none is, or kernels were launched that the kept one has no
    /// finished code for.
    fn captured_if_better(&self, ended: Ended) -> Result<Option<Captured<'_>>, Error> {
        let Some(store) = &self.context.0.store else {
            return Ok(None);
        };
        let names = self.finished(ended);
        let kind = self.context.devices()[self.device].kind;
        if !self.code.lacks(&names) || !store.keeps(kind) || self.descriptor.is_cacheable().is_err()
        {
            return Ok(None);
        }
        let wanted = Wanted {
            key: self.descriptor.key(),
            full: self.descriptor.full_key(),
            device_type: kind,
        };
        // Whoever has it builds it or captures it. This one may be asked again, and waits for nobody.
        let Some(turn) = store.turn_at_once(&wanted) else {
            return Ok(None);
        };
        let there = match store.look(&[wanted]) {
            Ok(mut found) => found.pop().flatten(),
            Err(error) => {
                self.context.store_failed(&error);
                return Ok(None);
            }
        };
        let is_there = there.is_some();
        let there = there.filter(|there| there.is_whole() && there.full == *wanted.full);
        if let Some(there) = there {
            let has: Names = there.launched.into_iter().collect();
            // What is there stays where this one would lack something of it: whoever loads that, and launches
            // what it lacks, has both.
            if names.is_subset(&has) || !has.is_subset(&names) {
                self.code.set_kept(Kept::With(&has | &names));
                return Ok(None);
            }
        }
        self.captured(ended, is_there, Some(turn))
    }

    /// The binary as it is to be kept; nothing if the driver gives none.
    fn captured(
        &self,
        ended: Ended,
        replaced: bool,
        turn: Option<Turn>,
    ) -> Result<Option<Captured<'_>>, Error> {
        let Some(program) = self.to_keep(ended)? else {
            self.code.set_kept(Kept::NotOurs);
            return Ok(None);
        };
        Ok(Some(Captured {
            live: self,
            program,
            replaced,
            turn,
        }))
    }

    /// As it is to be kept; nothing if the driver gives no binary.
    fn to_keep(&self, ended: Ended) -> Result<Option<StoredProgram>, Error> {
        let (binary, launched) = self.capture(ended)?;
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
            launched: launched.into_iter().collect(),
            checksum: Digest::from_bytes([0; 32]),
        };
        Ok(Some(program.seal()))
    }

    /// When the program is let go.
    pub(crate) fn keep_at_the_end(&self) {
        if is_letting_go() {
            return;
        }
        if let Err(error) = self.keep_if_better(Ended::IfTheDriverSaysSo) {
            sde::warning!("a binary could not be captured after a launch: {error}");
        }
    }

    fn note(&self, event: &Event) {
        self.context.0.notes.note(event);
    }
}
