//! What was read so far of which segment.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::{ArchiveError, Mark};

use crate::catalog::scan;
use crate::catalog::table::{Row, Table};
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::format::segment::{SEGMENT_HEADER, Segment};
use crate::store::directory::is_no_folder;
use crate::store::trust::{Distrusted, Trust};
use crate::vfs::{Found, Vfs};
use crate::writer::segment_writer::{EXTENSION, folder};

/// The segments of a store as far as they were read.
pub(crate) struct Seen {
    trust: Trust,
    distrusted: Distrusted,
    files: HashMap<PathBuf, Progress>,
    /// The segments that this process has sealed.
    sealed: HashSet<UniqueId>,
    /// Replaced by a compaction up to a length, and only still there for those who read them.
    retired: HashMap<UniqueId, u64>,
    /// Those of which that was not known when the directory was looked at last.
    newly_retired: HashSet<UniqueId>,
    /// What can't be made durable.
    doubted: HashSet<UniqueId>,
    /// The files that could not be read when the directory was looked at last.
    unread: Vec<ArchiveError>,
    /// Another folder with segments: that which this process appends to, if not the store's.
    local: Option<PathBuf>,
    /// What others have made durable, and up to where.
    sure: HashMap<UniqueId, u64>,
}

/// How often the directory is listed anew because files are gone that were listed.
const LOOKS: usize = 8;

enum Progress {
    /// This process writes it, and knows what is in it.
    Own(Arc<Segment>),
    /// It is not a segment that can be read; its length then.
    Refused(u64),
    /// Read up to `end` when it was `length` long.
    Read {
        segment: Arc<Segment>,
        length: u64,
        end: u64,
    },
}

impl Progress {
    fn id(&self) -> Option<UniqueId> {
        match self {
            Self::Own(segment) | Self::Read { segment, .. } => Some(segment.id),
            Self::Refused(_) => None,
        }
    }
}

/// What is new.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) tables: Vec<Table>,
    pub(crate) frames: Vec<(Arc<Segment>, Vec<Row>)>,
    pub(crate) marks: Vec<Mark>,
    /// Segments whose files are gone, or retired; what is still new of them is among the rest.
    pub(crate) gone: Vec<UniqueId>,
}

/// A segment as far as it is known.
pub(crate) struct Known {
    pub(crate) path: PathBuf,
    pub(crate) id: UniqueId,
    pub(crate) segment: Arc<Segment>,
    pub(crate) class: Class,
    /// Up to where its frames were read, without its index.
    pub(crate) length: u64,
}

impl Seen {
    pub(crate) fn new(trust: Trust) -> Self {
        Self {
            trust,
            distrusted: Distrusted::default(),
            files: HashMap::new(),
            sealed: HashSet::new(),
            retired: HashMap::new(),
            newly_retired: HashSet::new(),
            doubted: HashSet::new(),
            unread: Vec::new(),
            local: None,
            sure: HashMap::new(),
        }
    }

    /// The segments that are not to be trusted.
    pub(crate) fn distrusted(&self) -> &Distrusted {
        &self.distrusted
    }

    /// Has a segment never vouched for: nobody knows which of its bytes are on the medium.
    pub(crate) fn doubt(&mut self, id: UniqueId) {
        self.doubted.insert(id);
    }

    pub(crate) fn is_doubted(&self, id: &UniqueId) -> bool {
        self.doubted.contains(id)
    }

    /// Why files could not be read at the last look. They may be readable again at the next.
    pub(crate) fn unread(&self) -> &[ArchiveError] {
        &self.unread
    }

    /// Has segments looked for in another folder too.
    pub(crate) fn set_local(&mut self, dir: PathBuf) {
        self.local = Some(dir);
    }

    /// Takes note that somebody has made a segment durable up to here.
    pub(crate) fn set_sure(&mut self, id: UniqueId, end: u64) {
        self.sure.insert(id, end);
    }

    /// Up to where somebody has made a segment durable.
    pub(crate) fn sure(&self, id: &UniqueId) -> u64 {
        self.sure.get(id).copied().unwrap_or(0)
    }

