//! A file that a run has written, as a result.
//!
//! A run returns a description: where the file lies, its mode, length and digest. The store has the content, by its
//! digest. A hit gives the description only if the file is there as it was, or was put back.

mod identity;
mod in_value;
mod put_back;

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::key::{
    Digest, Encoder, Fingerprint, FingerprintError, InputFile, Short, TypeWriter, content,
};
use crate::sync::lock;
use identity::Seen;

pub(crate) use in_value::in_value;
pub(crate) use put_back::{Asked, Content};

/// A file that an app has written and returns.
///
/// An app writes the file, and returns the `OutputFile` that [`new`](Self::new) makes of its path: as its result, or
/// anywhere in one, in a list, an option, a field. The engine finds it by the result's serde implementation, whatever
/// the type. With the result the content is saved to the store, once for each digest, however many runs and paths it is
/// of.
///
/// On a hit the file is there as it was returned. One that was deleted or changed is put back, with its permission bits,
/// in one step: other programs see the old file or the new. Missing folders are made. If that can't be done, since
/// nothing has its content (the run was not saved yet, or is never saved) or the disk is full, the hit is a miss and the
/// app runs again. So it does if a folder, a symbolic link or anything else that is no regular file has taken the place of the file:
/// that is neither followed nor replaced.
///
/// Where the file lies is for the app to say. If an input says it, as a path does, then another path is another key, and the
/// app runs again; the content is in the store once all the same. A relative path is relative to the current directory of whatever process
/// asks.
///
/// It is a result like any other and is sent to other ranks as the description that it is. On a machine that does not see the
/// file, and has no store with its content, a hit is a miss.
///
/// As an input it counts as an [`InputFile`] of its path: by what the file holds when the key is made. One
/// [without a place](Self::without_place) counts by what it held when it was described.
///
/// ```
/// use std::path::Path;
/// use sde::{OutputFile, Sde};
///
/// #[sde::app]
/// fn report(to: &Path, lines: u32) -> std::io::Result<OutputFile> {
///     std::fs::write(to, "line\n".repeat(lines as usize))?;
///     OutputFile::new(to)
/// }
///
/// # let dir = std::env::temp_dir().join(format!("sde-doc-output-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// let sde = Sde::new();
/// let path = dir.join("report.txt");
/// assert_eq!(report.call(&sde, &path, 3)?.length(), 15);
/// report.call(&sde, &path, 3)?;
/// assert_eq!(sde.stats().total.computed, 1);
///
/// // Without a store nothing has the content: the report is written again.
/// std::fs::remove_file(&path)?;
/// assert!(report.call(&sde, &path, 3)?.path().exists());
/// assert_eq!(sde.stats().total.computed, 2);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct OutputFile(Arc<WrittenFile>);

struct WrittenFile {
    fields: Fields,
    /// Where the content of a file without a place lies for now.
    held: Option<Held>,
    /// The identity and digest at the latest reading, to be compared without reading the file again.
    seen: Mutex<Option<Seen>>,
    /// Whether the store's copy was read as a whole.
    is_whole: AtomicBool,
}

struct Held {
    path: PathBuf,
    /// Dropped once a store has the content, or with the last description: it may remove the file.
    owner: Mutex<Option<Box<dyn Any + Send + Sync>>>,
}

/// The part of it that is saved. The path of a file without a place is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "OutputFile")]
struct Fields {
    path: PathBuf,
    mode: u32,
    length: u64,
    digest: Digest,
}

/// Whether this process has made or read an output file: until then no result is searched for them.
static USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static SHOWN: RefCell<Option<Vec<OutputFile>>> = const { RefCell::new(None) };
}

