//! A part of the ranks, for a piece of the program; and values that other ranks have kept to themselves.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use super::Handle;
use crate::entry::RecordHead;
use crate::error::Error;
use crate::key::Key;
use crate::ranks::CollectiveOp;
use crate::result_map::Tags;

/// Runs apps on some of the ranks of a process set, until they are released; made by
/// [`Handle::split`]. It dereferences to a [`Handle`].
///
/// Call [`release`](Self::release) when the piece of the program is over: then the other ranks get the results computed
/// here. If it is dropped unreleased, they get an error when they release theirs. [`Handle::split_for`] can't forget
/// to.
#[must_use = "release it"]
pub struct Subset {
    handle: Handle,
    whole: Handle,
    released: bool,
}

/// Says whether a value moves: run, result, tags.
type Filter = Arc<dyn Fn(&RecordHead, &str, Tags) -> bool + Send + Sync>;

/// Selects the values that move when process sets change. It must say the same on all ranks.
///
/// When ranks are released, keys move in any case. So values that stay behind are known ([`Handle::elsewhere`]) and can
/// be [fetched](Handle::fetch) later; a run that needs one before computes it again. A value that lies on several ranks
/// and stays behind is computed again where it is needed. For a split see [`Handle::split_with`].
#[derive(Clone, Default)]
pub struct Transfer {
    filter: Option<Filter>,
    limit: Option<u64>,
}

impl Transfer {
    /// All values, whatever their size.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// No values.
    #[must_use]
    pub fn none() -> Self {
        Self::all().only(|_, _, _| false)
    }

    /// The values of these apps, by name.
    #[must_use]
    pub fn of_apps<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        Self::all().only(move |app, _, _| names.contains(app))
    }

    /// The values of these runs, as [`Peek::key`](crate::Peek::key) names them.
    #[must_use]
    pub fn of_runs(keys: impl IntoIterator<Item = Key>) -> Self {
        let keys: BTreeSet<Key> = keys.into_iter().collect();
        Self {
            filter: Some(Arc::new(move |record, _, _| keys.contains(&record.key))),
            limit: None,
        }
    }

    /// Only the entries whose values have no more bytes than this together, as they are sent. Of a
    /// value that lies on several ranks all parts count, each with its [size](crate::MemorySize).
    #[must_use]
    pub fn at_most(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Only the values that the function chooses, by app, result and tags.
    #[must_use]
    pub fn only(
        mut self,
        filter: impl Fn(&str, &str, Tags) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filter = Some(Arc::new(move |record, result, tags| {
            filter(&record.app, result, tags)
        }));
        self
    }

    pub(crate) fn stays(&self, record: &RecordHead, result: &str, tags: Tags) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| !filter(record, result, tags))
    }

    pub(crate) fn is_too_large(&self, bytes: u64) -> bool {
        self.limit.is_some_and(|limit| bytes > limit)
    }
}

impl std::fmt::Debug for Transfer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transfer")
            .field("filtered", &self.filter.is_some())
            .field("limit", &self.limit)
            .finish()
    }
}

impl Handle {
    /// Splits the ranks: those that give one `color` go on together, in the order of `key` (and
    /// of their ranks where keys are equal). Collective. Values that lie on several ranks stay where they lie: name those that a
    /// subset needs in [`split_with`](Self::split_with). Other results are on all ranks already. Until the subset is
    /// released, nothing collective can be done through this handle.
    ///
    /// # Errors
    /// All ranks get one error if a rank calls something else. An error on this rank, if it is called where other
    /// ranks can't join in, or the ranks are split already.
    pub fn split(&self, color: u32, key: i64) -> Result<Subset, Error> {
        self.split_with(color, key, &Transfer::none())
    }

