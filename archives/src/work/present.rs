//! Who is at what, for people: read from the leases and their names, without a lock or a change.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::OFlags;
use rustix::process::{Flock, FlockType, fcntl_getlk};
use sde::Key;

use super::file::{self, EXTENSION, FileId};
use super::process::{Process, Running};
use super::request::{self, Draft, Named, Request};
use super::{FOLDER, LEASE, other, text};
use crate::format::id::UniqueId;

/// The processes that have a lease in this store.
pub(crate) fn processes(store: &Path) -> io::Result<Vec<Process>> {
    let request = request::read(store).ok().flatten();
    let mut processes = at(store, SystemTime::now())?;
    if let Some((_, request)) = request {
        for (id, process) in &mut processes {
            process.told = request.to(id);
        }
    }
    Ok(processes.into_iter().map(|(_, process)| process).collect())
}

/// Tells those that live to stop, and says who they are.
pub(crate) fn tell_to_stop(store: &Path, at_time: Option<SystemTime>) -> io::Result<Vec<Process>> {
    let second = at_time.map_or(0, Named::second_of);
    let draft = Draft::new(store)?;
    draft.check(store)?;
    let mut alive = at(store, draft.now()?)?;
    alive.retain(|(_, process)| process.alive);
    if alive.is_empty() {
        remove_if_over(store);
        return Ok(Vec::new());
    }
    let named = alive.iter().map(|(id, process)| Named {
        id: *id,
        second,
        host: process.host.clone(),
        process: process.process,
    });
    let request = Request::of_user(named.collect());
    draft.put(store, &request)?;
    let told = alive.into_iter().map(|(id, process)| Process {
        told: request.to(&id),
        ..process
    });
    Ok(told.collect())
}

/// Removes the request, and says whether there was one.
pub(crate) fn cancel_stop(store: &Path) -> io::Result<bool> {
    match fs::remove_file(request::path(store)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Removes a request once all that it names are gone.
pub(crate) fn remove_if_over(store: &Path) {
    let path = request::path(store);
    // Mostly there is none.
    if !matches!(request::version(&path), Ok(Some(_))) {
        return;
    }
    let Ok(Some((version, request))) = request::read(store) else {
        return;
    };
    let Ok(there) = at(store, SystemTime::now()) else {
        return;
    };
    let is_alive = |named: &Named| there.iter().any(|(id, of)| *id == named.id && of.alive);
    if !request.named.iter().any(is_alive) && request::version(&path).ok() == Some(Some(version)) {
        let _ = fs::remove_file(path);
    }
}

fn at(store: &Path, now: SystemTime) -> io::Result<Vec<(UniqueId, Process)>> {
    let folder = store.join(FOLDER);
    let names = match fs::read_dir(&folder) {
        // Nobody was ever at work here.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        names => names?,
    };
    let (mut processes, mut runs) = (Vec::new(), HashMap::<FileId, Vec<Key>>::new());
    for name in names {
        let name = name?.file_name();
        let (path, name) = (folder.join(&name), name.to_string_lossy());
        let id = name.strip_suffix(EXTENSION).and_then(UniqueId::parse);
        if let Some(id) = id {
            processes.extend(look(&path, now).map(|(file, of)| (file, id, of)));
        } else if let (Ok(key), Ok(file)) = (name.parse(), file::id_of(&path)) {
            runs.entry(file).or_default().push(key);
        }
    }
    let mut processes: Vec<_> = processes
        .into_iter()
        .map(|(file, id, found)| (id, found.of(id, runs.remove(&file).unwrap_or_default())))
        .collect();
    processes.sort_by(|(_, one), (_, other)| one.id.cmp(&other.id));
    Ok(processes)
}

/// What was found in a lease.
struct Lease {
    text: String,
    alive: bool,
    renewed: SystemTime,
}

impl Lease {
    fn of(self, id: UniqueId, keys: Vec<Key>) -> Process {
        let (holder, _) = other::holder_of(&self.text);
        let (since, told) = text::read(&self.text);
        let about = |key: &Key| {
            let run = told.iter().find(|run| run.key == *key)?;
            Some((run.app.clone(), run.since))
        };
        let runs = keys.into_iter().map(|key| Running {
            about: about(&key),
            key,
        });
        Process {
            id: id.to_string(),
            host: holder.host,
            process: holder.process,
            alive: self.alive,
            renewed: self.renewed,
            since,
            runs: runs.collect(),
            told: None,
        }
    }
}

/// Looks at a lease; `None` if there is none any more.
fn look(path: &Path, now: SystemTime) -> Option<(FileId, Lease)> {
    let found = fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    let id = file::id(&found);
    let renewed = found.modified().ok()?;
    let age = now.duration_since(renewed);
    let is_renewed = age.unwrap_or_else(|ahead| ahead.duration()) <= LEASE;
    let lease = |text, alive| {
        let lease = Lease {
            text,
            alive,
            renewed,
        };
        Some((id, lease))
    };
    // Closing a file gives up all locks that the process has on it.
    if file::is_own(id) {
        return lease(fs::read_to_string(path).unwrap_or_default(), true);
    }
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    options.read(true).custom_flags(flags.bits() as i32);
    let file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        // It is another user's.
        Err(_) => return lease(String::new(), is_renewed),
        Ok(file) => file,
    };
    let Some(file) = file::keep_if_own(file, id) else {
        return lease(String::new(), true);
    };
    let read = other::text_of(&file, text::LONGEST);
    let (_, is_here) = other::holder_of(&read);
    let alive = match is_here.then(|| is_locked(&file)).flatten() {
        Some(locked) => locked,
        None => is_renewed,
    };
    lease(read, alive)
}

/// Whether another process has the file locked, if the system can tell.
fn is_locked(file: &File) -> Option<bool> {
    let lock = fcntl_getlk(file, &Flock::from(FlockType::WriteLock)).ok()?;
    Some(lock.is_some())
}
