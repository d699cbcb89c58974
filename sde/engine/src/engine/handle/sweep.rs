//! What a program needs that goes through a list of commands: the key of each is known only once its files are read.

use std::fmt;

use super::super::gate::Gate;
use super::items::Ended;
use super::request::{Request, is_left};
use super::{AppSource, Handle, Policy};
use crate::error::Error;
use crate::event::RunId;

/// A list of calls that begins nothing that does not fit the job's time.
#[doc(hidden)]
pub struct Sweep<'a>(Gate<'a>);

impl fmt::Debug for Sweep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep").finish_non_exhaustive()
    }
}

impl Handle {
    /// A list of calls whose costs are estimated by those of this app.
    #[doc(hidden)]
    #[must_use]
    pub fn sweep(&self, app: &str) -> Sweep<'_> {
        Sweep(Gate::new(self.engine(), &app.into()))
    }

    /// Does items of a list on several threads, in an order of this process's own; the results are in the order of the items. An item
    /// for which `each` gives none is left to another process, and comes again at the end, with the word to wait for that
    /// one. Nothing more begins once `goes_on` refuses a result: items not begun are `None`.
    #[doc(hidden)]
    pub fn each_beside_others<T: Sync, R: Send>(
        &self,
        label: &str,
        items: &[T],
        each: impl Fn(&T, bool) -> Option<R> + Sync,
        goes_on: impl Fn(&R) -> bool + Sync,
    ) -> Vec<Option<R>> {
        let each = |item: &T, waits| each(item, waits).map_or(Ended::Elsewhere, Ended::Done);
        let name = |at, _: &T| format!("item {at}");
        let is_shared = self.engine().sharing.is_some();
        self.in_order((label, items, is_shared), name, each, goes_on)
    }
}

impl<'a, A: AppSource + ?Sized> Request<'a, A> {
    /// Makes the run as a part of a list. Where it does not wait, a run that another process is at is an error that
    /// [`Error::is_elsewhere`] knows, and nobody is told of.
    #[doc(hidden)]
    pub fn in_sweep(mut self, sweep: &'a Sweep<'a>, waits: bool) -> Self {
        self.options.gate = Some(&sweep.0);
        self.options.waits_for_processes = waits;
        self
    }

    /// Computes the run anew in place of this computation; one that another process makes meanwhile serves too.
    #[doc(hidden)]
    pub fn in_place_of(mut self, made_by: RunId) -> Self {
        self.options.policy = Policy::Refresh;
        self.options.replaced = Some(made_by);
        self
    }
}

impl Error {
    /// Whether another process is at the run, and it was not to be waited for.
    #[doc(hidden)]
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        is_left(self)
    }
}
