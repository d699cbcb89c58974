//! Collective operations that any code may ask for.
//!
//! Ranks that miss different keys run different bodies, so a body that some ranks have cached must not call
//! collectives. Only the program's own thread may call them: at the top, or in apps that all ranks run together. Those
//! are declared `distributed`, or have such an app in a slot.

use std::sync::Arc;

use super::collective::{Collective, not_here};
use super::sets::ProcessSet;
use super::values::gather_values;
use crate::app::{Handle, ThreadContext};
use crate::error::{Error, ErrorKind};
use crate::result_map::{Storable, Value, Wire};

impl Handle {
    /// The number of this rank in its process set, from 0; 0 in a program that runs on one process.
    ///
    /// # Errors
    /// In the body of an app that is not `distributed`: its results are given to all ranks, and must not depend on
    /// where it ran.
    pub fn rank(&self) -> Result<usize, Error> {
        let ranks = self.collective_ranks(|| "asks for its rank".to_owned())?;
        Ok(ranks.map_or(0, |ranks| ranks.rank()))
    }

    /// The number of ranks of the process set; 1 in a program that runs on one process.
    ///
    /// # Errors
    /// As [`rank`](Self::rank).
    pub fn ranks(&self) -> Result<usize, Error> {
        let ranks = self.collective_ranks(|| "asks for the number of ranks".to_owned())?;
        Ok(ranks.map_or(1, |ranks| ranks.size()))
    }

    /// Gathers a value of each rank on all, in the order of ranks. Collective: every rank of the process set calls
    /// it.
    ///
    /// ```
    /// use sde::Sde;
    /// let sde = Sde::new();
    /// assert_eq!(*sde.gather("energies", -76.0_f64)?[0], -76.0);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// On all ranks alike, if one calls something else, or its value can't be turned into bytes. On this rank, if it is
    /// called where other ranks can't join in.
    pub fn gather<T: Storable>(&self, what: &str, value: T) -> Result<Vec<Value<T>>, Error> {
        let value = Value::new(value);
        let Some(ranks) = self.collective_ranks(|| format!("gathers {what}"))? else {
            return Ok(vec![value]);
        };
        gather_values(ranks, &*self.wire()?, what, value)
    }

    /// The collective operations of the ranks that this code runs on, for a type whose values lie on several of them;
    /// `None` in a program that runs on one process. `doing` tells for messages what this rank is about to do.
    ///
    /// # Errors
    /// On this rank, if it is called where other ranks can't join in.
    pub fn collective(&self, doing: impl Fn() -> String) -> Result<Option<&dyn Collective>, Error> {
        let ranks = self.collective_ranks(doing)?;
        Ok(ranks.map(|set| &***set as &dyn Collective))
    }

    /// The ranks that this handle's code runs on, all of which join in the operation; `None` in a program that runs on
    /// one process.
    pub(crate) fn collective_ranks(
        &self,
        doing: impl Fn() -> String,
    ) -> Result<Option<&Arc<ProcessSet>>, Error> {
        self.check_active()?;
        if let Some(frame) = self.caller()
            && !frame.resolved.is_distributed()
        {
            let (app, key) = (Arc::clone(&frame.resolved.name), frame.key);
            let doing = doing();
            return Err(ErrorKind::NotDistributed { app, key, doing }.into());
        }
        if ThreadContext::here().is_beside() {
            return Err(not_here(doing()));
        }
        match self.shared_ranks() {
            Some(ranks) if !ranks.is_own_thread() => Err(not_here(doing())),
            ranks => Ok(ranks),
        }
    }

    /// The ranks to share work with, if there are several and all of them reach this place.
    pub(crate) fn all_ranks(&self) -> Option<&Arc<ProcessSet>> {
        let ranks = self.collective_ranks(String::new).ok()??;
        (ranks.size() > 1).then_some(ranks)
    }

    /// How values are written for other ranks.
    pub(crate) fn wire(&self) -> Result<Arc<dyn Wire>, Error> {
        self.engine().wire()
    }
}
