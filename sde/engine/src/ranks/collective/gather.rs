//! Gathering byte strings whose lengths differ between ranks.
//!
//! Each rank tells its length at a meeting, so that all ranks know how much to receive.

use bytemuck::Zeroable;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::header::{Body, Header, ShortDigest};
use super::{Collective, Ranks};
use crate::bulk::try_zeroed;
use crate::error::{ArchiveError, Error, ErrorKind};

/// Cuts bytes into consecutive pieces of the given lengths.
pub(crate) fn pieces<'a>(all: &'a [u8], counts: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = all;
    counts.iter().map(move |count| {
        let (piece, others) = rest.split_at((*count).min(rest.len()));
        rest = others;
        piece
    })
}

/// The error of a rank that can't encode what it is to send.
pub(crate) fn not_sent(what: &str, source: ArchiveError) -> Error {
    let doing = format!("sending {what} to other ranks");
    ErrorKind::Archive { doing, source }.into()
}

impl Ranks {
    /// Gives all ranks every rank's message, in the order of ranks, at a [meeting](Self::meet). A rank may pass an
    /// error.
    ///
    /// # Errors
    /// As [`gather`](Self::gather). All ranks get an error if a message can't be read.
    pub(crate) fn gather_all<T: Serialize + DeserializeOwned>(
        &self,
        header: Header,
        mine: Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let what = header.what.clone();
        let encode = |mine: &T| {
            let source = |error: postcard::Error| ArchiveError::Other(error.to_string());
            postcard::to_allocvec(mine).map_err(|error| not_sent(&what, source(error)))
        };
        let encoded = mine.as_ref().map_err(Error::clone).and_then(encode);
        let (all, counts) = self.gather(header, encoded)?;
        let mut mine = mine.ok();
        let read = |(rank, bytes): (usize, &[u8])| {
            let own = mine.take_if(|_| rank == self.rank());
            let read = || match postcard::take_from_bytes(bytes) {
                Ok((one, [])) => Some(one),
                _ => None,
            };
            own.or_else(read).ok_or_else(|| self.garbled(rank, &what))
        };
        pieces(&all, &counts).enumerate().map(read).collect()
    }

    /// Gathers values whose digests the ranks told at a meeting: the first rank of each digest sends its value. `None`,
    /// with nothing sent, if all digests are equal.
    ///
    /// # Errors
    /// As [`gather_all`](Self::gather_all).
    pub(crate) fn gather_distinct<T: Serialize + DeserializeOwned>(
        &self,
        header: Header,
        met: &[Header],
        digest: impl Fn(&Header) -> Option<ShortDigest>,
        mine: impl FnOnce() -> T,
    ) -> Result<Option<Vec<(usize, T)>>, Error> {
        let digests: Vec<_> = met.iter().map(digest).collect();
        if digests.iter().all(|other| *other == digests[0]) {
            return Ok(None);
        }
        let is_first = !digests[..self.rank()].contains(&digests[self.rank()]);
        let all = self.gather_all(header, Ok(is_first.then(mine)))?;
        let of_ranks = all.into_iter().enumerate();
        let told = of_ranks.filter_map(|(rank, said)| Some((rank, said?)));
        Ok(Some(told.collect()))
    }

    /// Gives all ranks the concatenated bytes of every rank, and each rank's length, at a [meeting](Self::meet).
    ///
    /// # Errors
    /// All ranks get one error if a rank does something else or passes an error. Otherwise as
    /// [`gather_bytes`](Self::gather_bytes).
    pub(crate) fn gather(
        &self,
        header: Header,
        mine: Result<Vec<u8>, Error>,
    ) -> Result<(Vec<u8>, Vec<usize>), Error> {
        let what = header.what.clone();
        let header = header.with_body(Body::Number(mine.as_ref().map_or(0, Vec::len)));
        let met = self.meet(header.with_failure(mine.as_ref().err()))?;
        let counts: Vec<_> = met.iter().map(Header::number).collect();
        let all = self.gather_bytes(&what, &mine?, &counts)?;
        Ok((all, counts))
    }

