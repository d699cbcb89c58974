//! What was read so far of which segment.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::ArchiveError;

use super::changes::CatalogChanges;
use super::reading::{read_anew, read_on};
use super::scan;
use crate::format::class::{EXTENSION, Part, folder};
use crate::format::directory::is_no_folder;
use crate::format::id::UniqueId;
use crate::format::index_block::IndexBlock;
use crate::format::segment::{SEGMENT_HEADER, SPARE, Segment};
use crate::format::trust::{Distrusted, Trust};
use crate::vfs::{Found, Vfs};

/// The segments of a store as far as they were read.
pub(crate) struct SegmentCatalog {
    trust: Trust,
    distrusted: Distrusted,
    files: HashMap<PathBuf, Progress>,
    /// The segments that this process has sealed.
    sealed: HashSet<UniqueId>,
    /// Replaced by a compaction up to a length, and only still there for those who read them.
    replaced: HashMap<UniqueId, u64>,
    /// Those of which that was not known when the directory was looked at last.
    newly_replaced: HashSet<UniqueId>,
    /// What can't be made durable.
    doubted: HashSet<UniqueId>,
    /// The files that could not be read when the directory was looked at last.
    unread: Vec<ArchiveError>,
    /// Another folder with segments: that which this process appends to, if not the store's.
    local: Option<PathBuf>,
    /// What others have made durable, and up to where.
    durable_to: HashMap<UniqueId, u64>,
    /// Whether the directory was looked at before.
    has_looked: bool,
}

/// How often the directory is listed anew because files are gone that were listed.
const LOOKS: usize = 8;

enum Progress {
    /// This process writes it, and knows what is in it.
    Own(Arc<Segment>),
    /// It is not a segment that can be read; its length then.
    Refused(u64),
    /// Another process writes it, or wrote it.
    Read(KnownSegment),
}

impl Progress {
    fn segment(&self) -> Option<&Arc<Segment>> {
        match self {
            Self::Own(segment) => Some(segment),
            Self::Read(known) => Some(&known.segment),
            Self::Refused(_) => None,
        }
    }
}

/// A segment as far as it is known.
#[derive(Clone)]
pub(crate) struct KnownSegment {
    pub(crate) segment: Arc<Segment>,
    /// Up to where its frames were read, without its index.
    pub(crate) end: u64,
    /// How long its file was.
    pub(crate) length: u64,
    /// Whether it has an index: it does not grow.
    pub(crate) sealed: bool,
}

impl KnownSegment {
    /// Whether it may end with zeros that its writer has to spare: there may be frames by now.
    fn may_have_spare(&self) -> bool {
        (1..=SPARE).contains(&self.length.saturating_sub(self.end))
    }
}

impl SegmentCatalog {
    pub(crate) fn new(trust: Trust, local: Option<PathBuf>) -> Self {
        Self {
            trust,
            distrusted: Distrusted::default(),
            files: HashMap::new(),
            sealed: HashSet::new(),
            replaced: HashMap::new(),
            newly_replaced: HashSet::new(),
            doubted: HashSet::new(),
            unread: Vec::new(),
            local,
            durable_to: HashMap::new(),
            has_looked: false,
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

    /// Takes note that another rank has made a segment durable up to here.
    pub(crate) fn set_durable_to(&mut self, id: UniqueId, end: u64) {
        self.durable_to.insert(id, end);
    }

    /// Up to where another rank has made a segment durable.
    pub(crate) fn durable_to(&self, id: &UniqueId) -> u64 {
        self.durable_to.get(id).copied().unwrap_or(0)
    }

    /// The segments that others wrote, or that this process has sealed, but for those of which
    /// nothing counts any more.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownSegment> + '_ {
        self.read()
            .filter(|known| self.replaced_to(known).is_none_or(|to| known.end > to))
    }

    /// The segments of which nothing counts any more and whose files are still there.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = KnownSegment> + '_ {
        self.read().filter_map(|known| {
            let end = self.replaced_to(&known).filter(|to| known.end <= *to)?;
            Some(KnownSegment { end, ..known })
        })
    }

    fn replaced_to(&self, known: &KnownSegment) -> Option<u64> {
        self.replaced.get(&known.segment.id).copied()
    }

