//! Recognizes stores, and makes directories stores.
//!
//! A person may name the wrong directory, whose contents must not be touched. So only a directory with a `FORMAT`
//! file counts as a store, and only an empty directory can become one.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Duration;

use sde::archiver::ArchiveError;

use crate::format::class::{EXTENSION, Part, folder};
use crate::format::id::UniqueId;
use crate::format::segment::SEGMENT_HEADER;
use crate::format::trust::{LINK, Trust, cannot_open, not_a_store, not_trusted};
use crate::format::{VERSION, manifest};
use crate::vfs::{FileKind, Found, Vfs, make_dirs, read_bytes};

pub(crate) const FORMAT: &str = "FORMAT";
/// What is in a store beside the folders with what it holds.
const NO_PARTS: [&str; 2] = [FORMAT, "work"];
const FORMAT_START: &str = "SDE store, format ";
/// The suffix of a file that is still being written; a crash may leave such files.
pub(crate) const UNFINISHED: &str = ".unfinished";

/// The most time a process may take from making a file to naming it. A slower one would get an error, since the
/// file is gone.
const LONGEST_TO_NAME: Duration = Duration::from_secs(60);

/// The state of a directory, as a store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DirectoryContent {
    /// A store that this crate reads.
    Store,
    /// Nothing, or a directory with nothing in it.
    Nothing,
}

/// Looks at a directory without changing it.
pub(crate) fn look(vfs: &dyn Vfs, dir: &Path) -> Result<DirectoryContent, ArchiveError> {
    let looked = vfs.look(dir);
    match looked.map_err(|error| cannot_open(dir, "looking at it", error))? {
        None => return Ok(DirectoryContent::Nothing),
        Some(found) if found.kind != FileKind::Directory => {
            return Err(not_a_store(
                dir,
                "it is a file; name a directory that is a store, or one that does not exist yet",
            ));
        }
        Some(_) => {}
    }
    if has_format(vfs, dir)? {
        return Ok(DirectoryContent::Store);
    }
    if is_empty(vfs, dir).map_err(|error| cannot_open(dir, "listing it", error))? {
        return Ok(DirectoryContent::Nothing);
    }
    // Another process may just have made it a store.
    match has_format(vfs, dir)? {
        true => Ok(DirectoryContent::Store),
        false => Err(not_a_store(
            dir,
            "it has other things in it and no FORMAT file; name a store, an empty directory, or one that does not exist yet; what a killed program has left of an archive may be removed",
        )),
    }
}

/// Whether a directory is missing, or has only files that a crash left.
pub(crate) fn is_empty(vfs: &dyn Vfs, dir: &Path) -> io::Result<bool> {
    let names = match vfs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        names => names?,
    };
    let is_left = |name: &std::ffi::OsString| {
        let name = name.as_encoded_bytes();
        name.ends_with(UNFINISHED.as_bytes())
    };
    Ok(names.iter().all(is_left))
}

/// Makes an empty or missing directory a store.
pub(crate) fn create(vfs: &dyn Vfs, dir: &Path) -> Result<(), ArchiveError> {
    make_dirs(vfs, dir).map_err(|e| cannot_open(dir, "making the directory", e))?;
    let text = format!(
        "{FORMAT_START}{VERSION}\n\
         Checkpoints and archives of the SDE framework. Its documentation, store-format.md,\n\
         says what each file holds and how to read it without SDE.\n"
    );
    let made = with_unfinished(vfs, dir, |path| {
        let mut file = vfs.create(path)?;
        file.write_at(&[text.as_bytes()], 0)?;
        file.sync()?;
        match vfs.publish(path, &dir.join(FORMAT)) {
            // Another process may have published the file first, with the same text.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => vfs.remove(path),
            published => published,
        }
    });
    made.map_err(|e| cannot_open(dir, "writing its FORMAT file", e))
}

