//! What was read so far of which segment.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::{ArchiveError, Mark};

use crate::class::Class;
use crate::id::FileId;
use crate::lane::{EXTENSION, folder};
use crate::medium::Medium;
use crate::scan::{self, Scanned};
use crate::segment::{SEGMENT_HEADER, Segment};
use crate::table::{Row, Table};

/// The segments of a store as far as they were read.
#[derive(Default)]
pub(crate) struct Seen {
    files: HashMap<PathBuf, Progress>,
    /// Replaced by a compaction, and only still there for those who read them.
    retired: HashSet<FileId>,
}

enum Progress {
    /// This process writes it, and knows what is in it.
    Own(FileId),
    /// It is not a segment that can be read; its length then.
    Refused(u64),
    /// Read up to `end` when it was `length` long.
    Read {
        segment: Arc<Segment>,
        length: u64,
        end: u64,
    },
}

/// What is new.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) tables: Vec<Table>,
    pub(crate) frames: Vec<(Arc<Segment>, Vec<Row>)>,
    pub(crate) marks: Vec<Mark>,
    /// Segments whose files are gone, or retired.
    pub(crate) gone: Vec<FileId>,
}

/// A segment as far as it is known.
pub(crate) struct Known {
    pub(crate) path: PathBuf,
    pub(crate) id: FileId,
    pub(crate) class: Class,
    /// Up to where it was read.
    pub(crate) length: u64,
}

impl Seen {
    /// Has a segment of this process left alone.
    pub(crate) fn own(&mut self, segment: &Segment) {
        let progress = Progress::Own(segment.id);
        self.files.insert(segment.path.clone(), progress);
    }

    /// Has segments left out from now on.
    pub(crate) fn retire(&mut self, ids: impl IntoIterator<Item = FileId>) {
        self.retired.extend(ids);
    }

    /// The segments that others wrote, or that this process has sealed.
    pub(crate) fn known(&self) -> impl Iterator<Item = Known> + '_ {
        self.files.iter().filter_map(|(path, progress)| {
            let Progress::Read { segment, end, .. } = progress else {
                return None;
            };
            Some(Known {
                path: path.clone(),
                id: segment.id,
                class: segment.class,
                length: *end,
            })
        })
    }

    /// Takes note of a segment that this process has sealed.
    pub(crate) fn sealed(&mut self, table: &Table, length: u64) {
        let progress = Progress::Read {
            segment: Arc::clone(&table.segment),
            length,
            end: length,
        };
        self.files.insert(table.segment.path.clone(), progress);
    }

    /// Reads what is new.
    ///
    /// A segment that can't be read is warned of and left out; that a directory
    /// can't be listed is an error.
    pub(crate) fn look(&mut self, medium: &dyn Medium, store: &Path) -> Result<News, ArchiveError> {
        let mut news = News::default();
        let mut there = HashSet::new();
        for class in Class::ALL {
            let dir = folder(store, class);
            let names = match medium.list(&dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                names => names.map_err(|error| ArchiveError::io("listing", &dir, error))?,
            };
            for name in names {
                let path = dir.join(name);
                if path.extension() != Some(OsStr::new(EXTENSION)) {
                    continue;
                }
                if let Err(error) = self.look_at(medium, &path, class, &mut news) {
                    tracing::warn!("{} can't be read: {error}", path.display());
                }
                there.insert(path);
            }
        }
        self.forget_gone(&there, &mut news);
        Ok(news)
    }

    fn forget_gone(&mut self, there: &HashSet<PathBuf>, news: &mut News) {
        let retired = &self.retired;
        self.files.retain(|path, progress| {
            let id = match progress {
                Progress::Own(id) => *id,
                Progress::Read { segment, .. } => segment.id,
                Progress::Refused(_) => return there.contains(path),
            };
            let stays = there.contains(path) && !retired.contains(&id);
            if !stays {
                news.gone.push(id);
            }
            stays
        });
    }

    fn look_at(
        &mut self,
        medium: &dyn Medium,
        path: &Path,
        class: Class,
        news: &mut News,
    ) -> io::Result<()> {
        // `None`: it was removed since the directory was listed.
        let Some(found) = medium.look(path)? else {
            return Ok(());
        };
        let (segment, from) = match self.files.get(path) {
            Some(Progress::Own(_)) => return Ok(()),
            Some(Progress::Refused(then)) if *then == found.length => return Ok(()),
            Some(Progress::Read { length: then, .. }) if *then == found.length => return Ok(()),
            Some(Progress::Read { segment, end, .. }) => (Arc::clone(segment), *end),
            Some(Progress::Refused(_)) | None => match scan::open(medium, path)? {
                Some(Ok(segment)) if self.retired.contains(&segment.id) => return Ok(()),
                Some(Ok(segment)) if segment.class == class => {
                    (Arc::new(segment), SEGMENT_HEADER as u64)
                }
                Some(Ok(_)) => {
                    self.refuse(path, found.length, "it belongs in another folder");
                    return Ok(());
                }
                Some(Err(why)) => {
                    self.refuse(path, found.length, &why);
                    return Ok(());
                }
                // Its writer has only just begun, or was killed then.
                None => return Ok(()),
            },
        };
        let end = self.read(medium, &segment, from, news)?;
        let progress = Progress::Read {
            segment,
            length: found.length,
            end,
        };
        self.files.insert(path.to_owned(), progress);
        Ok(())
    }

    fn refuse(&mut self, path: &Path, length: u64, why: &str) {
        tracing::warn!("{} is left out: {why}", path.display());
        let progress = Progress::Refused(length);
        self.files.insert(path.to_owned(), progress);
    }

    /// Reads a segment from a place on: its index, if it is read for the first time and has one.
    fn read(
        &self,
        medium: &dyn Medium,
        segment: &Arc<Segment>,
        from: u64,
        news: &mut News,
    ) -> io::Result<u64> {
        if from == SEGMENT_HEADER as u64 {
            let file = medium.open(&segment.path)?;
            let length = file.length()?;
            if let Some(table) = Table::read(segment, &*file, length)? {
                news.tables.push(table);
                return Ok(length);
            }
        }
        let scanned = scan::scan(medium, segment, from)?;
        warn(&segment.path, &scanned);
        news.marks.extend(scanned.marks);
        news.frames.push((Arc::clone(segment), scanned.rows));
        Ok(scanned.end)
    }
}

fn warn(path: &Path, scanned: &Scanned) {
    for (place, why) in &scanned.damaged {
        tracing::warn!(
            "bytes {}..{} of {} are left out: {why}; what they held is computed again when needed",
            place.start,
            place.end,
            path.display()
        );
    }
    if scanned.end < scanned.length {
        tracing::warn!(
            "the last {} bytes of {} are left out: a save was cut short there, or goes on",
            scanned.length - scanned.end,
            path.display()
        );
    }
}
