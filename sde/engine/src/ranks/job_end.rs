//! When the job ends, on which all of its ranks agree once.
//!
//! Only one rank asks the batch system, and the clocks of nodes differ. So each rank tells how much time it knows to be
//! left, and the shortest counts.

use std::time::{Duration, Instant};

use super::collective::{CollectiveOp, Header, Ranks};
use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Has the job end on all ranks when it ends on the first of them; `known` says whether this rank could read its end.
    /// Collective.
    pub(crate) fn agree_on_end(
        &self,
        ranks: &Ranks,
        known: Result<(), Error>,
    ) -> Result<(), Error> {
        const WHAT: &str = "how much time the job has";
        // All are there afterwards: what one tells while it waits for another would be too much.
        ranks.agree(WHAT, known)?;
        let header = Header::keyless(CollectiveOp::Agree, WHAT);
        let left: Vec<Option<Duration>> = ranks.gather_all(header, Ok(self.job.time_left()))?;
        let least = left.into_iter().flatten().min();
        if let Some(end) = least.and_then(|least| Instant::now().checked_add(least)) {
            self.job.end_by(end);
        }
        Ok(())
    }
}
