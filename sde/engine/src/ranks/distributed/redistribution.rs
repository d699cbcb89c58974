//! A value on its way from one process set to others.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::ranks::collective::{Collective, CollectiveOp, Header, Ranks};
use crate::ranks::values::gather_values;
use crate::result_map::{Storable, Value, Wire};

/// The ranks that had a value, and those that are to have it.
///
/// Ranks are numbered as in the larger of the process sets, all of whose ranks take part. On a split every rank had the
/// value, and each subset is to have the whole of it. On a release the ranks of one subset had it, and all ranks are to
/// have it.
pub struct Redistribution<'a> {
    pub(crate) ranks: &'a Ranks,
    pub(crate) wire: &'a dyn Wire,
    pub(crate) from: &'a [usize],
    pub(crate) to: &'a [Vec<usize>],
    /// The descriptors of the parts of each distributed result.
    pub(crate) results: &'a BTreeMap<String, Vec<Vec<u64>>>,
    /// The descriptors of the value that moves.
    pub(crate) descriptors: Vec<Vec<u64>>,
}

impl Redistribution<'_> {
    /// This rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.ranks.rank()
    }

    /// The number of ranks that take part.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.ranks.size()
    }

    /// The collective operations of these ranks.
    #[must_use]
    pub fn collective(&self) -> &dyn Collective {
        self.ranks
    }

    /// The ranks that had the value, in the order of its parts.
    #[must_use]
    pub fn from(&self) -> &[usize] {
        self.from
    }

    /// The process sets that are to have the value, each with its ranks in their order.
    #[must_use]
    pub fn to(&self) -> &[Vec<usize>] {
        self.to
    }

    /// The descriptors of the parts, in the order of [`from`](Self::from). None in
    /// [`AppInfo::synchronize`](crate::AppInfo::synchronize), where there may be several values: see
    /// [`of_result`](Self::of_result).
    #[must_use]
    pub fn descriptors(&self) -> &[Vec<u64>] {
        &self.descriptors
    }

    /// This redistribution, for a part of the value that has these descriptors.
    #[must_use]
    pub fn with_descriptors(&self, descriptors: Vec<Vec<u64>>) -> Self {
        Self {
            descriptors,
            ..*self
        }
    }

    /// This redistribution, for one result of an app that moves its results by its own function
    /// ([`AppInfo::synchronize`](crate::AppInfo::synchronize)), with the descriptors of the result's parts. A result
    /// that is not distributed has none.
    #[must_use]
    pub fn of_result(&self, name: &str) -> Self {
        self.with_descriptors(self.results.get(name).cloned().unwrap_or_default())
    }

    /// The set among [`to`](Self::to) that this rank goes on in, and its place there.
    #[must_use]
    pub fn place(&self) -> Option<(usize, usize)> {
        let own = self.rank();
        let in_set = |ranks: &Vec<usize>| ranks.iter().position(|rank| *rank == own);
        let mut sets = self.to.iter().enumerate();
        sets.find_map(|(set, ranks)| Some((set, in_set(ranks)?)))
    }

    /// Sends a value that is the same on all ranks that had it from the first of [`from`](Self::from) to all ranks.
    /// Collective; `own` is this rank's copy, if it has one.
    ///
    /// # Errors
    /// On all ranks alike, if one does something else, or the value can't be sent.
    pub fn same<T: Storable + Clone>(&self, own: Option<&T>) -> Result<T, Error> {
        let first = self.from.first().copied();
        let own = own.filter(|_| first == Some(self.rank())).cloned();
        let all = gather_values(self.ranks, self.wire, SAME, Value::new(own))?;
        let found = first.and_then(|first| (**all.get(first)?).clone());
        let message = "it has no part of a value that it is to redistribute".to_owned();
        found.ok_or_else(|| self.ranks.on_rank(first.unwrap_or(0), message))
    }

    /// Sends each rank its bytes, and gives the bytes that each sent to this one; both lists are by rank. Collective.
    ///
    /// # Errors
    /// On all ranks alike, if one does something else.
    pub fn exchange(&self, send: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
        let size = self.ranks();
        self.ranks.meet(Header::keyless(CollectiveOp::Move, WHAT))?;
        let length = |rank: usize| send.get(rank).map_or(0, Vec::len) as u64;
        let told: Vec<_> = (0..size)
            .map(|rank| length(rank).to_le_bytes().to_vec())
            .collect();
        let mut received = vec![vec![0; 8]; size];
        self.ranks
            .exchange_with_all("lengths", &told, &mut received)?;
        for place in &mut received {
            let length = place.first_chunk().copied().map_or(0, u64::from_le_bytes);
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            *place = self.ranks.zeroed(WHAT, length)?;
        }
        let send = &send[..send.len().min(size)];
        self.ranks.exchange_with_all(WHAT, send, &mut received)?;
        Ok(received)
    }
}

impl std::fmt::Debug for Redistribution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redistribution(from {:?} to {:?})", self.from, self.to)
    }
}

/// Names for messages.
const SAME: &str = "what is the same on all ranks";
const WHAT: &str = "parts of a value";
