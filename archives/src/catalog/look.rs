//! Reads new files and frames in the directory of a store.
//!
//! A look holds no lock that a call waits for. It begins with a copy of the known segments, and applies all that it
//! has read at once, at its end. Meanwhile only this process's own saves may change the catalog, in segments that a
//! look leaves alone; after any other change the look is repeated.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::archiver::ArchiveError;

use super::reading::{CatalogChanges, read_anew, read_on};
use super::scan;
use super::segments::{KnownSegment, Progress};
use super::{Catalog, LOOKS};
use crate::format::class::{EXTENSION, Part, folder};
use crate::format::directory::{check_links, is_no_folder};
use crate::format::id::UniqueId;
use crate::format::segment::Segment;
use crate::format::trust::{Trust, no_permission, not_listed};
use crate::locks::{lock, try_lock, warnings_after};
use crate::vfs::{Found, Vfs, is_gone};

/// Held by the thread that looks.
pub(crate) struct Looking;

/// A look at the directory.
struct Look<'a> {
    catalog: &'a Catalog,
    /// The files known when the look began.
    before: HashMap<PathBuf, Progress>,
    edition: u64,
    newly_replaced: HashSet<UniqueId>,
    has_looked: bool,
    /// Files that are gone.
    gone: Vec<PathBuf>,
    /// How far this look has read each file.
    read: HashMap<PathBuf, Progress>,
    unread: Vec<ArchiveError>,
    changes: CatalogChanges,
    /// Whether all listed files were there. If not, a compaction has moved their frames to files that may be newer
    /// than the listing.
    all: bool,
}

impl Catalog {
    /// Reads the new files and frames of the store.
    ///
    /// A segment that can't be read is left out with a warning; a directory that can't be listed is an error.
    pub(crate) fn look(&self) -> Result<(), ArchiveError> {
        warnings_after(|| {
            let _looking = lock(&self.looking);
            self.look_alone()
        })
    }

    /// Reads new files, unless another thread does so now: then gives `false`.
    pub(crate) fn look_if_idle(&self) -> Result<bool, ArchiveError> {
        warnings_after(|| match try_lock(&self.looking) {
            Some(_looking) => self.look_alone().map(|()| true),
            None => Ok(false),
        })
    }

