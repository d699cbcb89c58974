//! Gathering what has another length on each rank.
//!
//! Each rank says at a meeting how many bytes it has, so that all know what arrives.

use super::header::{Body, Header};
use super::{Ranks, chain};
use crate::error::Error;
use crate::ranks::group::GroupError;

/// What all ranks gave.
pub(crate) struct Gathered {
    all: Vec<u8>,
    counts: Vec<usize>,
}

impl Gathered {
    /// What all gave, one after the other.
    pub(crate) fn all(&self) -> &[u8] {
        &self.all
    }

    /// How many bytes each rank gave.
    pub(super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// What each rank gave, in the order of ranks.
    pub(crate) fn by_rank(&self) -> impl Iterator<Item = &[u8]> {
        parts(&self.all, &self.counts)
    }
}

/// Cuts bytes into parts of these lengths, of which they are the sum.
pub(crate) fn parts<'a>(all: &'a [u8], counts: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = all;
    counts.iter().map(move |count| {
        let (part, others) = rest.split_at((*count).min(rest.len()));
        rest = others;
        part
    })
}

impl Ranks {
    /// Gives all ranks the bytes of each, at a [meeting](Self::meet) at which they say what for.
    ///
    /// # Errors
    /// The same on all ranks, if one does something else or has an error in the place of its bytes. As
    /// [`gather_bytes`](Self::gather_bytes) besides.
    pub(crate) fn gather(
        &self,
        header: Header,
        mine: Result<Vec<u8>, Error>,
    ) -> Result<Gathered, Error> {
        let what = header.what.clone();
        let length = mine.as_ref().map_or(0, Vec::len) as u64;
        let header = header.with_body(Body::Bytes {
            length,
            are_last: true,
        });
        let why = mine.as_ref().err().map(chain);
        let met = self.meet_all_well(header.with_failure(why))?;
        let counts: Vec<_> = met.iter().map(Header::bytes).collect();
        let all = self.gather_bytes(&what, &mine?, &counts)?;
        Ok(Gathered { all, counts })
    }

    /// The bytes of all ranks; all know how many each has.
    ///
    /// # Errors
    /// If the memory for them can't be had. Nothing can be done together from then on.
    pub(crate) fn gather_bytes(
        &self,
        doing: &str,
        mine: &[u8],
        counts: &[usize],
    ) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        self.make_room(doing, &mut all, counts)?;
        self.gather_into(doing, mine, counts, &mut all)?;
        Ok(all)
    }

    /// Makes the length of `all` the sum of these lengths, which other ranks have told.
    pub(crate) fn make_room(
        &self,
        doing: &str,
        all: &mut Vec<u8>,
        counts: &[usize],
    ) -> Result<(), Error> {
        let sum = counts
            .iter()
            .try_fold(0_usize, |sum, count| sum.checked_add(*count));
        let room = sum.filter(|sum| {
            let more = sum.saturating_sub(all.len());
            all.try_reserve_exact(more).is_ok()
        });
        let Some(room) = room else {
            // The others would wait for what this rank can't take.
            self.leave();
            let why = format!("there is no memory for the bytes of {} ranks", counts.len());
            return Err(self.break_off(&format!("gathers {doing}"), GroupError::Other(why)));
        };
        all.resize(room, 0);
        Ok(())
    }
}
