//! What was read so far of which segment.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::{ArchiveError, Selection};

use crate::index::Item;
use crate::scan::{self, Scanned};
use crate::segment::{SEGMENT_HEADER, Segment};
use crate::writer::EXTENSION;

/// The segments of a store as far as they were read.
#[derive(Default)]
pub(crate) struct Seen(HashMap<PathBuf, Progress>);

enum Progress {
    /// This process writes it, and knows what is in it.
    Own,
    /// It is not a segment that can be read; its length then.
    Refused(u64),
    /// Read up to `end` when it was `length` long.
    Read {
        segment: Arc<Segment>,
        length: u64,
        end: u64,
    },
}

impl Seen {
    /// Has a segment of this process left alone.
    pub(crate) fn own(&mut self, segment: &Segment) {
        self.0.insert(segment.path.clone(), Progress::Own);
    }

    /// Reads what is new.
    ///
    /// A segment that can't be read is warned of and left out; that a directory
    /// can't be listed is an error.
    pub(crate) fn look(&mut self, store: &Path) -> Result<Vec<Item>, ArchiveError> {
        let mut items = Vec::new();
        for selection in [Selection::Checkpoint, Selection::Archive] {
            let dir = store.join(selection.name());
            let failed = |error| ArchiveError::io("listing", &dir, error);
            let names = match std::fs::read_dir(&dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                names => names.map_err(failed)?,
            };
            for name in names {
                let path = name.map_err(failed)?.path();
                if path.extension().is_none_or(|found| found != EXTENSION) {
                    continue;
                }
                if let Err(error) = self.look_at(&path, &mut items) {
                    tracing::warn!("{} can't be read: {error}", path.display());
                }
            }
        }
        Ok(items)
    }

    fn look_at(&mut self, path: &Path, items: &mut Vec<Item>) -> io::Result<()> {
        let length = match std::fs::metadata(path) {
            // It was removed since the directory was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?.len(),
        };
        let (segment, from) = match self.0.get(path) {
            Some(Progress::Own) => return Ok(()),
            Some(Progress::Refused(then)) if *then == length => return Ok(()),
            Some(Progress::Read { length: then, .. }) if *then == length => return Ok(()),
            Some(Progress::Read { segment, end, .. }) => (Arc::clone(segment), *end),
            Some(Progress::Refused(_)) | None => match scan::open(path)? {
                Some(Ok(segment)) => (Arc::new(segment), SEGMENT_HEADER as u64),
                Some(Err(why)) => {
                    tracing::warn!("{} is left out: {why}", path.display());
                    self.0.insert(path.to_owned(), Progress::Refused(length));
                    return Ok(());
                }
                // Its writer has only just begun, or was killed then.
                None => return Ok(()),
            },
        };
        let scanned = scan::scan(&segment, from)?;
        warn(path, &scanned, length);
        items.extend(scanned.items);
        let progress = Progress::Read {
            segment,
            length,
            end: scanned.end,
        };
        self.0.insert(path.to_owned(), progress);
        Ok(())
    }
}

fn warn(path: &Path, scanned: &Scanned, length: u64) {
    for (place, why) in &scanned.damaged {
        tracing::warn!(
            "bytes {}..{} of {} are left out: {why}; what they held is computed again when needed",
            place.start,
            place.end,
            path.display()
        );
    }
    if scanned.end < length {
        tracing::warn!(
            "the last {} bytes of {} are left out: a save was cut short there, or goes on",
            length - scanned.end,
            path.display()
        );
    }
}