/// Makes a store's existence durable: its `FORMAT` file, the names in its directory, and its own name. A missing
/// file is no error here.
pub(crate) fn settle(vfs: &dyn Vfs, dir: &Path) -> io::Result<()> {
    match vfs.open(&dir.join(FORMAT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?.sync()?,
    }
    make_dirs(vfs, dir)
}

/// The entries of a store's directory that have a folder's name but are no folders.
pub(crate) fn misplaced(vfs: &dyn Vfs, store: &Path) -> io::Result<Vec<(&'static str, Found)>> {
    let mut misplaced = Vec::new();
    for folder in folders() {
        if let Some(found) = vfs.look(&store.join(folder))?
            && found.kind != FileKind::Directory
        {
            misplaced.push((folder, found));
        }
    }
    Ok(misplaced)
}

/// The names of all folders of a store.
pub(crate) fn folders() -> impl Iterator<Item = &'static str> {
    let of_parts = Part::ALL.into_iter().map(Part::folder);
    of_parts.chain([crate::format::manifest::FOLDER])
}

/// Whether listing failed because there is no such folder, or a file has its name. The latter was reported when the
/// store was opened.
pub(crate) fn is_no_folder(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Checks the folders of a store. Untrusted ones are refused; so is a file with a folder's name, unless the store
/// is only read: nothing could be saved there. A reader does without that folder.
pub(crate) fn check_parts(
    vfs: &dyn Vfs,
    dir: &Path,
    trust: Trust,
    read_only: bool,
) -> Result<(), ArchiveError> {
    // In a folder of announcements that is closed to the group, runs would be computed twice without a word.
    for name in folders().chain(NO_PARTS) {
        let found = vfs.look(&dir.join(name));
        let found = found.map_err(|error| cannot_open(dir, "looking at what is in it", error))?;
        let Some(found) = found else { continue };
        if let Some(why) = trust.refusal(&found) {
            return Err(not_a_store(dir, format!("of its {name:?}: {why}")));
        }
        if NO_PARTS.contains(&name) || found.kind == FileKind::Directory {
            continue;
        }
        if !read_only {
            return Err(not_a_store(
                dir,
                format!(
                    "its {name:?} is no folder, so nothing can be saved there; move it away, or open the store with `open_read_only`, which reads the rest"
                ),
            ));
        }
        sde::warning!(
            "{} is passed over: it is no folder; the rest of the store is read",
            dir.join(name).display()
        );
    }
    Ok(())
}

/// Refuses a store of a group in which a member has put a link in the place of a folder since it was opened.
pub(crate) fn check_links(vfs: &dyn Vfs, store: &Path, trust: Trust) -> Result<(), ArchiveError> {
    if !matches!(trust, Trust::Group(_)) {
        return Ok(());
    }
    for path in folders().map(|name| store.join(name)) {
        let found = vfs.look(&path);
        let found = found.map_err(|error| ArchiveError::io("looking at", &path, error))?;
        if found.is_some_and(|found| found.link) {
            return Err(not_trusted(store, &path, LINK));
        }
    }
    Ok(())
}

/// Makes a folder in a store, if it is missing. Its name is not durable yet.
///
/// In a store of a group a link is an error: a member may have put it there, for others to write where it leads.
pub(crate) fn make_folder(vfs: &dyn Vfs, dir: &Path, folder: &Path) -> io::Result<()> {
    if let Some(found) = vfs.look(folder)? {
        let is_of_group = || matches!(Trust::of(vfs, dir, false), Trust::Group(_));
        return match found.link && is_of_group() {
            true => Err(io::Error::other(LINK)),
            false => Ok(()),
        };
    }
    // The name of the `FORMAT` file is synced first, since its maker may not have done so. After a power failure a
    // directory with a folder but without that file would be refused.
    vfs.sync_dir(dir)?;
    match vfs.make_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Tries now to make a file here, before there is a result to lose.
pub(crate) fn probe(vfs: &dyn Vfs, dir: &Path) -> Result<(), ArchiveError> {
    with_unfinished(vfs, dir, |path| {
        vfs.create(path)?;
        vfs.remove(path)
    })
    .map_err(|e| cannot_open(dir, "making a file in it", e))
}

/// Runs a job with a new temporary name; removes the file if the job fails.
pub(crate) fn with_unfinished<E>(
    vfs: &dyn Vfs,
    dir: &Path,
    job: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let path = dir.join(format!("{}{UNFINISHED}", UniqueId::new()));
    let outcome = job(&path);
    if outcome.is_err() {
        // A file that can't be removed does no harm.
        let _ = vfs.remove(&path);
    }
    outcome
}

/// Whether there is a `FORMAT` file of any version.
pub(crate) fn look_for_format(vfs: &dyn Vfs, dir: &Path) -> io::Result<bool> {
    Ok(vfs.look(&dir.join(FORMAT))?.is_some())
}

/// Removes files that a crash has left: temporary files, and segments without a whole header, older than the time
/// of grace. Files that a live process is writing stay. Gives the bytes removed.
pub(crate) fn remove_unfinished(vfs: &dyn Vfs, store: &Path, grace: Duration) -> u64 {
    let old = grace.max(LONGEST_TO_NAME);
    let mut bytes = 0;
    let segments = Part::ALL.map(|part| folder(store, part));
    for dir in [store.to_owned(), store.join(manifest::FOLDER)]
        .iter()
        .chain(&segments)
    {
        let names = vfs.list(dir).unwrap_or_default().into_iter();
        for path in names.map(|name| dir.join(name)) {
            let Ok(Some(found)) = vfs.look(&path) else {
                continue;
            };
            let has_no_name = path
                .as_os_str()
                .as_encoded_bytes()
                .ends_with(UNFINISHED.as_bytes());
            let is_segment = path.extension() == Some(OsStr::new(EXTENSION));
            let is_begun =
                is_segment && found.kind == FileKind::File && found.length < SEGMENT_HEADER as u64;
            let age = found
                .written_at
                .and_then(|at| vfs.now().duration_since(at).ok());
            let is_left = age.is_some_and(|age| age > old)
                && (has_no_name || is_begun && !matches!(vfs.try_lock(&path), Ok(None)));
            // A file that can't be removed does no harm.
            if is_left && vfs.remove(&path).is_ok() {
                bytes += found.length;
            }
        }
    }
    bytes
}

/// Whether there is a `FORMAT` file; an error if it is of another version.
fn has_format(vfs: &dyn Vfs, dir: &Path) -> Result<bool, ArchiveError> {
    let path = dir.join(FORMAT);
    let found = vfs.look(&path);
    let found = found.map_err(|error| cannot_open(dir, "reading its FORMAT file", error))?;
    let Some(found) = found else {
        return Ok(false);
    };
    let not_text = || not_a_store(dir, "its FORMAT is not a text file");
    if found.kind != FileKind::File {
        return Err(not_text());
    }
    let text = read_format(vfs, &path);
    let text = text.map_err(|error| cannot_open(dir, "reading its FORMAT file", error))?;
    let text = String::from_utf8(text).map_err(|_| not_text())?;
    match version(&text) {
        Some(VERSION) => Ok(true),
        Some(other) => Err(not_a_store(
            dir,
            format!(
                "it has format {other}, this program reads format {VERSION}; {}",
                match other < VERSION {
                    true => "name another directory, what it held is computed anew there",
                    false => "use the release of SDE that wrote it, or another directory",
                }
            ),
        )),
        None => Err(not_a_store(
            dir,
            format!(
                "its FORMAT file does not begin with \"{FORMAT_START}{VERSION}\"; if it is a store whose FORMAT file was damaged, write that line into it"
            ),
        )),
    }
}

fn read_format(vfs: &dyn Vfs, path: &Path) -> io::Result<Vec<u8>> {
    let file = vfs.open(path)?;
    read_bytes(&*file, 0, file.length()?.min(4096))
}

fn version(text: &str) -> Option<u32> {
    let first_line = text.lines().next()?;
    first_line.strip_prefix(FORMAT_START)?.parse().ok()
}

/// Whether there is a `FORMAT` file of another version.
pub(crate) fn is_another_version(vfs: &dyn Vfs, dir: &Path) -> bool {
    let text = read_format(vfs, &dir.join(FORMAT));
    let text = text.ok().and_then(|text| String::from_utf8(text).ok());
    let version = text.and_then(|text| version(&text));
    version.is_some_and(|version| version != VERSION)
}
