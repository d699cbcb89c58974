//! The records of runs: how an entry was made.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::app::{
    AppId, AppSetup, Callee, CodeId, Compared, Difference, Nearest, of_callees, of_keys,
};
use crate::entry::failure::{beginning, end};
use crate::entry::{FailureRecord, failure_key};
use crate::error::Failure;
use crate::event::RunId;
use crate::inputs::ValueSummary;
use crate::key::Key;

/// The part of a record that runs of one app with equal settings and dependencies share.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Provenance {
    /// The app.
    pub app: Arc<str>,
    /// The app's version or source digest.
    pub code: CodeId,
    /// The app's identity with all its settings.
    pub id: AppId,
    /// The app's fields, parameters and sub-apps.
    pub setup: Arc<AppSetup>,
    /// The dependencies of the runs nested in it.
    #[serde(rename = "beneath")]
    pub dependencies: Vec<Callee>,
    /// The name of the machine that computed it; empty if that is not known.
    #[serde(default)]
    pub host: Arc<str>,
    /// The login name that the environment of the computing process gave; empty if that is not known. A claim: nothing
    /// verifies it.
    #[serde(default)]
    pub user: Arc<str>,
    /// Processor architecture and operating system of that machine.
    #[serde(default)]
    pub target: Arc<str>,
    /// The job of a batch system in which it was computed, the same for all jobs of an array; empty if there was none.
    #[serde(default)]
    pub job: Arc<str>,
}

/// The part of a record that stays in memory for as long as its entry.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RecordHead {
    /// The part that it shares with other runs.
    #[serde(flatten)]
    pub provenance: Arc<Provenance>,
    /// The key of the run.
    pub key: Key,
    /// The computation.
    pub run: RunId,
    /// The runs it called itself: app and key.
    pub calls: Box<[(Arc<str>, Key)]>,
    /// Whether it, or a run nested in it, was non-deterministic.
    pub nondeterministic: bool,
    /// Whether it, or a run nested in it, was refreshed, made again after an invalidation, or resumed from a saved
    /// state. It may return other values than earlier runs of its key.
    #[serde(default)]
    pub anew: bool,
    /// When it was made.
    pub made_at: SystemTime,
    /// The time that the run took. If it went on from a scratch state, that of the runs before is added, up to the state.
    pub took: Duration,
    /// The number of the thread that computed it. No two live threads share a number, and small ones are given out
    /// first.
    #[serde(default)]
    pub thread: u32,
}

/// Tells how one entry was made. The record stays when the values are gone.
///
/// It dereferences to its [`RecordHead`] and its [`Provenance`]: `record.app` is the app.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// All but its inputs.
    #[serde(flatten)]
    pub head: RecordHead,
    /// A readable line for each input. Memory drops them once a store has them; if that store is gone, there are none.
    pub inputs: Arc<[ValueSummary]>,
    /// The failure, of a run that failed: then there are no results, and the [key](RecordHead::key) is
    /// [another](failure_key) than the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Arc<FailureRecord>>,
}

impl Provenance {
    /// The part of the records of an app that was set up so. Its runs called no other, and the machine is not known.
    #[must_use]
    pub fn new(app: impl Into<Arc<str>>, code: CodeId, id: AppId, setup: Arc<AppSetup>) -> Self {
        Self {
            app: app.into(),
            code,
            id,
            setup,
            dependencies: Vec::new(),
            host: Arc::default(),
            user: Arc::default(),
            target: Arc::default(),
            job: Arc::default(),
        }
    }
}

impl Deref for RecordHead {
    type Target = Provenance;

    fn deref(&self) -> &Provenance {
        &self.provenance
    }
}

impl Deref for Record {
    type Target = RecordHead;

    fn deref(&self) -> &RecordHead {
        &self.head
    }
}

impl DerefMut for Record {
    fn deref_mut(&mut self) -> &mut RecordHead {
        &mut self.head
    }
}

impl RecordHead {
    /// The record of a deterministic run that called no other, on thread 0.
    #[must_use]
    pub fn new(
        provenance: Arc<Provenance>,
        key: Key,
        run: RunId,
        made_at: SystemTime,
        took: Duration,
    ) -> Self {
        Self {
            provenance,
            key,
            run,
            calls: Box::default(),
            nondeterministic: false,
            anew: false,
            made_at,
            took,
            thread: 0,
        }
    }

