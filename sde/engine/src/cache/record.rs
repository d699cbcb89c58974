//! How what the cache holds was made.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::app::{
    AppId, AppSetup, Callee, CodeId, Compared, Difference, Nearest, of_callees, of_keys,
};
use crate::event::RunId;
use crate::inputs::ValueSummary;
use crate::key::Key;

/// How one entry was made: the record of a calculation, which stays when its
/// values are gone.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// The app.
    pub app: Arc<str>,
    /// Its version or source digest.
    pub code: CodeId,
    /// Its identity with all its settings.
    pub id: AppId,
    /// The key of the run.
    pub key: Key,
    /// The computation.
    pub run: RunId,
    /// A readable line for each input.
    pub inputs: Vec<ValueSummary>,
    /// How the app was set up: its fields, parameters and sub-apps.
    pub setup: Arc<AppSetup>,
    /// The runs it called itself: app and key.
    pub calls: Vec<(Arc<str>, Key)>,
    /// What the runs nested in it depended on.
    #[serde(rename = "beneath")]
    pub dependencies: Vec<Callee>,
    /// Whether it, or a run nested in it, was non-deterministic.
    pub nondeterministic: bool,
    /// Whether it, or a run nested in it, may have been made in place of another that was not to be used: refreshed, or
    /// invalidated; one that went on from a saved state may. What it returned may be other than what runs of its key
    /// returned before.
    #[serde(default)]
    pub anew: bool,
    /// When it was made.
    pub made_at: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// The number of the thread that computed it: of the threads that live at a time each has another, and small ones go first.
    #[serde(default)]
    pub thread: u32,
    /// The name of the machine that computed it; empty if that is not known.
    #[serde(default)]
    pub host: Arc<str>,
    /// What that is: processor architecture and operating system.
    #[serde(default)]
    pub target: Arc<str>,
}

impl Record {
    /// In what this run is another than an earlier one. What is in the key comes first: the app, its
    /// version, fields, parameters and sub-apps, then the inputs; then what its nested runs depended on.
    ///
    /// Nothing, if both are runs of one key and rested on the same code.
    #[must_use]
    pub fn differences(&self, earlier: &Self) -> Vec<Difference> {
        let mut found = match self.key == earlier.key {
            true => Vec::new(),
            false => of_keys(earlier.compared(), self.compared()),
        };
        found.extend(of_callees(&earlier.dependencies, &self.dependencies));
        found
    }

    /// Whether another computation of this key gave the same: it is this one, or both are deterministic, of the same code,
    /// and made in place of none.
    pub(crate) fn gives_the_same(&self, other: &Self) -> bool {
        let may_differ = |record: &Self| record.nondeterministic || record.anew;
        self.run == other.run
            || self.id == other.id
                && self.dependencies == other.dependencies
                && !may_differ(self)
                && !may_differ(other)
    }

    /// The run that this one is most like, and in what it differs; see [`Nearest`].
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

    /// Takes `other` in place of the `nearest` so far, if this run is more like it, and says whether it did: for
    /// records that come one by one.
    pub fn look_at(&self, other: &Self, nearest: &mut Option<Nearest>) -> bool {
        other.offer(&self.key, self.differences(other), nearest)
    }

    /// The same of this run, which differs so from that of a key.
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

    /// The apps that it rests on, itself among them.
    pub(crate) fn apps(&self) -> impl Iterator<Item = Arc<str>> {
        let callees = self.dependencies.iter().filter_map(|callee| match callee {
            Callee::Code { app, .. } => Some(Arc::clone(app)),
            Callee::Named { .. } | Callee::Absent { .. } => None,
        });
        callees.chain([Arc::clone(&self.app)])
    }

    /// About how many bytes it takes, with its share of what records share: as many as there are now.
    pub(super) fn memory(&self) -> usize {
        let summaries = self.inputs.iter().map(ValueSummary::owned).sum::<usize>();
        let lists = size_of_val(&*self.inputs)
            + size_of_val(&*self.calls)
            + size_of_val(&*self.dependencies);
        // An app that is there holds it too.
        let records = (Arc::strong_count(&self.setup) - 1).max(1);
        size_of::<Self>() + lists + summaries + self.setup.memory() / records
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
