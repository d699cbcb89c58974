//! Meetings: each rank tells which operation it is about to begin, and all compare.

use std::sync::atomic::Ordering;

use super::header::{CollectiveOp, Header, MEETING_BYTES};
use super::{Ranks, RunInputs, differ, not_here};
use crate::error::{Error, ErrorKind};
use crate::ranks::group::GroupError;
use crate::sync::lock;

impl Ranks {
    /// Sends this rank's header, which may tell of a [failure](Header::with_failure), and gives the headers of all
    /// ranks.
    ///
    /// # Errors
    /// On all ranks alike, if they are about to do different things, or one has left; if some have failed, the error of
    /// the lowest of them. On this rank alone, if this thread may not take part in collective operations now.
    pub(crate) fn meet(&self, header: Header) -> Result<Vec<Header>, Error> {
        self.meet_for_run(header, &RunInputs::new)
    }

    /// As [`meet`](Self::meet), for a run whose inputs are `given`: an error names the inputs that differ between
    /// ranks.
    pub(crate) fn meet_for_run(
        &self,
        mut header: Header,
        given: &dyn Fn() -> RunInputs,
    ) -> Result<Vec<Header>, Error> {
        self.may_meet(&header)?;
        self.closed.store(false, Ordering::Relaxed);
        header.sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        header.state_due = self.state_due();
        let what = header.describe();
        let stretch = crate::stretch!(
            "collective",
            doing = what,
            rank = self.rank(),
            ranks = self.size()
        );
        let met = self.headers_of_all(&header, &what)?;
        if !met.iter().all(|other| other.fits(&header)) {
            return Err(self.disagree(&header, &met, given));
        }
        self.heard_states_due(header.state_due, &met);
        stretch.end("met");
        match met.iter().position(Header::has_failed) {
            Some(rank) => Err(self.failure(rank, &met, &header.failure)),
            None => Ok(met),
        }
    }

    /// Compares the outcome of a step that each rank did alone. If it failed on any rank, all ranks get the error of
    /// the lowest rank where it did.
    pub(crate) fn agree<T>(&self, what: &str, went: Result<T, Error>) -> Result<T, Error> {
        let header = Header::keyless(CollectiveOp::Agree, what);
        self.meet(header.with_failure(went.as_ref().err()))?;
        went
    }

    fn may_meet(&self, header: &Header) -> Result<(), Error> {
        self.check()?;
        if !self.is_own_thread() {
            return Err(not_here(header.describe()));
        }
        let releases = matches!(header.op, CollectiveOp::Release | CollectiveOp::EndSweep);
        if self.is_split() && !releases {
            let doing = header.describe();
            return Err(ErrorKind::IsSplit { doing }.into());
        }
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        match lock(&self.doomed).last() {
            Some(Some(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn headers_of_all(&self, own: &Header, what: &str) -> Result<Vec<Header>, Error> {
        let doing = (own.op != CollectiveOp::EndSweep).then_some(what);
        let met = self.meet_group(&own.to_bytes(), doing);
        let met = met.map_err(|error| self.break_off(what, error))?;
        let headers: Option<Vec<_>> = met.chunks(MEETING_BYTES).map(Header::from_bytes).collect();
        let headers = headers.filter(|headers| headers.len() == self.size());
        headers.ok_or_else(|| {
            let foreign = "a rank sent something else than a header; do all run one program?";
            self.break_off(what, GroupError::Other(foreign.to_owned()))
        })
    }

    /// The error that all ranks get if their headers disagree.
    fn disagree(&self, own: &Header, headers: &[Header], given: &dyn Fn() -> RunInputs) -> Error {
        // Compares only what was sent in headers, so that all ranks decide alike.
        let runs =
            |header: &Header| header.op == CollectiveOp::Run && header.what == headers[0].what;
        let is_one_app = headers.iter().all(runs);
        // A run that failed before it had a key disagrees in its key.
        let failed =
            |header: &Header| (header.op == CollectiveOp::End || is_one_app) && header.has_failed();
        let error = match headers.iter().position(failed) {
            Some(rank) => self.failure(rank, headers, &own.failure),
            None => {
                let given = is_one_app.then(|| self.differing(given()));
                let ranks = self.told(headers, &given.unwrap_or_default());
                ErrorKind::Disagree { ranks }.into()
            }
        };
        let ended = headers.iter().any(|header| header.op == CollectiveOp::End);
        if ended
            && own.op != CollectiveOp::End
            && let Some(level) = lock(&self.doomed).last_mut()
        {
            *level = Some(error.clone());
        }
        error
    }

    /// For each rank, the inputs that not all give. Collective.
    fn differing(&self, given: RunInputs) -> Vec<String> {
        let header = Header::keyless(CollectiveOp::Agree, "what it gives");
        let all = self.gather_all(header, Ok(given));
        all.map_or_else(|_| Vec::new(), |all| differ::differing(&all))
    }

    /// Lists the different operations, each with its lowest rank.
    fn told(&self, headers: &[Header], given: &[String]) -> Vec<String> {
        let mut told: Vec<(usize, String)> = Vec::new();
        for (rank, header) in headers.iter().enumerate() {
            let text = match given.get(rank).filter(|given| !given.is_empty()) {
                Some(given) => format!("{} with {given}", header.describe()),
                None => header.describe(),
            };
            if !told.iter().any(|(_, said)| *said == text) {
                told.push((self.in_program(rank), text));
            }
        }
        let texts = told.into_iter();
        let texts = texts.map(|(rank, text)| format!("rank {rank} {text}"));
        texts.collect()
    }

    /// The error of a rank that failed, with the text that it sends to all.
    fn failure(&self, rank: usize, met: &[Header], own: &str) -> Error {
        let mut counts = vec![0; met.len()];
        counts[rank] = met[rank].number();
        let own = if rank == self.rank() { own } else { "" };
        match self.gather_bytes("an error", own.as_bytes(), &counts) {
            Ok(text) => self.on_rank(rank, crate::error::told(&String::from_utf8_lossy(&text))),
            Err(error) => error,
        }
    }
}
