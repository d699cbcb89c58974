//! What a program needs that goes through a list of commands: the key of each is known only once its files are read.

use super::request::{Request, is_left};
use super::{AppSource, Handle, Policy};
use crate::error::Error;
use crate::event::RunId;

impl Handle {
    /// Does items of a list on several threads; the results are in the order of the items. Processes that were given one list begin
    /// at different places. An item for which `each` gives none is left to another process, and comes again at the end,
    /// with the word to wait for that one. Nothing more begins once `goes_on` refuses a result: items not begun are
    /// `None`.
    #[doc(hidden)]
    pub fn each_beside_others<T: Sync, R: Send>(
        &self,
        label: &str,
        items: &[T],
        each: impl Fn(&T, bool) -> Option<R> + Sync,
        goes_on: impl Fn(&R) -> bool + Sync,
    ) -> Vec<Option<R>> {
        #[expect(clippy::cast_possible_truncation, reason = "any place will do")]
        let first = self.engine().number() as usize;
        self.in_order(label, items, first, each, goes_on)
    }
}

impl<A: AppSource + ?Sized> Request<'_, A> {
    /// Leaves the run to another process that is at it: an error that [`Error::is_elsewhere`] knows, and nobody is told of.
    #[doc(hidden)]
    pub fn unless_elsewhere(mut self) -> Self {
        self.options.waits_for_processes = false;
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