    /// The concatenated bytes of all ranks, whose lengths every rank knows.
    ///
    /// # Errors
    /// If memory for them can't be had. No collective operation works afterwards.
    pub(crate) fn gather_bytes(
        &self,
        doing: &str,
        mine: &[u8],
        counts: &[usize],
    ) -> Result<Vec<u8>, Error> {
        let sum = counts.iter().copied().fold(0, usize::saturating_add);
        let mut all = self.zeroed(doing, sum)?;
        self.operated(&format!("gathers {doing}"), |group| {
            group.all_gather(mine, counts, &mut all)
        })?;
        Ok(all)
    }

    /// Memory for as many elements as other ranks have announced.
    pub(crate) fn zeroed<T: Zeroable>(&self, doing: &str, count: usize) -> Result<Vec<T>, Error> {
        try_zeroed(count).ok_or_else(|| {
            let of = std::any::type_name::<T>();
            let why = format!("there is no memory for {count} of {of}");
            self.give_up(&format!("gathers {doing}"), why)
        })
    }

    /// Sends each rank its bytes, and fills each buffer from its rank. Nothing is sent where there are no bytes.
    pub(crate) fn exchange_with_all(
        &self,
        doing: &str,
        send: &[Vec<u8>],
        receive: &mut [Vec<u8>],
    ) -> Result<(), Error> {
        let send = send.iter().map(|bytes| &bytes[..]).enumerate();
        let send: Vec<_> = send.filter(|(_, bytes)| !bytes.is_empty()).collect();
        let places = receive.iter_mut().map(|place| &mut place[..]).enumerate();
        let mut places: Vec<_> = places.filter(|(_, place)| !place.is_empty()).collect();
        self.exchange(doing, &send, &mut places)
    }

    /// The error for a message from a rank that can't be read.
    pub(crate) fn garbled(&self, rank: usize, what: &str) -> Error {
        let message =
            format!("sent something else as {what} than it said; do all ranks run one program?");
        self.on_rank(rank, message)
    }

    /// The error of all ranks for a failure on one of them.
    pub(crate) fn on_rank(&self, rank: usize, message: String) -> Error {
        let rank = self.in_program(rank);
        ErrorKind::OnRank { rank, message }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::CollectiveOp;
    use super::*;

    /// Sends these bytes from rank 1 in place of a list of texts, and gives each rank's outcome.
    fn heard(sent: &[u8]) -> Vec<Result<Vec<Vec<String>>, String>> {
        Ranks::on_threads(2, |ranks| {
            let header = Header::keyless(CollectiveOp::Exchange, "texts");
            let mine = vec!["one".to_owned()];
            if ranks.rank() == 1 {
                let (all, counts) = ranks.gather(header, Ok(sent.to_vec())).unwrap();
                assert_eq!((all.len(), counts[1]), (counts[0] + sent.len(), sent.len()));
                return Ok(Vec::new());
            }
            let all = ranks.gather_all(header, Ok(mine));
            all.map_err(|error| format!("{error:#}"))
        })
    }

    /// Messages from a peer are untrusted: too few bytes, too many, a false length, invalid UTF-8.
    #[test]
    fn what_makes_no_sense_is_an_error_that_names_the_rank() {
        let good = postcard::to_allocvec(&vec!["two"]).unwrap();
        let own = vec!["one".to_owned()];
        assert_eq!(heard(&good)[0], Ok(vec![own, vec!["two".to_owned()]]));
        let longer = [&good[..], &[0]].concat();
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        for bad in [&[][..], &good[..2], &longer, &huge, &[1, 2, 0xff, 0xfe]] {
            let error = heard(bad)[0].clone().unwrap_err();
            assert!(
                error.starts_with("on rank 1: sent something else"),
                "{error:#}"
            );
        }
    }
}
