//! `sde doctor`: what a file system guarantees.
//!
//! Users can't always choose where a store lies, and shared file systems differ when two processes make
//! one name, or when a machine goes down. Guarantees that can be tried are tried here; those that only a
//! power cut would show are reported as unknown.

mod checks;
mod lock;

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde::Serialize;

use checks::CHECKS;

use crate::failure::Failure;
use crate::output::Output;

/// Which guarantees this file system gives to a store
///
/// Tries what a store needs, in a folder of its own that is removed again.
#[derive(Args)]
pub struct Doctor {
    /// Where a store is to be
    #[arg(value_hint = ValueHint::DirPath, required_unless_present = lock::OPTION)]
    dir: Option<PathBuf>,
    /// What it starts itself with
    #[arg(long, hide = true)]
    hold: Option<PathBuf>,
}

/// The outcome of one check.
#[derive(Serialize)]
struct Tried {
    check: &'static str,
    holds: bool,
    /// Whether a store can't do without.
    needed: bool,
    /// Why it does not hold, if so.
    why: Option<String>,
    /// What a store loses without it.
    #[serde(skip)]
    without: &'static str,
}

#[derive(Serialize)]
struct Report {
    directory: String,
    file_system: Option<String>,
    good: bool,
    checks: Vec<Tried>,
}

impl Doctor {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        if let Some(path) = &self.hold {
            return lock::hold(path, out);
        }
        let dir = self.dir.clone().unwrap_or_default();
        let folder = tempfile::Builder::new()
            .prefix("sde-doctor-")
            .tempdir_in(&dir);
        let folder = folder.map_err(|error| {
            // The error's full text names the temporary folder.
            let (dir, why) = (dir.display(), error.kind());
            Failure::told(format!(
                "in {dir} nothing can be tried: {why}; name a folder that you may write to"
            ))
        })?;
        let tried = CHECKS.iter().map(|(check, without, needed, try_it)| {
            let why = try_it(folder.path()).err();
            Tried {
                check,
                holds: why.is_none(),
                needed: *needed,
                why: why.map(|error| error.to_string()),
                without,
            }
        });
        let checks: Vec<Tried> = tried.collect();
        let report = Report {
            directory: dir.display().to_string(),
            file_system: file_system(&dir),
            good: checks.iter().all(|one| one.holds || !one.needed),
            checks,
        };
        out.found |= !report.good;
        match out.json {
            true => out.object(&report),
            false => report.print(out),
        }
    }
}

/// The kind of file system, if the system gives it.
fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let of_line = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?.replace("\\040", " ");
        Some((PathBuf::from(place), words.next()?.to_owned()))
    };
    let above = mounts
        .lines()
        .filter_map(of_line)
        .filter(|(place, _)| dir.starts_with(place));
    // Of two mounts at one place the later is on top.
    let nearest = above.max_by_key(|(place, _)| place.as_os_str().len());
    nearest.map(|(_, kind)| kind)
}

/// Known properties of some file systems beyond what can be tried.
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

impl Report {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let kind = self.file_system.as_deref();
        let of_kind = kind.map(|kind| format!(", file system {kind}"));
        out.wrapped(
            format!("{}{}", self.directory, of_kind.unwrap_or_default()),
            2,
        )?;
        for one in &self.checks {
            match &one.why {
                None => out.wrapped(format!("  holds  {}", one.check), 9)?,
                Some(why) => {
                    out.wrapped(format!("  FAILS  {}: {why}", one.check), 9)?;
                    out.wrapped(format!("         without it {}", one.without), 9)?;
                }
            }
        }
        if let Some(text) = kind.and_then(known) {
            out.wrapped(text, 2)?;
        }
        let verdict = match self.good {
            false => "A store here is at risk: put it elsewhere.",
            true => {
                "A store is safe here, as far as that can be tried. Whether a disk that says it has \
                 synced has done so, only a power cut would show."
            }
        };
        out.wrapped(verdict, 2)
    }
}