    /// Splits as [`split`](Self::split) does, and gives each subset the whole of those values on several ranks that
    /// `transfer` names.
    ///
    /// A subset that runs the app of another such value gets it from the store, if all ranks of the subset find it
    /// there. Else that run is an [error](crate::ErrorKind::LeftBehind) on all of them until the release. Where the
    /// larger process set does not remember the value either, the subset computes it.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    pub fn split_with(&self, color: u32, key: i64, transfer: &Transfer) -> Result<Subset, Error> {
        let doing = || format!("splits its process set for color {color}");
        let handle = match self.collective_ranks(doing)? {
            Some(ranks) => Self {
                ranks: Some(self.engine().split_set(ranks, color, key, transfer)?),
                ..self.clone()
            },
            None => self.clone(),
        };
        Ok(Subset {
            handle,
            whole: self.clone(),
            released: false,
        })
    }

    /// Splits the ranks for the call of a function, and releases them when it has returned,
    /// with an error or by a panic too.
    ///
    /// # Errors
    /// As [`split`](Self::split) and [`Subset::release`]; an error of the function comes first.
    pub fn split_for<R>(
        &self,
        color: u32,
        key: i64,
        then: impl FnOnce(&Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.split_for_with(color, key, &Transfer::none(), then)
    }

    /// Splits as [`split_for`](Self::split_for) does. Values on several ranks go to the subsets as in
    /// [`split_with`](Self::split_with).
    ///
    /// # Errors
    /// As [`split_for`](Self::split_for).
    pub fn split_for_with<R>(
        &self,
        color: u32,
        key: i64,
        transfer: &Transfer,
        then: impl FnOnce(&Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let subset = self.split_with(color, key, transfer)?;
        let returned = then(&subset);
        let released = subset.release();
        let returned = returned?;
        released.map(|()| returned)
    }

    /// The keys of runs that other ranks have computed, where a [`Transfer`] left some or all of the values with them;
    /// without those that this rank has got since. [`fetch`](Self::fetch) gets the values. Not collective.
    #[must_use]
    pub fn elsewhere(&self) -> Vec<Key> {
        self.engine().keys_elsewhere()
    }

    /// Fetches results that were [left](Self::elsewhere) with another rank, which has them in memory. Collective; each
    /// rank may ask for other keys, or for none. The next run that asks for a fetched result takes it up, which counts
    /// as a load.
    ///
    /// Gives the keys that this rank still lacks: no rank has their values in memory any more, or `transfer` leaves
    /// them again. Values that lie on several ranks can't be fetched; the app gives them as they lie on the process set
    /// it runs on.
    ///
    /// ```
    /// use sde::Sde;
    /// use sde::ranks::Transfer;
    ///
    /// let sde = Sde::new();
    /// let lacking = sde.fetch(&sde.elsewhere(), &Transfer::all())?;
    /// assert!(lacking.is_empty());
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// All ranks get one error if a rank calls something else, or a sent value can't be read. An error on this rank,
    /// if it is called where other ranks can't join in.
    pub fn fetch(&self, keys: &[Key], transfer: &Transfer) -> Result<Vec<Key>, Error> {
        match self.collective_ranks(|| "fetches what is elsewhere".to_owned())? {
            Some(ranks) => self.engine().fetch_keys(ranks, keys, transfer),
            // One process has all values.
            None => Ok(Vec::new()),
        }
    }
}

impl Subset {
    /// Returns to all ranks of the larger process set. Each of them then has the results that any of them has computed.
    /// Collective over the larger set.
    ///
    /// Handles of the subset, and values distributed over it, are of no use any more.
    ///
    /// # Errors
    /// All ranks get one error if a rank calls something else, or a result can't be sent. The subset is released in
    /// any case.
    pub fn release(self) -> Result<(), Error> {
        self.release_with(&Transfer::all())
    }

    /// Releases as [`release`](Self::release) does, but moves only the values that `transfer` names.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn release_with(self, transfer: &Transfer) -> Result<(), Error> {
        self.release_as(CollectiveOp::Release, transfer, None)
    }

    /// Releases at the end of a piece of work, which may have failed on this rank: then all get the error.
    pub(crate) fn release_as(
        mut self,
        op: CollectiveOp,
        transfer: &Transfer,
        failure: Option<&Error>,
    ) -> Result<(), Error> {
        self.released = true;
        let (Some(part), Some(whole)) = (self.handle.shared_ranks(), self.whole.shared_ranks())
        else {
            return Ok(());
        };
        let engine = self.whole.engine();
        engine.release_set(whole, part, (op, failure), transfer)
    }
}

impl Deref for Subset {
    type Target = Handle;
    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Subset {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        if let (Some(part), Some(whole)) = (self.handle.shared_ranks(), self.whole.shared_ranks()) {
            let _fresh = self.whole.engine().abandon_set(whole, part);
        }
    }
}

impl std::fmt::Debug for Subset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subset({:?})", self.handle.shared_ranks())
    }
}
