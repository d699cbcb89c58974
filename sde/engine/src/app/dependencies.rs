//! The dependencies of a run: the runs it called, and the code and names that must be unchanged for its result to be
//! current.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::identity::{AppId, CodeId};
use crate::key::{Digest, Key};
use crate::sync::{lock, unpoisoned};

/// Names something that must be unchanged for a remembered result to be current.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub enum Callee {
    /// The code of an app, and its defaults.
    Code {
        /// The app.
        app: Arc<str>,
        /// The app's version or source digest.
        code: CodeId,
        /// The digest of its default parameters and of the apps in its slots by default;
        /// `None` if it has neither.
        defaults: Option<Digest>,
    },
    /// The app and settings that a registered name led to.
    Named {
        /// The registered name.
        name: Arc<str>,
        /// The identity it had.
        id: AppId,
    },
    /// No app was registered under this name, and the run went on without.
    Absent {
        /// The name.
        name: Arc<str>,
    },
}

impl Callee {
    /// Hashes all parts that tell it from another.
    pub(crate) fn enter(&self, digest: &mut blake3::Hasher) {
        let parts: &[&[u8]] = match self {
            Self::Code {
                app,
                code,
                defaults,
            } => {
                let (kind, code): (&[u8], &[u8]) = match code {
                    CodeId::Version(version) => (b"version", version.as_bytes()),
                    CodeId::Source(source) => (b"source", source.as_bytes()),
                };
                let defaults = defaults.as_ref().map_or(&[][..], |all| all.as_bytes());
                &[b"code", app.as_bytes(), kind, code, defaults]
            }
            Self::Named { name, id } => &[b"named", name.as_bytes(), id.as_bytes()],
            Self::Absent { name } => &[b"absent", name.as_bytes()],
        };
        for part in parts {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
}

pub(crate) type AppCall = (Arc<str>, Key);

/// The dependencies of a run in progress, so far.
#[derive(Default)]
pub(crate) struct Dependencies {
    noted: Mutex<Noted>,
    nondeterministic: AtomicBool,
    /// Whether a nested run failed so that it fails again until another process tries it.
    failed: AtomicBool,
    /// Whether a nested run was made in place of an entry that was not to be used.
    anew: AtomicBool,
}

/// Nothing is allocated for a run that calls none.
#[derive(Default)]
struct Noted {
    /// The runs it called itself, in the order of their ends. Runs are only appended, so each state of a scratch keeps
    /// a length, not a copy.
    calls: Option<Arc<Mutex<Vec<AppCall>>>>,
    /// The dependencies of the run and of runs nested in it, at any depth.
    dependencies: Option<Arc<BTreeSet<Callee>>>,
}

impl Dependencies {
    /// Notes a run made by this one.
    pub(crate) fn called(&self, app: &Arc<str>, key: Key) {
        let mut noted = lock(&self.noted);
        lock(noted.calls.get_or_insert_default()).push((Arc::clone(app), key));
    }

    /// Adds dependencies, and whether any of them was non-deterministic.
    pub(crate) fn add(&self, more: impl IntoIterator<Item = Callee>, nondeterministic: bool) {
        if nondeterministic {
            self.nondeterministic.store(true, Ordering::Relaxed);
        }
        let mut noted = lock(&self.noted);
        for callee in more {
            let dependencies = noted.dependencies.get_or_insert_default();
            if !dependencies.contains(&callee) {
                Arc::make_mut(dependencies).insert(callee);
            }
        }
    }

    pub(crate) fn snapshot(&self) -> DependencySnapshot {
        let mut noted = lock(&self.noted);
        let all = Arc::clone(noted.calls.get_or_insert_default());
        let length = lock(&all).len();
        DependencySnapshot {
            callees: Callees {
                direct: Calls { all, length },
                beneath: Arc::clone(noted.dependencies.get_or_insert_default()),
            },
            nondeterministic: self.saw_nondeterminism() || self.saw_failure(),
        }
    }

    /// Takes on the dependencies of an earlier, unfinished run of this key.
    pub(crate) fn inherit(&self, from: &DependencySnapshot) {
        let Callees { direct, beneath } = &from.callees;
        self.add(beneath.iter().cloned(), from.nondeterministic);
        // A saved state does not tell whether runs called for it were made anew, so they are taken to be.
        self.note_anew(true);
        let earlier = Vec::from(direct.clone());
        let mut noted = lock(&self.noted);
        let mut calls = lock(noted.calls.get_or_insert_default());
        let known: HashSet<_> = calls.iter().cloned().collect();
        calls.extend(earlier.into_iter().filter(|call| !known.contains(call)));
    }

    /// The runs that it called itself, and its dependencies, when it has ended.
    pub(crate) fn take(&self) -> (Vec<AppCall>, Vec<Callee>) {
        let Noted {
            calls,
            dependencies,
        } = std::mem::take(&mut *lock(&self.noted));
        let all = |calls: Arc<Mutex<Vec<_>>>| match Arc::try_unwrap(calls) {
            Ok(own) => unpoisoned(own.into_inner()),
            // A saved state of its scratch shares them.
            Err(shared) => lock(&shared).clone(),
        };
        let dependencies = dependencies.iter().flat_map(|all| all.iter().cloned());
        (calls.map_or_else(Vec::new, all), dependencies.collect())
    }

    pub(crate) fn saw_nondeterminism(&self) -> bool {
        self.nondeterministic.load(Ordering::Relaxed)
    }

    /// Notes that a nested run failed, and fails again until another process tries it.
    pub(crate) fn note_failure(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn saw_failure(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Notes whether a run nested in this one was made in place of another.
    pub(crate) fn note_anew(&self, anew: bool) {
        if anew {
            self.anew.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_anew(&self) -> bool {
        self.anew.load(Ordering::Relaxed)
    }
}

/// The dependencies of a run when it saved a state of its scratch. The names are part of the stored shape that is
/// compared.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(rename = "RestsOn")]
pub(crate) struct DependencySnapshot {
    pub(crate) callees: Callees,
    nondeterministic: bool,
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Callees {
    direct: Calls,
    pub(crate) beneath: Arc<BTreeSet<Callee>>,
}

/// The runs that a run had called itself by then.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<AppCall>", into = "Vec<AppCall>")]
struct Calls {
    all: Arc<Mutex<Vec<AppCall>>>,
    length: usize,
}

impl From<Calls> for Vec<AppCall> {
    fn from(calls: Calls) -> Self {
        lock(&calls.all)[..calls.length].to_vec()
    }
}

impl From<Vec<AppCall>> for Calls {
    fn from(calls: Vec<AppCall>) -> Self {
        Self {
            length: calls.len(),
            all: Arc::new(Mutex::new(calls)),
        }
    }
}
