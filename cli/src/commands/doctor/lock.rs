//! Whether a lock keeps other processes out.
//!
//! On some shared file systems a lock excludes other threads of a process, but not other processes.
//! So the program starts itself once more, and both processes try to take one lock.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sde_archives::vfs::{Disk, Vfs};

use crate::failure::Failure;
use crate::output::Output;

/// The option of the second process.
pub const OPTION: &str = "hold";

const HELD: &str = "held";
const TAKEN: &str = "taken";

/// The work of the second process: tries to take the lock, prints the outcome, and keeps the lock until its
/// standard input is closed.
pub fn hold(path: &Path, out: &mut Output) -> Result<(), Failure> {
    let lock = Disk.try_lock(path).map_err(Failure::told)?;
    out.line(if lock.is_some() { HELD } else { TAKEN })?;
    out.flush()?;
    // An error ends the wait too: the parent may have been killed.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

/// Checks that only one of two processes gets the lock, and that it is free when that process is killed.
pub fn is_kept_between_processes(dir: &Path) -> io::Result<()> {
    let path = dir.join("locked");
    drop(Disk.create(&path)?);
    let Some(own) = Disk.try_lock(&path)? else {
        return Err(io::Error::other("it is locked, and nobody locked it"));
    };
    if Other::start(&path)?.has_it {
        return Err(io::Error::other("two processes have it at once"));
    }
    drop(own);
    let other = Other::start(&path)?;
    if !other.has_it {
        return Err(io::Error::other("it stays after it was given back"));
    }
    if Disk.try_lock(&path)?.is_some() {
        return Err(io::Error::other("two processes have it at once"));
    }
    drop(other);
    match Disk.try_lock(&path)? {
        Some(_) => Ok(()),
        None => Err(io::Error::other("it stays after its holder was killed")),
    }
}

/// A second process that has tried to take the lock. It is killed when this is dropped.
struct Other {
    process: Child,
    has_it: bool,
}

impl Other {
    fn start(path: &Path) -> io::Result<Self> {
        let process = Command::new(std::env::current_exe()?)
            .args(["doctor", &format!("--{OPTION}")])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut other = Self {
            process,
            has_it: false,
        };
        let mut said = String::new();
        if let Some(out) = other.process.stdout.take() {
            BufReader::new(out).read_line(&mut said)?;
        }
        match said.trim_end() {
            HELD => other.has_it = true,
            TAKEN => {}
            _ => return Err(io::Error::other("another process can't try to take it")),
        }
        Ok(other)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Both calls fail only if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
