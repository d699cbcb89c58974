//! Saving all that is new, in parts.
//!
//! A long save tells its progress as parts are written. While a second thread writes a part and takes it off the list,
//! this one encodes the next. The second thread is not one of rayon's, which may be busy with the computation for
//! hours.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use super::handle::led;
use super::save::{caught, is_writing, write, write_encoded};
use crate::app::ThreadContext;
use crate::checkpoint::{Archiver, Batch, EncodedSave, Saved, SavedEntry, SavedScratch, Selection};
use crate::entry::Entry;
use crate::error::{ArchiveError, Error, ErrorKind};
use crate::event::Event;

/// The most entries of a save's first part. A save of no more tells no progress.
const FIRST_PART: usize = 64;

/// The most entries of any part: a batch's description of its entries takes memory too.
const LONGEST_PART: usize = 1 << 14;

/// A part takes no more entries once their values have this many bytes in memory: the save holds evicted values.
const PART_BYTES: usize = 16 << 20;

/// After this long a save lets other threads save. Parts grow only while one takes less than this to write.
const QUICK: Duration = Duration::from_millis(250);

/// A part that takes longer to write is followed by a shorter one.
const SLOW: Duration = Duration::from_secs(1);

/// A save of all new entries, and its progress.
#[derive(Default)]
struct Save {
    /// How many entries it has, written ones among them, by the last count.
    total: usize,
    /// How many of them are in no part yet.
    left: usize,
    /// How often saves had put entries back at the last count. A change means that another save failed: then it counts
    /// anew.
    put_back: Option<u64>,
    /// How many entries the next part has at most.
    at_once: usize,
    /// How many entries are written.
    entries: usize,
    /// How many states of scratch are written.
    scratch: usize,
    left_out: Vec<ArchiveError>,
    took: Duration,
    /// How long the latest part took to be encoded.
    encoding: Duration,
    has_begun: bool,
}

/// A saved part: its counts, and the entries that nothing else holds.
struct SavedPart {
    entries: usize,
    scratch: Vec<SavedScratch>,
    left_out: Vec<ArchiveError>,
    took: Duration,
    /// Entries that nothing else holds any more.
    orphans: Vec<Entry>,
}

/// A part that is saved, or is to be put back.
type Outcome = Result<SavedPart, Box<(Batch, ArchiveError)>>;

/// The parts that a save has taken off the list in its turn.
#[derive(Default)]
struct InHand {
    /// Parts that are not saved, and are to be put back.
    unsaved: Vec<Batch>,
    /// Saved parts. Dropped after the turn: destructors of values may save.
    saved: Vec<SavedPart>,
    orphan_bytes: usize,
}

