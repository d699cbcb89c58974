//! What was left on other ranks, and getting it after all.

use super::Handle;
use super::subset::Transfer;
use crate::error::Error;
use crate::key::Key;

impl Handle {
    /// The keys of what other ranks have computed, where a [`Transfer`] left the values with them, or some
    /// of them; without what this rank has got since. [`fetch`](Self::fetch) gets it. Not collective.
    #[must_use]
    pub fn elsewhere(&self) -> Vec<Key> {
        self.engine().left_elsewhere()
    }

    /// Has each rank get what it asks for from another that has it in memory: results that were
    /// [left there](Self::elsewhere). Collective; each rank may ask for other keys, or for none. What
    /// comes is taken up by the next run that asks for it, which counts as a load.
    ///
    /// Gives the keys that this rank still lacks: of what nobody has in memory any more, or `transfer`
    /// leaves again. Values that lie on several ranks can't be fetched; the app gives them as they lie on
    /// the process set it runs on.
    ///
    /// ```
    /// use sde::{Sde, Transfer};
    ///
    /// let sde = Sde::new();
    /// let lacking = sde.fetch(&sde.elsewhere(), &Transfer::all())?;
    /// assert!(lacking.is_empty());
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// The same on all ranks, if one calls something else, or what is sent can't be read. On this rank, if
    /// it is called where other ranks can't join in.
    pub fn fetch(&self, keys: &[Key], transfer: &Transfer) -> Result<Vec<Key>, Error> {
        match self.collective_ranks(|| "fetches what is elsewhere".to_owned())? {
            Some(ranks) => self.engine().fetch_keys(ranks, keys, transfer),
            // One process has all that there is.
            None => Ok(Vec::new()),
        }
    }
}
