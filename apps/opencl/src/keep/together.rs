//! Binaries on their way to the store, several in one call.
//!
//! A store that is a server or a database takes as long to keep one as to keep a hundred, so what is captured at one time is put at
//! one time. A turn is held while its program is captured, and not until the batch is put: others would wait for captures of
//! programs that they do not want, and each turn is an open file. If somebody captures the same meanwhile, the later
//! one counts.

use std::collections::HashSet;
use std::sync::Arc;

use super::Ended;
use super::code::Kept;
use crate::context::Context;
use crate::live::Live;
use crate::persistent::{KernelStore, StoredProgram, Turn, Wanted};
use crate::stats::Event;

/// How many binaries wait to be put together, and how many bytes they have: what is captured is lost if the process ends.
const MANY: usize = 64;
const BYTES: usize = 64 << 20;

/// A binary to be kept.
pub(super) struct Captured<'a> {
    pub(super) live: &'a Live,
    pub(super) program: StoredProgram,
    /// Whether there was one before.
    pub(super) replaced: bool,
    /// Keeps others from building or capturing it; nothing if it is held elsewhere, or by nobody until it is put.
    pub(super) turn: Option<Turn>,
}

/// Keeps what was launched since it was last kept, of all these programs. Gives how many.
pub(crate) fn launched(context: &Context, programs: &[Arc<Live>]) -> usize {
    let Some(store) = &context.0.store else {
        return 0;
    };
    let (mut count, mut bytes) = (0, 0);
    let (mut batch, mut keys) = (Vec::new(), HashSet::new());
    for program in programs {
        // Programs of devices of equal identity have one key, and one knows what the other kept.
        let is_in_it = !keys.insert(program.descriptor.key());
        if is_in_it || batch.len() >= MANY || bytes >= BYTES {
            count += put(context, &**store, std::mem::take(&mut batch));
            bytes = 0;
            keys = HashSet::from([program.descriptor.key()]);
        }
        match program.captured_if_better(Ended::All) {
            Ok(Some(mut captured)) => {
                captured.turn = None;
                bytes += captured.program.binary.len();
                batch.push(captured);
            }
            Ok(None) => {}
            Err(error) => {
                sde::warning!("a binary could not be captured after a launch: {error}");
            }
        }
    }
    count + put(context, &**store, batch)
}

/// Keeps these. Gives how many the store has now.
pub(super) fn put(context: &Context, store: &dyn KernelStore, batch: Vec<Captured<'_>>) -> usize {
    let mut programs = Vec::with_capacity(batch.len());
    let mut abouts = Vec::with_capacity(batch.len());
    for captured in batch {
        programs.push(captured.program);
        abouts.push((captured.live, captured.replaced, captured.turn));
    }
    if programs.is_empty() {
        return 0;
    }
    let there = match store.put(&programs) {
        Ok(count) if count >= programs.len() => vec![Some(true); programs.len()],
        Ok(0) if programs.len() == 1 => vec![Some(false)],
        Ok(_) => which(context, store, &programs),
        Err(error) => {
            context.store_failed(&error);
            return 0;
        }
    };
    for ((program, (live, replaced, _)), is_there) in programs.iter().zip(&abouts).zip(&there) {
        match is_there {
            // It is tried again.
            None => {}
            Some(false) => live.code.set_kept(Kept::NotOurs),
            Some(true) => {
                live.note_bytes(&program.binary);
                let launched = program.launched.iter().cloned().collect();
                live.code.set_kept(Kept::With(launched));
                context.0.notes.note(&Event::Kept {
                    key: program.key,
                    bytes: program.binary.len(),
                    replaced: *replaced,
                });
            }
        }
    }
    there
        .into_iter()
        .filter(|is_there| *is_there == Some(true))
        .count()
}

/// Which of these a store has that said that it kept some; nothing where it can't be asked. The others are put one by one: a
/// store makes room for what is put, and may have it then.
fn which(
    context: &Context,
    store: &dyn KernelStore,
    programs: &[StoredProgram],
) -> Vec<Option<bool>> {
    let wanted = programs.iter().map(|program| Wanted {
        key: program.key,
        full: &program.full,
        device_type: program.device_type,
    });
    let found = store.look(&wanted.collect::<Vec<_>>());
    let found = found.map_err(|error| context.store_failed(&error));
    let mut found = found.unwrap_or_default().into_iter();
    let has = |program: &StoredProgram| {
        let found = found.next().flatten();
        if found.is_some_and(|found| found.checksum == program.checksum) {
            return Some(true);
        }
        let put = store.put(std::slice::from_ref(program));
        let count = put.map_err(|error| context.store_failed(&error)).ok()?;
        Some(count > 0)
    };
    programs.iter().map(has).collect()
}
