//! The segments that there are.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde::ArchiveError;

use crate::catalog::scan;
use crate::catalog::table::bytes;
use crate::format::class::Class;
use crate::format::id::UniqueId;
use crate::format::segment::{SEGMENT_HEADER, SEGMENT_MAGIC, Segment, checksum};
use crate::store::directory::{VERSION, is_no_folder};
use crate::store::write_manifest::relative;
use crate::vfs::Vfs;
use crate::writer::segment_writer::EXTENSION;

/// The name of a segment, or of a writer: 128 random bits.
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
    pub(super) medium: Arc<dyn Vfs>,
    pub(super) file: PathBuf,
    pub(super) path: String,
    class: Class,
    length: u64,
    pub(super) header: Result<Arc<Segment>, String>,
    pub(super) other_format: Option<u32>,
}

impl SegmentFile {
    /// Its folder and name, within the store.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The class whose folder it is in.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// How long the file is.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its id.
    ///
    /// # Errors
    /// Why its header can't be read. Nothing in it can be then.
    pub fn id(&self) -> Result<SegmentId, &str> {
        let header = self.header.as_ref();
        header
            .map(|segment| SegmentId(segment.id))
            .map_err(|why| &**why)
    }

    /// The version of its format, if that is another than this program reads. Then nothing in it can
    /// be read, and it is not damaged.
    #[must_use]
    pub fn other_format(&self) -> Option<u32> {
        self.other_format
    }

    /// Who wrote it.
    #[must_use]
    pub fn writer(&self) -> Option<SegmentId> {
        let header = self.header.as_ref().ok();
        header.map(|segment| SegmentId(segment.writer))
    }

    /// Whether there is no more of it than what may be left of a writer that is killed while it begins:
    /// part of a header, or zeros.
    pub(super) fn is_barely_begun(&self) -> bool {
        if self.length >= SEGMENT_HEADER as u64 {
            return false;
        }
        let file = self.medium.open(&self.file);
        let bytes = file.and_then(|file| bytes(&*file, 0, self.length));
        bytes.is_ok_and(|bytes| {
            bytes.starts_with(SEGMENT_MAGIC)
                || SEGMENT_MAGIC.starts_with(&bytes)
                || bytes.iter().all(|byte| *byte == 0)
        })
    }

    /// Whether a process on this machine holds it open to write to it, as far as the file
    /// system's locks tell.
    #[must_use]
    pub fn is_being_written(&self) -> bool {
        matches!(self.medium.try_lock(&self.file), Ok(None))
    }
}

pub(super) fn list(medium: &Arc<dyn Vfs>, dir: &Path) -> Result<Vec<SegmentFile>, ArchiveError> {
    let mut files = Vec::new();
    for class in Class::ALL {
        let folder = dir.join(class.folder());
        let mut names = match medium.list(&folder) {
            Err(error) if is_no_folder(&error) => continue,
            names => names.map_err(|error| ArchiveError::io("listing", &folder, error))?,
        };
        names.sort();
        for name in names {
            let file = folder.join(name);
            if file.extension() == Some(OsStr::new(EXTENSION)) {
                files.extend(look_at(medium, dir, file, class));
            }
        }
    }
    Ok(files)
}

/// `None` if it was removed since the folder was listed.
fn look_at(medium: &Arc<dyn Vfs>, dir: &Path, file: PathBuf, class: Class) -> Option<SegmentFile> {
    let length = match medium.look(&file) {
        Ok(found) => found?.length,
        Err(_) => 0,
    };
    let header = match scan::open(&**medium, &file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => Err(error.to_string()),
        Ok(None) => Err("it is too short to have a header".to_owned()),
        Ok(Some(Err(why))) => Err(why),
        Ok(Some(Ok(segment))) if segment.class != class => {
            Err("it belongs in another folder".to_owned())
        }
        Ok(Some(Ok(segment))) => Ok(Arc::new(segment)),
    };
    let other_format = header
        .is_err()
        .then(|| version(&**medium, &file).filter(|version| *version != VERSION));
    Some(SegmentFile {
        other_format: other_format.flatten(),
        path: relative(dir, &file),
        medium: Arc::clone(medium),
        file,
        class,
        length,
        header,
    })
}

/// The version in a header that is whole.
fn version(medium: &dyn Vfs, file: &Path) -> Option<u32> {
    let file = medium.open(file).ok()?;
    let header = bytes(&*file, 0, SEGMENT_HEADER as u64).ok()?;
    let (said, check) = header.split_at_checked(48)?;
    let number = said.get(8..12)?.try_into().ok()?;
    let is_whole = said.starts_with(SEGMENT_MAGIC) && *check == checksum(said);
    is_whole.then(|| u32::from_le_bytes(number))
}