impl Engine {
    /// Saves the new entries of one selection. When several threads do so, each part is saved by one of them.
    pub(super) fn save_new_ones(
        &self,
        selection: Selection,
        is_awaited: bool,
    ) -> Result<(), Error> {
        let doing = selection.name();
        let archiver = self.store_to(doing)?;
        let (mut save, mut is_told) = (Save::default(), false);
        let committed = loop {
            let saved = self.save_some_parts(&archiver, selection, &mut save);
            // With nothing locked: observers may save too.
            let total = save.total;
            is_told |= total > FIRST_PART;
            if is_told {
                self.tell(|| Event::Progress {
                    label: Arc::from(format!("saving the {doing}")),
                    done: save.entries,
                    failed: 0,
                    // At the end, or after an error, the written entries are all there are.
                    total: match saved {
                        Ok(true) => total,
                        _ => save.entries,
                    },
                    nested: !is_awaited,
                });
            }
            match saved {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let failed = match committed {
            Ok(()) if !save.has_begun => None,
            Ok(()) => {
                let counts = (save.entries, save.scratch);
                let written = Ok((Saved::without(save.left_out), save.took));
                self.tell_written(selection, counts, written)
                    .unwrap_or_else(Some)
            }
            Err(error) => {
                self.look_whether_removed(&error);
                Some(error)
            }
        };
        let Some(source) = failed else { return Ok(()) };
        let doing = format!("saving the {doing} to {}", archiver.describe());
        Err(ErrorKind::Archive { doing, source }.into())
    }

    /// Saves the next parts, and says whether there are more; after the last it commits.
    fn save_some_parts(
        &self,
        archiver: &Arc<dyn Archiver>,
        selection: Selection,
        save: &mut Save,
    ) -> Result<bool, ArchiveError> {
        if is_writing() {
            let why = "a store asks for a save while it writes";
            return Err(ArchiveError::Other(why.to_owned()));
        }
        let mut in_hand = InHand::default();
        // Before entries are collected: a second thread that finds none left must not say that they are saved before
        // they are.
        let _turn = self.pending.saver.turn(self.patience_with_saves())?;
        // Counted within the turn: another save may have taken entries, and put them back.
        let put_back = Some(self.pending.put_back_so_far());
        if save.put_back != put_back {
            save.put_back = put_back;
            save.left = self.pending.number(selection);
            save.total = save.entries + save.left;
            save.at_once = FIRST_PART;
        }
        let stretch = crate::stretch!("save", kind = selection.name(), entries = save.left);
        let written = self.write_parts(archiver, selection, save, &mut in_hand);
        for part in in_hand.unsaved.drain(..) {
            for cache in self.caches.all() {
                let keys = part.scratch.iter().map(|one| one.key);
                cache.scratches.put_back(keys);
            }
            let entries = part.entries.into_iter().map(SavedEntry::into_entry);
            self.pending
                .put_back(selection, entries.collect(), part.marks);
        }
        let goes_on = written?;
        stretch.end("saved");
        if !goes_on {
            // Also if nothing was left to write: results may have been saved one by one.
            let stretch = crate::stretch!("commit", kind = selection.name());
            caught(|| {
                archiver.keep_journal(self.journal());
                self.tell_uses(&**archiver);
                archiver.commit(selection)
            })?;
            stretch.end("committed");
        }
        Ok(goes_on)
    }

    /// Writes parts until all are written, or others are to have their turn; says whether there are more.
    fn write_parts(
        &self,
        archiver: &Arc<dyn Archiver>,
        selection: Selection,
        save: &mut Save,
        in_hand: &mut InHand,
    ) -> Result<bool, ArchiveError> {
        let begun = Instant::now();
        // A part that is written while the next is encoded.
        let mut ready: Option<(Batch, EncodedSave<'_>)> = None;
        loop {
            let (is_one_ready, mut written) = (ready.is_some(), None);
            let mut write = || {
                let part = ready.take();
                written = part.map(|(part, write)| self.write_part(&**archiver, part, Some(write)));
            };
            let mut encode = || {
                let part = self.take_part(selection, save);
                let is_same = |now: Arc<dyn Archiver>| Arc::ptr_eq(&now, archiver);
                // If another store was loaded, the part may be for that.
                if part.is_empty() || !self.archiver().is_some_and(is_same) {
                    return (part, None);
                }
                let start = Instant::now();
                let encoded = caught(|| archiver.encode(&part));
                save.encoding = start.elapsed();
                save.took += save.encoding;
                (part, Some(encoded))
            };
            let (part, encoded) = match is_one_ready {
                true => match led(&mut write, |_| encode()) {
                    Ok(((), encoded)) => encoded,
                    Err(_) => {
                        write();
                        encode()
                    }
                },
                false => encode(),
            };
            let before = written.map_or(Ok(()), |outcome| in_hand.note(outcome, save));
            let encoded = match (before, encoded) {
                (Ok(()), Some(Ok(encoded))) => encoded,
                (before, encoded) => {
                    if !part.is_empty() {
                        in_hand.unsaved.push(part);
                    }
                    before?;
                    return encoded.transpose().map(|_| false);
                }
            };
            // A long save pauses after its first part to tell how many entries there are.
            let is_first = save.entries == 0 && save.total > FIRST_PART;
            let pauses = is_first || begun.elapsed() > QUICK || in_hand.orphan_bytes > PART_BYTES;
            let ends = pauses || save.left == 0;
            match encoded {
                Some(write) if !ends => ready = Some((part, write)),
                encoded => in_hand.note(self.write_part(&**archiver, part, encoded), save)?,
            }
            if ends {
                return Ok(save.left > 0);
            }
        }
    }

    /// Writes a part, from its encoding if the store made one. Saved entries leave the lists.
    fn write_part(
        &self,
        archiver: &dyn Archiver,
        part: Batch,
        encoded: Option<EncodedSave<'_>>,
    ) -> Outcome {
        let written = match encoded {
            Some(encoded) => write_encoded(encoded),
            None => write(archiver, &part),
        };
        let (saved, took) = match written {
            Ok(written) => written,
            Err(error) => return Err(Box::new((part, error))),
        };
        let entries = part.entries.into_iter().map(SavedEntry::into_entry);
        let entries: Vec<_> = entries.collect();
        self.are_saved(archiver, part.selection, &entries);
        let number = entries.len();
        let orphans = entries.into_iter().filter_map(Arc::into_inner);
        Ok(SavedPart {
            entries: number,
            scratch: part.scratch,
            left_out: saved.left_out,
            took,
            orphans: orphans.collect(),
        })
    }

    /// Takes the next part off the list. It is empty if nothing is left.
    fn take_part(&self, selection: Selection, save: &mut Save) -> Batch {
        let most = save.at_once.min(save.left);
        let (mut entries, mut marks, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
        loop {
            // A value's own code tells its size, so no lock may be held: each look at the list takes as many entries as
            // all before.
            let more = entries.len().max(1).min(most - entries.len());
            let (more, more_marks) = self.pending.take(selection, more);
            bytes = more
                .iter()
                .map(|entry| entry.bytes())
                .fold(bytes, usize::saturating_add);
            let is_last = more.is_empty() || bytes >= PART_BYTES;
            entries.extend(more);
            marks.extend(more_marks);
            if is_last {
                break;
            }
        }
        let scratch = match selection {
            Selection::Checkpoint if !save.has_begun => self.unsaved_scratch(),
            _ => Vec::new(),
        };
        save.left = match entries.len() {
            0 => 0,
            taken => save.left.saturating_sub(taken),
        };
        let part = Batch {
            scratch,
            marks,
            ..Batch::of(selection, entries)
        };
        save.has_begun |= !part.is_empty();
        part
    }

    /// How long a save on this thread waits for another save. That one may be in a value's own code, which may wait for
    /// a run or a rayon job. So the wait is bounded on a thread that is in either.
    fn patience_with_saves(&self) -> Option<Duration> {
        let here = ThreadContext::here();
        let may_be_awaited = here.top.is_some() || here.is_on_rayon(None);
        may_be_awaited.then(|| self.rayon_patience.saturating_mul(100))
    }
}

impl InHand {
    /// Takes note of a part that is saved, or that is to be put back.
    fn note(&mut self, outcome: Outcome, save: &mut Save) -> Result<(), ArchiveError> {
        let mut part = outcome.map_err(|failed| {
            let (part, error) = *failed;
            self.unsaved.push(part);
            error
        })?;
        save.entries += part.entries;
        save.scratch += part.scratch.len();
        save.left_out.append(&mut part.left_out);
        save.took += part.took;
        // Where the disk is the bottleneck, longer parts need fewer syncs; else short parts stay in the processor's
        // cache.
        if part.took > 2 * save.encoding && part.took < QUICK {
            save.at_once = (4 * save.at_once).min(LONGEST_PART);
        } else if part.took > SLOW {
            save.at_once = (save.at_once / 4).max(1);
        }
        let orphans = part.orphans.iter();
        self.orphan_bytes += orphans.map(Entry::known_memory).sum::<usize>();
        self.saved.push(part);
        Ok(())
    }
}