    fn read(&self) -> impl Iterator<Item = KnownSegment> + '_ {
        self.files.values().filter_map(|progress| match progress {
            Progress::Read(known) => Some(known.clone()),
            Progress::Own(_) | Progress::Refused(_) => None,
        })
    }

    /// Takes note of a segment that another rank tells of as replaced.
    pub(crate) fn apply_replaced(&mut self, known: KnownSegment) {
        self.replaced.insert(known.segment.id, known.end);
        self.files
            .entry(known.segment.path.clone())
            .or_insert(Progress::Read(KnownSegment {
                length: known.end,
                ..known
            }));
    }

    /// Takes note of what another rank tells of a segment, from a place on. Gives whether that is
    /// new; what is told of a place that comes later is left to be read.
    pub(crate) fn apply(&mut self, known: KnownSegment, from: u64) -> bool {
        let end = match self.files.get(&known.segment.path) {
            Some(Progress::Read(known)) => known.end,
            Some(Progress::Own(_) | Progress::Refused(_)) => return false,
            None => self.first(&known.segment.id),
        };
        if end != from || known.end < end {
            return false;
        }
        self.note_read(known);
        true
    }

    fn note_read(&mut self, known: KnownSegment) {
        let path = known.segment.path.clone();
        self.files.insert(path, Progress::Read(known));
    }

    /// Forgets segments whose frames are elsewhere by now.
    pub(crate) fn forget(&mut self, goes: impl Fn(&UniqueId) -> bool) {
        self.files
            .retain(|_, progress| !progress.segment().is_some_and(|one| goes(&one.id)));
    }

    /// Has a segment left alone that this process writes.
    pub(crate) fn own(&mut self, segment: &Arc<Segment>) {
        let progress = Progress::Own(Arc::clone(segment));
        self.files.insert(segment.path.clone(), progress);
    }

    /// Takes note of a segment that this process has sealed.
    pub(crate) fn note_sealed(&mut self, segment: &Arc<Segment>, block: &IndexBlock) {
        self.sealed.insert(segment.id);
        let known = KnownSegment {
            segment: Arc::clone(segment),
            end: block.end,
            length: block.length,
            sealed: true,
        };
        self.note_read(known);
    }

    /// The segments that this process has sealed, so that all in them is durable.
    pub(crate) fn sealed(&self) -> &HashSet<UniqueId> {
        &self.sealed
    }

    /// The segments that this process has saved to and that have no index: those that it writes, and
    /// those that it left after an error.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.files.values().filter_map(|progress| match progress {
            Progress::Own(segment) => Some(segment),
            _ => None,
        })
    }

    /// Has segments left out from now on, up to a length.
    pub(crate) fn replace(&mut self, segments: impl IntoIterator<Item = (UniqueId, u64)>) {
        for (id, length) in segments {
            let known = self.replaced.get(&id);
            if known.is_none_or(|known| *known < length) {
                self.replaced.insert(id, length);
                self.newly_replaced.insert(id);
            }
        }
    }

    /// Where segments are now, whatever their names: closing one gives it another.
    pub(crate) fn by_id(&self) -> HashMap<UniqueId, &Arc<Segment>> {
        let segments = self.files.values().filter_map(Progress::segment);
        segments.map(|segment| (segment.id, segment)).collect()
    }

    /// Reads what is new.
    ///
    /// A segment that can't be read is warned of and left out; that a directory
    /// can't be listed is an error.
    pub(crate) fn look(
        &mut self,
        vfs: &dyn Vfs,
        store: &Path,
    ) -> Result<CatalogChanges, ArchiveError> {
        let mut changes = CatalogChanges::default();
        for _ in 0..LOOKS {
            if self.look_once(vfs, store, &mut changes)? {
                break;
            }
        }
        self.has_looked = true;
        Ok(changes)
    }

    /// Reads what is in the folder that this process appends to.
    pub(crate) fn look_at_local(&mut self, vfs: &dyn Vfs) -> Result<CatalogChanges, ArchiveError> {
        let mut changes = CatalogChanges::default();
        let there = self.local.as_deref().map(|local| segments(vfs, local));
        for (path, part) in there.transpose()?.unwrap_or_default() {
            match self.look_at(vfs, &path, part, &mut changes) {
                // Another rank that found it was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => sde::warning!("{} can't be read: {error}", path.display()),
                Ok(()) => {}
            }
        }
        Ok(changes)
    }

    /// Gives whether all files that were listed were there. If not, a compaction has put what was in
    /// them into others, which may have been made after the directory was listed.
    fn look_once(
        &mut self,
        vfs: &dyn Vfs,
        store: &Path,
        changes: &mut CatalogChanges,
    ) -> Result<bool, ArchiveError> {
        let mut there = segments(vfs, store)?;
        if let Some(local) = &self.local {
            there.extend(segments(vfs, local)?);
        }
        self.forget_gone(&there, changes);
        let newly_replaced = std::mem::take(&mut self.newly_replaced);
        self.begin_again(newly_replaced, changes);
        self.unread.clear();
        let mut all = true;
        for (path, part) in &there {
            match self.look_at(vfs, path, *part, changes) {
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
    fn forget_gone(&mut self, there: &BTreeSet<(PathBuf, Part)>, changes: &mut CatalogChanges) {
        let there: HashSet<&Path> = there.iter().map(|(path, _)| path.as_path()).collect();
        let mut gone = HashSet::new();
        self.files.retain(|path, progress| {
            let stays = there.contains(path.as_path());
            if !stays {
                gone.extend(progress.segment().map(|one| one.id));
            }
            stays
        });
        self.begin_again(gone, changes);
    }

    /// What was read of these is forgotten; what they have beyond what was replaced is read again.
    fn begin_again(&mut self, ids: HashSet<UniqueId>, changes: &mut CatalogChanges) {
        if ids.is_empty() {
            return;
        }
        let replaced = &self.replaced;
        for progress in self.files.values_mut() {
            let segment = progress.segment().filter(|one| ids.contains(&one.id));
            if let Some(segment) = segment.cloned() {
                *progress = Progress::Read(KnownSegment {
                    length: 0,
                    end: first(replaced.get(&segment.id)),
                    segment,
                    sealed: false,
                });
            }
        }
        changes.gone.extend(ids);
    }

    /// Where the frames of a segment begin that count.
    fn first(&self, id: &UniqueId) -> u64 {
        first(self.replaced.get(id))
    }

    fn look_at(
        &mut self,
        vfs: &dyn Vfs,
        path: &Path,
        part: Part,
        changes: &mut CatalogChanges,
    ) -> io::Result<()> {
        match self.files.get(path) {
            Some(Progress::Own(_)) => return Ok(()),
            Some(Progress::Read(known)) if known.sealed => return Ok(()),
            _ => {}
        }
        let found = vfs.look(path)?;
        let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let known = self.files.get(path);
        let progress_is_new = !matches!(known, Some(Progress::Read(known)) if known.length > 0);
        let (segment, from) = match known {
            Some(Progress::Refused(then)) if *then == found.length => return Ok(()),
            Some(Progress::Read(known))
                if known.length == found.length && !known.may_have_spare() =>
            {
                return Ok(());
            }
            Some(Progress::Read(known)) => (Arc::clone(&known.segment), known.end),
            Some(_) | None => match self.open(vfs, path, &found)? {
                Some(Ok(segment)) if segment.part == part => {
                    let from = self.first(&segment.id);
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
        let (end, sealed) = match progress_is_new {
            true => read_anew(vfs, &segment, from, self.has_looked, changes)?,
            false => read_on(vfs, &segment, from, self.has_looked, changes)?,
        };
        let known = KnownSegment {
            segment,
            end,
            length: found.length,
            sealed,
        };
        self.note_read(known);
        Ok(())
    }

    /// Reads the header of a segment that was found, if it is to be trusted.
    fn open(
        &mut self,
        vfs: &dyn Vfs,
        path: &Path,
        found: &Found,
    ) -> io::Result<Option<Result<Segment, String>>> {
        if let Some(why) = self.trust.refusal(found) {
            self.distrusted.add(path, &why);
            return Ok(Some(Err(why)));
        }
        scan::open(vfs, path)
    }

    fn refuse(&mut self, path: &Path, length: u64, why: &str) {
        sde::warning!("{} is left out: {why}", path.display());
        let progress = Progress::Refused(length);
        self.files.insert(path.to_owned(), progress);
    }
}

/// Where the frames of a segment begin that count, if it is replaced up to a length.
fn first(replaced: Option<&u64>) -> u64 {
    let header = SEGMENT_HEADER as u64;
    replaced.map_or(header, |length| header.max(*length))
}

/// The files in a store that are called as segments are.
pub(crate) fn segments(
    vfs: &dyn Vfs,
    store: &Path,
) -> Result<BTreeSet<(PathBuf, Part)>, ArchiveError> {
    let mut there = BTreeSet::new();
    for part in Part::ALL {
        let dir = folder(store, part);
        let names = match vfs.list(&dir) {
            Err(error) if is_no_folder(&error) => continue,
            names => names.map_err(|error| ArchiveError::io("listing", &dir, error))?,
        };
        let paths = names.into_iter().map(|name| dir.join(name));
        let segments = paths.filter(|path| path.extension() == Some(OsStr::new(EXTENSION)));
        there.extend(segments.map(|path| (path, part)));
    }
    Ok(there)
}
