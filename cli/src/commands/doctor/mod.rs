//! `sde doctor`: what a file system guarantees.
//!
//! Where a store lies is often decided by somebody else, and shared file systems differ in what
//! they do when two processes make one name, or when a machine goes down. What can be tried, is
//! tried here; what only a power cut would show is said to be unknown.

mod checks;
mod lock;

use std::io;
use std::path::{Path, PathBuf};

use sde_archives::vfs::{Disk, Vfs};
use serde_json::json;

use checks::{CHECKS, Check};

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output::Output;

/// One thing that was tried.
struct Tried {
    name: &'static str,
    outcome: Outcome,
    /// What a store loses without it.
    without: &'static str,
    /// Whether a store can't do without.
    needed: bool,
}

enum Outcome {
    Holds,
    Fails(String),
}

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    if let Some(option) = arguments.option()? {
        return match &*option {
            lock::OPTION => lock::hold(&arguments.path()?, out),
            other => Err(arguments.unknown(other)),
        };
    }
    let as_json = arguments.json;
    let [dir] = arguments.values(["DIR"], 0)?;
    let dir = PathBuf::from(dir.unwrap_or_default());
    let tried = {
        let folder = Folder::make(&dir)?;
        try_all(&folder.0)
    };
    let kind = file_system(&dir);
    out.found |= tried.iter().any(|one| one.needed && !one.holds());
    if as_json {
        let checks = tried.iter().map(|one| {
            json!({
                "check": one.name,
                "holds": one.holds(),
                "needed": one.needed,
                "why": match &one.outcome {
                    Outcome::Holds => None,
                    Outcome::Fails(why) => Some(why),
                },
            })
        });
        return out.json(&json!({
            "directory": dir.display().to_string(),
            "file_system": kind,
            "good": !out.found,
            "checks": checks.collect::<Vec<_>>(),
        }));
    }
    print(&dir, kind.as_deref(), &tried, out)
}

impl Tried {
    fn holds(&self) -> bool {
        matches!(self.outcome, Outcome::Holds)
    }
}

/// A folder that goes away again.
struct Folder(PathBuf);

impl Folder {
    fn make(dir: &Path) -> Result<Self, Failure> {
        let failed = |error| {
            Failure::told(format!(
                "in {} nothing can be tried: {error}",
                dir.display()
            ))
        };
        for number in 0..100 {
            let name = format!("sde-doctor-{}-{number}", std::process::id());
            match Disk.make_dir(&dir.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(dir.join(name))).map_err(failed),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Only files of its own are in it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn try_all(dir: &Path) -> Vec<Tried> {
    let one = |(name, without, needed, check): &(&'static str, &'static str, bool, Check)| Tried {
        name,
        outcome: match check(dir) {
            Ok(()) => Outcome::Holds,
            Err(error) => Outcome::Fails(error.to_string()),
        },
        without,
        needed: *needed,
    };
    CHECKS.iter().map(one).collect()
}

/// The kind of file system, where the system tells.
fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mut longest: Option<(PathBuf, String)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(_), Some(place), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        // The later of two on one place lies on top.
        let place = PathBuf::from(place.replace("\\040", " "));
        let is_longer = longest
            .as_ref()
            .is_none_or(|(known, _)| place.as_os_str().len() >= known.as_os_str().len());
        if dir.starts_with(&place) && is_longer {
            longest = Some((place, kind.to_owned()));
        }
    }
    longest.map(|(_, kind)| kind)
}

/// What is known of some of them beyond what can be tried.
fn known(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "tmpfs" | "ramfs" => "It is memory: all of it is gone when the machine stops.",
        "nfs" | "nfs4" => {
            "On NFS a file that another machine has just written may be seen late, and locks depend on \
             how it is mounted. SDE rests on neither, if the time of grace of a compaction (10 minutes) is longer \
             than attributes are cached (actimeo)."
        }
        "lustre" => {
            "On Lustre locks depend on how it is mounted (flock, localflock, noflock). SDE does not rest on them."
        }
        "overlay" => "It is a container's: all of it may be gone when the container is.",
        _ => return None,
    })
}

fn print(dir: &Path, kind: Option<&str>, tried: &[Tried], out: &mut Output) -> Result<(), Failure> {
    let of_kind = kind
        .map(|kind| format!(", file system {kind}"))
        .unwrap_or_default();
    out.wrapped(format!("{}{of_kind}", dir.display()), 2)?;
    for one in tried {
        match &one.outcome {
            Outcome::Holds => out.wrapped(format!("  holds  {}", one.name), 9)?,
            Outcome::Fails(why) => {
                out.wrapped(format!("  FAILS  {}: {why}", one.name), 9)?;
                out.wrapped(format!("         without it {}", one.without), 9)?;
            }
        }
    }
    if let Some(text) = kind.and_then(known) {
        out.wrapped(text, 2)?;
    }
    match tried.iter().any(|one| one.needed && !one.holds()) {
        true => out.wrapped("A store here is at risk: put it elsewhere.", 2),
        false => out.wrapped(
            "A store is safe here, as far as that can be tried. Whether a disk that says it has \
             synced has done so, only a power cut would show.",
            2,
        ),
    }
}