    fn look_alone(&self) -> Result<(), ArchiveError> {
        for more in (0..LOOKS).rev() {
            let mut look = Look::new(self);
            let mut there = match segments(&*self.vfs, &self.dir) {
                // A network file system has another folder there by now.
                Err(ArchiveError::Io { cause, .. }) if is_gone(&cause) && more > 0 => continue,
                there => there?,
            };
            check_links(&*self.vfs, &self.dir, self.trust)?;
            if let Some(local) = &self.local {
                there.extend(segments(&*self.vfs, local)?);
            }
            look.forget_gone(&there);
            look.read_all(there);
            if (look.all || more == 0) && self.take_in(look) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the folder that this process appends to.
    pub(crate) fn look_at_local(&self) -> Result<(), ArchiveError> {
        let there = self.local.as_deref();
        let there = there.map(|local| segments(&*self.vfs, local));
        let there = there.transpose()?.unwrap_or_default();
        warnings_after(|| {
            let _looking = lock(&self.looking);
            let mut look = Look::new(self);
            // A file that is gone was handled by another rank, which found it first.
            look.read_all(there);
            self.take_in(look);
        });
        Ok(())
    }

    /// Applies the look. Gives `false`, and changes nothing, if others told of segments since the look began, or
    /// some were forgotten.
    fn take_in(&self, look: Look<'_>) -> bool {
        let mut segments = lock(&self.segments);
        if segments.edition != look.edition {
            return false;
        }
        segments.has_looked = true;
        segments.unread = look.unread;
        segments
            .newly_replaced
            .retain(|id| !look.newly_replaced.contains(id));
        look.gone.iter().for_each(|path| segments.forget_file(path));
        let mut changes = look.changes;
        for (path, progress) in look.read {
            let is_begun = segments.files.contains_key(&path) && !look.before.contains_key(&path);
            match progress.segment().filter(|_| is_begun) {
                // This process has begun the segment meanwhile, and knows its frames.
                Some(own) => {
                    changes.sealed.retain(|(segment, _)| segment.id != own.id);
                    changes.frames.retain(|(segment, _)| segment.id != own.id);
                }
                None => drop(segments.files.insert(path, progress)),
            }
        }
        // The lock is still held, so marks and entries of one look are applied in order.
        self.apply(changes);
        true
    }
}

impl<'a> Look<'a> {
    fn new(catalog: &'a Catalog) -> Self {
        let segments = lock(&catalog.segments);
        Self {
            catalog,
            before: segments.files.clone(),
            edition: segments.edition,
            newly_replaced: segments.newly_replaced.clone(),
            has_looked: segments.has_looked,
            gone: Vec::new(),
            read: HashMap::new(),
            unread: Vec::new(),
            changes: CatalogChanges::default(),
            all: true,
        }
    }

    /// Forgets files that are gone. A file that also has another name, as during a rename, is read again.
    fn forget_gone(&mut self, there: &BTreeSet<(PathBuf, Part)>) {
        let there: HashSet<&Path> = there.iter().map(|(path, _)| path.as_path()).collect();
        let mut again = self.newly_replaced.clone();
        for (path, progress) in &self.before {
            if !there.contains(path.as_path()) {
                again.extend(progress.segment().map(|one| one.id));
                self.gone.push(path.clone());
            }
        }
        // Segments that this process writes stay known. One that it has abandoned is read like another process's.
        for (path, progress) in &self.before {
            if let Progress::Own(own) = progress
                && there.contains(path.as_path())
            {
                match own.is_abandoned() {
                    true => again.insert(own.id),
                    false => again.remove(&own.id),
                };
            }
        }
        // These segments are read again, from the place up to which they were replaced.
        for (path, progress) in &self.before {
            if let Some(segment) = progress.segment()
                && again.contains(&segment.id)
                && there.contains(path.as_path())
            {
                let again = KnownSegment {
                    length: 0,
                    end: self.first(&segment.id),
                    segment: Arc::clone(segment),
                    sealed: false,
                };
                self.read.insert(path.clone(), Progress::Read(again));
            }
        }
        self.changes.gone = again;
    }

    /// The place of a segment's first frame that is not replaced.
    fn first(&self, id: &UniqueId) -> u64 {
        lock(&self.catalog.segments).first(id)
    }

    fn read_all(&mut self, there: BTreeSet<(PathBuf, Part)>) {
        for (path, part) in there {
            match self.read(&path, part) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => self.all = false,
                Err(error) => self.not_read(&path, error),
            }
        }
    }

    /// Tells of a file that can't be read, and that it would make the store compute its results again.
    fn not_read(&mut self, path: &Path, error: io::Error) {
        let vfs = &*self.catalog.vfs;
        match no_permission(vfs, path, &error) {
            // Its maker has not given it its permissions yet.
            Some(_) if matches!(vfs.length_of(path), Ok(Some(0))) => return,
            Some(why) => {
                let is_new = lock(&self.catalog.segments).distrusted.add(path, &why);
                if is_new {
                    sde::warning!("{} is left out: {why}", path.display());
                }
            }
            None => sde::warning!("{} can't be read: {error}", path.display()),
        }
        self.unread.push(ArchiveError::io("reading", path, error));
    }

    fn read(&mut self, path: &Path, part: Part) -> io::Result<()> {
        let known = self.read.get(path).or_else(|| self.before.get(path));
        match known {
            Some(Progress::Own(_)) => return Ok(()),
            Some(Progress::Read(known)) if known.sealed => return Ok(()),
            _ => {}
        }
        let vfs = &*self.catalog.vfs;
        let found = vfs.look(path)?;
        let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if let Some(user) = vfs.untrusted(&found) {
            self.pass_over(path, &found, user);
            return Ok(());
        }
        let is_new = !matches!(known, Some(Progress::Read(known)) if known.length > 0);
        let (segment, from) = match known {
            Some(Progress::Refused(then)) if *then == found.length => return Ok(()),
            Some(Progress::Read(known))
                if known.length == found.length && !known.may_have_spare() =>
            {
                return Ok(());
            }
            Some(Progress::Read(known)) => (Arc::clone(&known.segment), known.end),
            Some(_) | None => match self.open(path, part, &found)? {
                Some(Ok(segment)) => {
                    let from = self.first(&segment.id);
                    (Arc::new(segment), from)
                }
                Some(Err(why)) => {
                    sde::warning!("{} is left out: {why}", path.display());
                    let refused = Progress::Refused(found.length);
                    self.read.insert(path.to_owned(), refused);
                    return Ok(());
                }
                // The writer has only just created the file, or was killed then.
                None => return Ok(()),
            },
        };
        let read = if is_new { read_anew } else { read_on };
        let (end, sealed) = read(vfs, &segment, from, self.has_looked, &mut self.changes)?;
        let known = KnownSegment {
            segment,
            end,
            length: found.length,
            sealed,
        };
        self.read.insert(path.to_owned(), Progress::Read(known));
        Ok(())
    }

    /// Leaves out a segment of a user whose code is not run, and says so once.
    fn pass_over(&mut self, path: &Path, found: &Found, user: u32) {
        if lock(&self.catalog.segments).untrusted.insert(user) {
            sde::warning!(
                "what user {user} has saved in {} is not used, since it would be run: if that user may run code as you, say so by `sde trust {user}`, and keep the group from writing to the files (`sde init --group`)",
                self.catalog.dir.display()
            );
        }
        let refused = Progress::Refused(found.length);
        self.read.insert(path.to_owned(), refused);
    }

    /// Reads the header of a segment, if its file can be trusted.
    fn open(
        &self,
        path: &Path,
        part: Part,
        found: &Found,
    ) -> io::Result<Option<Result<Segment, String>>> {
        if let Some(why) = self.catalog.trust.refusal(found) {
            lock(&self.catalog.segments).distrusted.add(path, &why);
            return Ok(Some(Err(why)));
        }
        let opened = scan::open(&*self.catalog.vfs, path)?;
        let is_here = |mut segment: Segment| {
            let user = self.catalog.vfs.user();
            let owner = found.owner.map(|owner| owner.user);
            segment.is_of_others = owner.is_some() && user.is_some() && owner != user;
            segment.is_of_another =
                segment.is_of_others && matches!(self.catalog.trust, Trust::Group(_));
            match segment.part == part {
                true => Ok(segment),
                false => Err("it belongs in another folder".to_owned()),
            }
        };
        Ok(opened.map(|opened| opened.and_then(is_here)))
    }
}

/// The files in a store with the names of segments.
pub(crate) fn segments(
    vfs: &dyn Vfs,
    store: &Path,
) -> Result<BTreeSet<(PathBuf, Part)>, ArchiveError> {
    let mut there = BTreeSet::new();
    for part in Part::ALL {
        let dir = folder(store, part);
        let names = match vfs.list(&dir) {
            Err(error) if is_no_folder(&error) => continue,
            names => names.map_err(|error| not_listed(vfs, store, &dir, error))?,
        };
        let paths = names.into_iter().map(|name| dir.join(name));
        let segments = paths.filter(|path| path.extension() == Some(OsStr::new(EXTENSION)));
        there.extend(segments.map(|path| (path, part)));
    }
    Ok(there)
}
