//! The file that tells processes to stop: who asks, and whom it names.
//!
//! ```text
//! SDE stop, format 1
//! by USER
//! host HOST
//! stop ID SECOND HOST PROCESS
//! ```
//!
//! There is a line for each process, by the id of its lease. It is to stop at that second since 1970; 0 is at once.
//! Lines that begin otherwise are passed over.

use std::fmt::Write;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use sde::archiver::StopRequest;

use crate::format::about::About;
use crate::format::directory::UNFINISHED;
use crate::format::id::UniqueId;

/// The file's name in the store.
const NAME: &str = "STOP";
const FIRST: &str = "SDE stop, format 1";
const BY: &str = "by ";
const HOST: &str = "host ";
const STOP: &str = "stop ";

/// The longest file that is read, and written: of some ten thousand processes.
const LONGEST: u64 = 1 << 20;

/// The longest name that is shown.
const LONGEST_NAME: usize = 64;

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) by: String,
    pub(super) host: String,
    pub(super) named: Vec<Named>,
}

/// A process that is to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) id: UniqueId,
    /// The second since 1970; 0 is at once.
    pub(super) second: u64,
    pub(super) host: String,
    pub(super) process: u32,
}

/// What tells one file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version(u64, u64, i64, i64, u64);

impl Request {
    /// A request of this user.
    pub(super) fn of_user(named: Vec<Named>) -> Self {
        let user = ["USER", "LOGNAME"].map(std::env::var).into_iter().flatten();
        let mut user = user.filter(|user| !user.is_empty());
        let id = || format!("user {}", rustix::process::geteuid().as_raw());
        Self {
            by: user.next().unwrap_or_else(id),
            host: About::this().host,
            named,
        }
    }

    /// What it says to the process of this lease.
    pub(super) fn to(&self, id: &UniqueId) -> Option<StopRequest> {
        let named = self.named.iter().find(|named| named.id == *id)?;
        let at = UNIX_EPOCH + Duration::from_secs(named.second);
        Some(StopRequest::new(&*self.by, &*self.host, at))
    }

    fn text(&self) -> String {
        let (by, host) = (shown(&self.by), shown(&self.host));
        let mut text = format!("{FIRST}\n{BY}{by}\n{HOST}{host}\n");
        for Named {
            id,
            second,
            host,
            process,
        } in &self.named
        {
            // A name with spaces would move what comes after it.
            let host = shown(host).replace(' ', "_");
            let _ = writeln!(text, "{STOP}{id} {second} {host} {process}");
        }
        text
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != FIRST {
            return None;
        }
        let (mut by, mut host, mut named) = (None, None, Vec::new());
        for line in lines {
            if let Some(name) = line.strip_prefix(BY) {
                by = Some(shown(name));
            } else if let Some(name) = line.strip_prefix(HOST) {
                host = Some(shown(name));
            } else if let Some(process) = line.strip_prefix(STOP) {
                named.push(Named::read(process)?);
            }
        }
        let (by, host) = (by?, host?);
        Some(Self { by, host, named })
    }
}

impl Named {
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.split(' ');
        let mut next = || parts.next();
        let id = UniqueId::parse(next()?)?;
        // A later second is none that a clock shows.
        let second = next()?.parse().ok().filter(|second| *second < 1 << 40)?;
        let host = shown(next()?);
        let process = next()?.parse().ok()?;
        Some(Self {
            id,
            second,
            host,
            process,
        })
    }

    /// Whether it is to stop by then.
    pub(super) fn second_of(at: SystemTime) -> u64 {
        at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}

/// A name without what a terminal obeys, and no longer than people need.
fn shown(name: &str) -> String {
    let clean = name.chars().filter(|c| !c.is_control());
    clean.take(LONGEST_NAME).collect()
}

/// The file in a store.
pub(super) fn path(store: &Path) -> PathBuf {
    store.join(NAME)
}

/// Which file is there now.
pub(super) fn version(path: &Path) -> io::Result<Option<Version>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => Ok(Some(version_of(&found?))),
    }
}

fn version_of(of: &Metadata) -> Version {
    Version(of.dev(), of.ino(), of.mtime(), of.mtime_nsec(), of.len())
}

/// The request in a store, and the version of its file.
///
/// # Errors
/// Why it is not followed: it can't be read, makes no sense, or is another's.
pub(super) fn read(store: &Path) -> Result<Option<(Version, Request)>, String> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    options.read(true).custom_flags(flags.bits() as i32);
    let file = match options.open(path(store)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("it can't be opened: {error}")),
        Ok(file) => file,
    };
    let look = || Ok::<_, io::Error>((file.metadata()?, fs::metadata(store)?));
    let (found, folder) = look().map_err(|error| format!("it can't be looked at: {error}"))?;
    if !found.is_file() || found.len() > LONGEST {
        return Err("it is no file that `sde stop` writes".to_owned());
    }
    if !may_ask(&found, &folder) {
        return Err(format!(
            "it belongs to user {}, or others can write to it",
            found.uid()
        ));
    }
    let mut text = String::new();
    let read = (&file).take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| format!("it can't be read: {error}"))?;
    let request = Request::read(&text).ok_or("it is damaged")?;
    Ok(Some((version_of(&found), request)))
}

/// Whether the owner of the file may stop those who use the store: the store's owner, the administrator, and in a folder of
/// a group its members.
fn may_ask(file: &Metadata, folder: &Metadata) -> bool {
    let is_of_group = folder.mode() & 0o022 == 0o020;
    let may = [folder.uid(), 0].contains(&file.uid()) || is_of_group;
    may && file.mode() & 0o022 == 0
}

/// A request that is being written.
pub(super) struct Draft {
    path: PathBuf,
    file: fs::File,
}

impl Draft {
    pub(super) fn new(store: &Path) -> io::Result<Self> {
        let path = store.join(format!("{}{UNFINISHED}", UniqueId::new()));
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&path)?;
        let draft = Self { path, file };
        // Whatever the umask: the processes may be those of others in the group.
        draft
            .file
            .set_permissions(fs::Permissions::from_mode(0o644))?;
        Ok(draft)
    }

    /// An error if the processes would not follow this user's request.
    pub(super) fn check(&self, store: &Path) -> io::Result<()> {
        let folder = fs::metadata(store)?;
        match may_ask(&self.file.metadata()?, &folder) {
            true => Ok(()),
            false => Err(io::Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "they follow the owner of its folder only, user {}",
                    folder.uid()
                ),
            )),
        }
    }

    /// The file system's time.
    pub(super) fn now(&self) -> io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }

    /// Puts it in the place of an earlier request.
    pub(super) fn put(mut self, store: &Path, request: &Request) -> io::Result<()> {
        let text = request.text();
        if text.len() as u64 > LONGEST {
            return Err(io::Error::other("it names too many processes"));
        }
        io::Write::write_all(&mut self.file, text.as_bytes())?;
        self.file.sync_all()?;
        fs::rename(&self.path, path(store))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // If it was put in place, the name is free again.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let named = |second| Named {
            id: UniqueId::new(),
            second,
            host: "a_host".to_owned(),
            process: 7,
        };
        let request = Request::of_user(vec![named(0), named(1_800_000_000)]);
        let text = request.text();
        assert_eq!(Request::read(&text), Some(request));
        // What a later release adds is passed over, and what is cut off is not taken for whole.
        assert!(Request::read(&format!("{text}because I say so\n")).is_some());
        assert_eq!(Request::read(&text[..text.len() - 4]), None);
        let late = text.replace("1800000000", "18000000000000000000");
        assert_eq!(Request::read(&late), None);
    }
}