impl OutputFile {
    /// Describes a file that is complete. It is read once, a piece at a time.
    ///
    /// ```
    /// let file = sde::OutputFile::new("Cargo.toml")?;
    /// assert_eq!(file.length(), std::fs::read("Cargo.toml")?.len() as u64);
    /// assert!(sde::OutputFile::new("src").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it can't be read, or is no regular file; a symbolic link is none.
    pub fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let (fields, seen) = Fields::read(&path)?;
        Ok(Self::of(Fields { path, ..fields }, None, seen))
    }

    /// Describes a file whose content is a result, wherever it lies. A hit puts nothing back: the caller puts the
    /// content where it wants it, by [`Handle::put`](crate::Handle::put). The first hit of each loaded result reads the
    /// stored content; if that is damaged the hit is a miss.
    ///
    /// The file must stay as it is until the result is saved, and without a store for as long as the result is to be
    /// hit. Then `owner` is dropped, or when no description of it is left in this process; it may remove the file.
    ///
    /// ```
    /// use std::path::Path;
    /// use sde::{OutputFile, Sde};
    ///
    /// #[sde::app]
    /// fn table(lines: usize) -> std::io::Result<OutputFile> {
    ///     let file = tempfile::NamedTempFile::new()?;
    ///     std::fs::write(&file, "line\n".repeat(lines))?;
    ///     OutputFile::without_place(file.path().to_owned(), file)
    /// }
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let (here, there) = (dir.path().join("here.txt"), dir.path().join("there.txt"));
    /// let sde = Sde::new();
    /// sde.put(&*table.call(&sde, 3)?, &here)?;
    /// sde.put(&*table.call(&sde, 3)?, &there)?;
    /// assert_eq!(std::fs::read(here)?, std::fs::read(there)?);
    /// assert_eq!(sde.stats().total.computed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn without_place(
        path: impl Into<PathBuf>,
        owner: impl Send + Sync + 'static,
    ) -> io::Result<Self> {
        let path = path.into();
        let (fields, seen) = Fields::read(&path)?;
        let held = Held {
            path,
            owner: Mutex::new(Some(Box::new(owner))),
        };
        Ok(Self::of(fields, Some(held), seen))
    }

    fn of(fields: Fields, held: Option<Held>, seen: Option<Seen>) -> Self {
        let seen = Mutex::new(seen);
        Self(Arc::new(WrittenFile {
            fields,
            held,
            seen,
            is_whole: AtomicBool::new(false),
        }))
    }

    /// Lets the owner of a file without a place go: a store has the content.
    pub(crate) fn release(&self) {
        let owner = self.0.held.as_ref().map(|held| lock(&held.owner).take());
        // What it does when it is dropped, it does with nothing locked.
        drop(owner);
    }

    fn has_place(&self) -> bool {
        !self.0.fields.path.as_os_str().is_empty()
    }

    /// The path as it was given. A file [without a place](Self::without_place) that another process made has an empty
    /// one.
    #[must_use]
    pub fn path(&self) -> &Path {
        let held = self.0.held.as_ref().map(|held| &held.path);
        held.unwrap_or(&self.0.fields.path)
    }

    /// The file's permission bits, as `chmod` takes them.
    #[must_use]
    pub fn mode(&self) -> u32 {
        // What was read from a store may say more, such as that the file runs as its owner.
        self.0.fields.mode & 0o777
    }

    /// The file's length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.0.fields.length
    }

    /// The plain BLAKE3 digest of what it holds, as `b3sum` prints it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.fields.digest
    }

    /// Does a job, and gives what it returns and each output file that serde was shown meanwhile, on this thread: for
    /// a store, which saves the content of those that are in a value.
    ///
    /// ```
    /// let file = sde::OutputFile::new("Cargo.toml")?;
    /// let (text, shown) = sde::OutputFile::shown_in(|| serde_json::to_string(&[&file]));
    /// assert!(text?.contains("Cargo.toml"));
    /// assert_eq!(shown, [file]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn shown_in<T>(job: impl FnOnce() -> T) -> (T, Vec<Self>) {
        /// Gives an outer job its own back, also if this one panics.
        struct Outer(Option<Vec<OutputFile>>);
        impl Drop for Outer {
            fn drop(&mut self) {
                SHOWN.replace(self.0.take());
            }
        }
        let mut outer = Outer(SHOWN.replace(Some(Vec::new())));
        let done = job();
        let shown = SHOWN.take().unwrap_or_default();
        if let Some(outer) = &mut outer.0 {
            outer.extend(shown.iter().cloned());
        }
        (done, shown)
    }
}

impl Fields {
    /// Those of a file without a place.
    fn read(path: &Path) -> io::Result<(Self, Option<Seen>)> {
        let about = regular(path)?.ok_or(io::ErrorKind::NotFound)?;
        let (length, digest, seen) = Seen::read(path)?;
        USED.store(true, Ordering::Relaxed);
        let fields = Self {
            path: PathBuf::new(),
            mode: mode(&about),
            length,
            digest,
        };
        Ok((fields, seen))
    }
}

/// The metadata of a regular file; `None` if nothing is there.
fn regular(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => Ok(Some(about)),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no regular file", path.display()),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn mode(about: &Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777
}

#[cfg(not(unix))]
fn mode(about: &Metadata) -> u32 {
    if about.permissions().readonly() {
        0o444
    } else {
        0o644
    }
}

impl AsRef<Path> for OutputFile {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl PartialEq for OutputFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.fields == other.0.fields
    }
}

impl Eq for OutputFile {}

impl fmt::Debug for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fields.fmt(f)
    }
}

impl Serialize for OutputFile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        SHOWN.with_borrow_mut(|shown| shown.as_mut().map(|shown| shown.push(self.clone())));
        self.0.fields.serialize(to)
    }
}

impl<'de> Deserialize<'de> for OutputFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        USED.store(true, Ordering::Relaxed);
        Fields::deserialize(from).map(|fields| Self::of(fields, None, None))
    }
}

impl Fingerprint for OutputFile {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        match self.has_place() {
            true => InputFile::new(self.path()).fingerprint(to),
            // Nobody can write to it.
            false => content(to, self.length(), self.digest()),
        }
    }

    fn describe(&self, out: &mut Short) {
        match self.has_place() {
            true => InputFile::new(self.path()).describe(out),
            false => out.show(format_args!(
                "{} bytes {}",
                self.length(),
                self.digest().short()
            )),
        }
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        InputFile::shape(to);
    }
}