    /// Whether both records promise equal values: they are one run, or both are deterministic, of the same code, and
    /// not [`anew`](Self::anew).
    pub(crate) fn gives_the_same(&self, other: &Self) -> bool {
        let may_differ = |record: &Self| record.nondeterministic || record.anew;
        self.run == other.run
            || self.id == other.id
                && self.dependencies == other.dependencies
                && !may_differ(self)
                && !may_differ(other)
    }

    /// The apps that it rests on, itself among them.
    pub(crate) fn apps(&self) -> impl Iterator<Item = Arc<str>> {
        let callees = self.dependencies.iter().filter_map(|callee| match callee {
            Callee::Code { app, .. } => Some(Arc::clone(app)),
            Callee::Named { .. } | Callee::Absent { .. } => None,
        });
        callees.chain([Arc::clone(&self.app)])
    }

    /// About how many bytes it owns besides itself, with its share of parts common to several records.
    pub(crate) fn owned(&self) -> usize {
        // A live app holds its setup too, so one holder is discounted.
        let share = |holders: usize| (holders - 1).max(1);
        let of_setup = self.setup.memory() / share(Arc::strong_count(&self.setup));
        let common = size_of_val(&*self.dependencies) + of_setup;
        size_of_val(&*self.calls) + common / share(Arc::strong_count(&self.provenance))
    }
}

impl Record {
    /// The record of a run of these inputs.
    #[must_use]
    pub fn new(head: RecordHead, inputs: impl Into<Arc<[ValueSummary]>>) -> Self {
        Self {
            head,
            inputs: inputs.into(),
            failure: None,
        }
    }

    /// The record of this run's failure, under its own [key](failure_key): with the error's text and the end of what
    /// the run printed, each cut to 4 KiB, and how long the failure lasts.
    #[must_use]
    pub fn failed(mut self, message: &str, output: &str, lasts: Failure) -> Self {
        self.failure = Some(Arc::new(FailureRecord {
            of: self.key,
            message: beginning(message).to_owned(),
            output: end(output).to_owned(),
            lasts,
        }));
        self.key = failure_key(&self.key);
        self
    }

    /// Lists the differences of this run from an earlier one. Differences in the key come first: the app, its
    /// version, fields, parameters and sub-apps, then the inputs. The dependencies of nested runs follow.
    ///
    /// Empty if both are runs of one key and rested on the same code.
    #[must_use]
    pub fn differences(&self, earlier: &Self) -> Vec<Difference> {
        let mut found = if self.key == earlier.key {
            Vec::new()
        } else {
            of_keys(earlier.compared(), self.compared())
        };
        found.extend(of_callees(&earlier.dependencies, &self.dependencies));
        found
    }

    /// The run that this one is most like, and how the two differ; see [`Nearest`].
    #[must_use]
    pub fn nearest<'a>(
        &self,
        others: impl IntoIterator<Item = &'a Self>,
    ) -> Option<(&'a Self, Vec<Difference>)> {
        let compared = others.into_iter().map(|other| {
            let differences = self.differences(other);
            (other, other.as_nearest(differences))
        });
        let nearest = compared.min_by_key(|(_, found)| found.rank(&self.key));
        nearest.map(|(other, found)| (other, found.differences))
    }

    /// Replaces `nearest` by `other` if this run is more like that one, and says whether it did: for records that come
    /// one by one.
    pub fn look_at(&self, other: &Self, nearest: &mut Option<Nearest>) -> bool {
        other.offer(&self.key, self.differences(other), nearest)
    }

    /// Replaces `nearest` by this run, which has these differences from the run of `key`, if it is nearer; says whether
    /// it did.
    pub(crate) fn offer(
        &self,
        key: &Key,
        differences: Vec<Difference>,
        nearest: &mut Option<Nearest>,
    ) -> bool {
        let found = self.as_nearest(differences);
        let known = nearest.as_ref();
        let is_nearer = known.is_none_or(|known| found.rank(key) < known.rank(key));
        if is_nearer {
            *nearest = Some(found);
        }
        is_nearer
    }

    fn as_nearest(&self, differences: Vec<Difference>) -> Nearest {
        Nearest {
            key: self.key,
            run: self.run,
            made_at: self.made_at,
            differences,
        }
    }

    pub(crate) fn compared(&self) -> Compared<'_> {
        Compared {
            app: &self.app,
            code: &self.code,
            id: &self.id,
            setup: &self.setup,
            inputs: &self.inputs,
        }
    }
}
