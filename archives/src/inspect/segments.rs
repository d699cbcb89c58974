//! The segments of a store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::archiver::ArchiveError;

use super::Inspection;
use crate::catalog::segments;
use crate::format::VERSION;
use crate::format::class::Part;
use crate::format::id::UniqueId;
use crate::format::segment::{SEGMENT_HEADER, SEGMENT_MAGIC, Segment, path_in_store};

/// The id of a segment: 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentId(pub(super) UniqueId);

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A file in a folder of segments.
#[derive(Clone, Debug)]
pub struct SegmentFile {
    pub(super) inspection: Inspection,
    pub(super) file: Arc<Path>,
    pub(super) path: Arc<str>,
    length: u64,
    author: Option<u32>,
    pub(super) header: Result<Arc<Segment>, String>,
    pub(super) other_format: Option<u32>,
    /// Whether the file is only what a writer leaves that is killed at the beginning: part of a header, or zeros.
    pub(super) is_barely_begun: bool,
}

impl SegmentFile {
    /// The segment's folder and name, within the store.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file's length.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The user who has written all that is in it, by number: the owner of the file. `None` if the medium knows no users.
    #[must_use]
    pub fn author(&self) -> Option<u32> {
        self.author
    }

    /// The segment's id.
    ///
    /// # Errors
    /// If its header can't be read: the reason. Then nothing in it can be read.
    pub fn id(&self) -> Result<SegmentId, &str> {
        let header = self.header.as_ref();
        header
            .map(|segment| SegmentId(segment.id))
            .map_err(|why| &**why)
    }

    /// The version of its format, if this program can't read it; that is no damage.
    #[must_use]
    pub fn other_format(&self) -> Option<u32> {
        self.other_format
    }

    /// Whether a process on this machine is writing it, as far as locks tell.
    #[must_use]
    pub fn is_being_written(&self) -> bool {
        matches!(self.inspection.vfs.try_lock(&self.file), Ok(None))
    }
}

impl Inspection {
    /// The segments, by class and name. Files in place of [a folder](Self::misplaced) are skipped.
    ///
    /// # Errors
    /// If a folder can't be listed.
    pub fn segments(&self) -> Result<Vec<SegmentFile>, ArchiveError> {
        let there = segments(&*self.vfs, &self.dir)?.into_iter();
        let files = there.filter_map(|(file, part)| look_at(self, file, part));
        Ok(files.collect())
    }
}

/// `None` if the file was removed after the listing.
fn look_at(inspection: &Inspection, file: PathBuf, part: Part) -> Option<SegmentFile> {
    let vfs = &*inspection.vfs;
    let (length, link, owner) = match vfs.look(&file) {
        Ok(found) => found.map(|found| (found.length, found.link, found.owner))?,
        Err(_) => (0, false, None),
    };
    let mut head = [0; SEGMENT_HEADER];
    let read = vfs.open(&file);
    let read = read.and_then(|file| file.read_up_to(&mut head, 0));
    let there = &head[..*read.as_ref().unwrap_or(&0)];
    let is_short = there.len() < SEGMENT_HEADER;
    let is_begun = there.starts_with(SEGMENT_MAGIC) || SEGMENT_MAGIC.starts_with(there);
    let is_beginning = is_begun || there.iter().all(|byte| *byte == 0);
    let is_barely_begun = read.is_ok() && is_short && is_beginning;
    let header = match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound && link => {
            Err("it is a link that leads nowhere".to_owned())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => Err(error.to_string()),
        Ok(_) if is_short => Err("it is too short to have a header".to_owned()),
        Ok(_) => Segment::from_header(file.clone(), &head),
    };
    let header = header.and_then(|segment| match segment.part == part {
        true => Ok(Arc::new(segment)),
        false => Err("it belongs in another folder".to_owned()),
    });
    Some(SegmentFile {
        other_format: Segment::version(&head).filter(|version| *version != VERSION),
        path: path_in_store(part, &file).into(),
        inspection: inspection.clone(),
        file: file.into(),
        length,
        author: owner.map(|owner| owner.user),
        header,
        is_barely_begun,
    })
}
