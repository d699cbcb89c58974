//! Files that an attempt leaves to the next one, such as a checkpoint.
//!
//! A copy of the files at one time is a generation, and a scratch state of the run. A copy that is made while the program writes may be
//! torn though nothing shows it, so there are two.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use std::{sync::mpsc, thread};

use sde_engine::{Handle, Value};
use serde::{Deserialize, Serialize};

use crate::outputs::identity;
use crate::results;
use crate::sync::lock;

/// How many generations there are.
const KEPT: usize = 2;

/// The files as they were at one time.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// When it was made, in nanoseconds since 1970: it is known by that.
    number: u64,
    files: Vec<Carried>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Carried {
    name: String,
    #[serde(with = "sde_engine::bulk")]
    bytes: Vec<u8>,
}

/// The generations of a run, the latest first.
pub(crate) struct Carry<'a> {
    /// The run that has them, and the names of its files; none without any.
    of: Option<(&'a Handle, &'a [String])>,
    kept: Mutex<VecDeque<Value<Generation>>>,
}

impl<'a> Carry<'a> {
    /// Those that attempts before this call have left.
    pub(crate) fn new(sde: Option<&'a Handle>, names: &'a [String]) -> Self {
        let of = sde.filter(|_| !names.is_empty()).map(|sde| (sde, names));
        let mut kept: VecDeque<Value<Generation>> = VecDeque::new();
        // A state that can't be read is told by the engine, and counts as none.
        let found = of.and_then(|(sde, _)| sde.scratch::<Generation>().load_each().ok());
        // One with other files was left by calls that named those.
        let is_named =
            |one: &Value<Generation>| one.files.iter().all(|file| names.contains(&file.name));
        for one in found.into_iter().flatten().filter(is_named) {
            // The latest is in memory and in the store.
            if kept.len() < KEPT && kept.iter().all(|other| other.number != one.number) {
                kept.push_back(one);
            }
        }
        Self {
            of,
            kept: Mutex::new(kept),
        }
    }

    pub(crate) fn latest(&self) -> Option<Value<Generation>> {
        lock(&self.kept).front().cloned()
    }

    /// Forgets a generation from which an attempt failed, and those that came of it.
    pub(crate) fn forget(&self, failed: &Generation) {
        lock(&self.kept).retain(|one| one.number < failed.number);
    }

    /// Forgets all generations.
    pub(crate) fn clear(&self) {
        lock(&self.kept).clear();
    }

    /// Copies the files of a folder now and then while the program runs there.
    pub(crate) fn beside<R>(&self, work: &Path, every: Duration, run: impl FnOnce() -> R) -> R {
        if self.of.is_none() {
            return run();
        }
        let (ends, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let copies = move || {
                while ended.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
                    self.copy(work);
                }
            };
            // Without a thread there is the copy at the end.
            let name = "sde-carry".to_owned();
            let _ = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, copies);
            let done = run();
            drop(ends);
            done
        })
    }

    /// Makes a generation, unless the files are those of the latest, are being written, or can't be read.
    pub(crate) fn copy(&self, work: &Path) {
        let Some((sde, names)) = self.of else {
            return;
        };
        let Ok(files) = read(work, names, &|| {}) else {
            return;
        };
        let latest = self.latest();
        if files.is_empty() || latest.as_ref().is_some_and(|latest| latest.files == files) {
            return;
        }
        let now = results::nanos(SystemTime::now());
        // Later than the latest, whatever the clocks say.
        let number = latest.map_or(now, |latest| now.max(latest.number.saturating_add(1)));
        let generation = Value::new(Generation { number, files });
        // It fails only for a run that is over.
        if sde.scratch::<Generation>().save(generation.clone()).is_ok() {
            let mut kept = lock(&self.kept);
            kept.push_front(generation);
            kept.truncate(KEPT);
        }
    }
}

impl Generation {
    pub(crate) fn is_before(&self, other: Option<&Self>) -> bool {
        other.is_some_and(|other| self.number < other.number)
    }

    /// Puts the files into a run's folder.
    pub(crate) fn place(&self, work: &Path) -> io::Result<()> {
        self.files.iter().try_for_each(|file| {
            let path = work.join(&file.name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, &file.bytes)
        })
    }
}

/// Those of the files that are there. An error if one is changed meanwhile.
fn read(work: &Path, names: &[String], meanwhile: &dyn Fn()) -> io::Result<Vec<Carried>> {
    let seen = || -> Vec<Option<[i64; 4]>> {
        let about = |name| fs::symlink_metadata(work.join(name)).ok();
        let files = names
            .iter()
            .map(|name| about(name).filter(fs::Metadata::is_file));
        files.map(|about| Some(identity(&about?))).collect()
    };
    let before = seen();
    let there = names.iter().zip(&before).filter(|(_, seen)| seen.is_some());
    let files = there.map(|(name, _)| {
        let bytes = fs::read(work.join(name))?;
        let name = name.clone();
        Ok(Carried { name, bytes })
    });
    let files = files.collect::<io::Result<Vec<_>>>()?;
    meanwhile();
    match before == seen() {
        true => Ok(files),
        false => Err(io::Error::other("it is being written")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_change_while_they_are_read_are_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["a", "b"].map(str::to_owned);
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("a", "1");
        let files = read(dir.path(), &names, &|| {}).unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!((&*files[0].name, &*files[0].bytes), ("a", &b"1"[..]));
        assert!(read(dir.path(), &names, &|| write("b", "2")).is_err());
        assert!(read(dir.path(), &names, &|| write("a", "12")).is_err());
        assert_eq!(read(dir.path(), &names, &|| {}).unwrap().len(), 2);
    }
}