    /// The segments that were read, and how long their files were.
    pub(crate) fn with_lengths(&self) -> impl Iterator<Item = (Known, u64)> + '_ {
        let length = |path: &PathBuf| match self.files.get(path) {
            Some(Progress::Read { length, .. }) => *length,
            _ => 0,
        };
        self.known().map(move |known| {
            let length = length(&known.path);
            (known, length)
        })
    }

    /// The segments of which nothing counts any more and whose files are still there.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = Known> + '_ {
        self.files.iter().filter_map(|(path, progress)| {
            let Progress::Read { segment, end, .. } = progress else {
                return None;
            };
            let retired = self.retired.get(&segment.id)?;
            (end <= retired).then(|| Known {
                path: path.clone(),
                id: segment.id,
                segment: Arc::clone(segment),
                class: segment.class,
                length: *retired,
            })
        })
    }

    /// Takes note of one that somebody tells of.
    pub(crate) fn hear_of_replaced(&mut self, known: Known) {
        self.retired.insert(known.id, known.length);
        let progress = Progress::Read {
            segment: known.segment,
            length: known.length,
            end: known.length,
        };
        self.files.entry(known.path).or_insert(progress);
    }

    /// Takes note of what somebody tells of a segment, from a place on. Gives whether that is
    /// new; what is told of a place that comes later is left to be read.
    pub(crate) fn hear(&mut self, known: Known, from: u64, length: u64) -> bool {
        let end = match self.files.get(&known.path) {
            Some(Progress::Read { end, .. }) => *end,
            Some(Progress::Own(_) | Progress::Refused(_)) => return false,
            None => first(self.retired.get(&known.id)),
        };
        if end != from || known.length < end {
            return false;
        }
        let progress = Progress::Read {
            segment: known.segment,
            length,
            end: known.length,
        };
        self.files.insert(known.path, progress);
        true
    }

    /// Forgets segments whose frames are elsewhere by now.
    pub(crate) fn forget(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.files
            .retain(|_, progress| !progress.id().is_some_and(|id| goes(&id)));
    }

    /// Has a segment of this process left alone, unless another thread has sealed it since: then what
    /// is in it is known. Gives whether it has not.
    pub(crate) fn own(&mut self, segment: &Arc<Segment>) -> bool {
        if self.sealed.contains(&segment.id) {
            return false;
        }
        let progress = Progress::Own(Arc::clone(segment));
        self.files.insert(segment.path.clone(), progress);
        true
    }

    /// Has segments left out from now on, up to a length.
    pub(crate) fn retire(&mut self, segments: impl IntoIterator<Item = (UniqueId, u64)>) {
        for (id, length) in segments {
            let known = self.retired.get(&id);
            if known.is_none_or(|known| *known < length) {
                self.retired.insert(id, length);
                self.newly_retired.insert(id);
            }
        }
    }

    /// Where a segment is now: closing it gives it another name.
    pub(crate) fn path_of(&self, id: &UniqueId) -> Option<&Path> {
        let found = self
            .files
            .iter()
            .find(|(_, progress)| progress.id() == Some(*id));
        found.map(|(path, _)| path.as_path())
    }

    /// The segments that others wrote, or that this process has sealed, but for those of which
    /// nothing counts any more.
    pub(crate) fn known(&self) -> impl Iterator<Item = Known> + '_ {
        self.files.iter().filter_map(|(path, progress)| {
            let Progress::Read { segment, end, .. } = progress else {
                return None;
            };
            if self
                .retired
                .get(&segment.id)
                .is_some_and(|retired| end <= retired)
            {
                return None;
            }
            Some(Known {
                path: path.clone(),
                id: segment.id,
                segment: Arc::clone(segment),
                class: segment.class,
                length: *end,
            })
        })
    }

    /// The segments that this process has saved to and that have no index: one that it writes, and
    /// those that it left after an error.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.files.values().filter_map(|progress| match progress {
            Progress::Own(segment) => Some(segment),
            _ => None,
        })
    }

    /// The segments that this process has sealed, so that all in them is durable.
    pub(crate) fn all_sealed(&self) -> HashSet<UniqueId> {
        self.sealed.clone()
    }

    /// Takes note of a segment that this process has sealed.
    pub(crate) fn sealed(&mut self, table: &Table) {
        self.sealed.insert(table.segment.id);
        let progress = Progress::Read {
            segment: Arc::clone(&table.segment),
            length: table.length,
            end: table.end,
        };
        self.files.insert(table.segment.path.clone(), progress);
    }

    /// Reads what is new.
    ///
    /// A segment that can't be read is warned of and left out; that a directory
    /// can't be listed is an error.
    pub(crate) fn look(&mut self, medium: &dyn Vfs, store: &Path) -> Result<News, ArchiveError> {
        let mut news = News::default();
        for _ in 0..LOOKS {
            if self.look_once(medium, store, &mut news)? {
                break;
            }
        }
        Ok(news)
    }

    /// Reads what is in the folder that this process appends to.
    pub(crate) fn look_at_local(&mut self, medium: &dyn Vfs) -> Result<News, ArchiveError> {
        let mut news = News::default();
        let there = self.local.as_deref().map(|local| segments(medium, local));
        for (path, class) in there.transpose()?.unwrap_or_default() {
            match self.look_at(medium, &path, class, &mut news) {
                // Another rank that found it was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => sde::warning!("{} can't be read: {error}", path.display()),
                Ok(()) => {}
            }
        }
        Ok(news)
    }

    /// Gives whether all files that were listed were there. If not, a compaction has put what was in
    /// them into others, which may have been made after the directory was listed.
    fn look_once(
        &mut self,
        medium: &dyn Vfs,
        store: &Path,
        news: &mut News,
    ) -> Result<bool, ArchiveError> {
        let mut there = segments(medium, store)?;
        if let Some(local) = &self.local {
            there.extend(segments(medium, local)?);
        }
        self.forget_gone(&there, news);
        self.begin_retired(news);
        self.unread.clear();
        let mut all = true;
        for (path, class) in &there {
            match self.look_at(medium, path, *class, news) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => all = false,
                Err(error) => {
                    sde::warning!("{} can't be read: {error}", path.display());
                    self.unread.push(ArchiveError::io("reading", path, error));
                }
            }
        }
        Ok(all)
    }

    /// Forgets files that are not there any more. One that is there under another name
    /// too, as while it is renamed, is read again.
    fn forget_gone(&mut self, there: &BTreeMap<PathBuf, Class>, news: &mut News) {
        let mut gone = HashSet::new();
        self.files.retain(|path, progress| {
            let stays = there.contains_key(path);
            if !stays {
                gone.extend(progress.id());
            }
            stays
        });
        self.begin_again(&gone);
        news.gone.extend(gone);
    }

    /// What was read of segments that are retired since is forgotten; what they have beyond
    /// that is read again.
    fn begin_retired(&mut self, news: &mut News) {
        let retired = std::mem::take(&mut self.newly_retired);
        self.begin_again(&retired);
        news.gone.extend(retired);
    }

    fn begin_again(&mut self, ids: &HashSet<UniqueId>) {
        for progress in self.files.values_mut() {
            let segment = match progress {
                Progress::Own(segment) | Progress::Read { segment, .. } => Arc::clone(segment),
                Progress::Refused(_) => continue,
            };
            if ids.contains(&segment.id) {
                let retired = self.retired.get(&segment.id);
                *progress = Progress::Read {
                    length: 0,
                    end: first(retired),
                    segment,
                };
            }
        }
    }

    fn look_at(
        &mut self,
        medium: &dyn Vfs,
        path: &Path,
        class: Class,
        news: &mut News,
    ) -> io::Result<()> {
        let found = medium.look(path)?;
        let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let (segment, from) = match self.files.get(path) {
            Some(Progress::Own(_)) => return Ok(()),
            Some(Progress::Refused(then)) if *then == found.length => return Ok(()),
            Some(Progress::Read { length: then, .. }) if *then == found.length => return Ok(()),
            Some(Progress::Read { segment, end, .. }) => (Arc::clone(segment), *end),
            Some(Progress::Refused(_)) | None => match self.open(medium, path, &found)? {
                Some(Ok(segment)) if segment.class == class => {
                    let from = first(self.retired.get(&segment.id));
                    (Arc::new(segment), from)
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

    /// Reads the header of a segment that was found, if it is to be trusted.
    fn open(
        &mut self,
        medium: &dyn Vfs,
        path: &Path,
        found: &Found,
    ) -> io::Result<Option<Result<Segment, String>>> {
        if let Some(why) = self.trust.refusal(found) {
            self.distrusted.add(path, &why);
            return Ok(Some(Err(why)));
        }
        scan::open(medium, path)
    }

    fn refuse(&mut self, path: &Path, length: u64, why: &str) {
        sde::warning!("{} is left out: {why}", path.display());
        let progress = Progress::Refused(length);
        self.files.insert(path.to_owned(), progress);
    }

    /// Reads a segment from a place on: its index, if it is read for the first time and has one.
    fn read(
        &self,
        medium: &dyn Vfs,
        segment: &Arc<Segment>,
        from: u64,
        news: &mut News,
    ) -> io::Result<u64> {
        if from == SEGMENT_HEADER as u64 {
            let file = medium.open(&segment.path)?;
            let length = file.length()?;
            if let Some(table) = Table::read(segment, &*file, length)? {
                // Without the index, which nobody may vouch for.
                let end = table.end;
                news.tables.push(table);
                return Ok(end);
            }
        }
        let scanned = scan::scan(medium, segment, from)?;
        scanned.warn(&segment.path);
        news.marks.extend(scanned.marks);
        news.frames.push((Arc::clone(segment), scanned.rows));
        Ok(scanned.frames_end)
    }
}

/// Where the frames of a segment begin that count, if it is retired up to a length.
fn first(retired: Option<&u64>) -> u64 {
    let header = SEGMENT_HEADER as u64;
    retired.map_or(header, |length| header.max(*length))
}

/// The files in a store that are called as segments are.
fn segments(medium: &dyn Vfs, store: &Path) -> Result<BTreeMap<PathBuf, Class>, ArchiveError> {
    let mut there = BTreeMap::new();
    for class in Class::ALL {
        let dir = folder(store, class);
        let names = match medium.list(&dir) {
            Err(error) if is_no_folder(&error) => continue,
            names => names.map_err(|error| ArchiveError::io("listing", &dir, error))?,
        };
        let paths = names.into_iter().map(|name| dir.join(name));
        let segments = paths.filter(|path| path.extension() == Some(OsStr::new(EXTENSION)));
        there.extend(segments.map(|path| (path, class)));
    }
    Ok(there)
}
