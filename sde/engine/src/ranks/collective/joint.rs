//! Collective operations for types outside of the engine.

use super::{Body, CollectiveOp, Header, Ranks};
use crate::error::Error;
use crate::key::{Digest, Key};
use crate::ranks::group::GroupError;

/// The ranks of a process set, for a type whose values are distributed over several of them.
///
/// Given by [`Handle::collective`](crate::Handle::collective) and
/// [`Redistribution::collective`](crate::ranks::Redistribution::collective). All ranks of the set make the same calls in the
/// same order. Each operation begins with a [meeting](Self::meet), so that ranks that are about to do different things
/// get an error, and none waits for a message that never comes.
///
/// ```
/// use sde::{Handle, Sde};
/// use sde::key::Digest;
///
/// /// The largest number that any rank gives.
/// fn largest(sde: &Handle, own: usize) -> Result<usize, sde::Error> {
///     let Some(ranks) = sde.collective(|| "compares numbers".to_owned())? else {
///         return Ok(own);
///     };
///     let alike = Digest::from_bytes(*b"the largest of all their numbers");
///     let numbers = ranks.meet("compares numbers", &alike, Ok(own))?;
///     Ok(numbers.into_iter().max().unwrap_or(own))
/// }
///
/// assert_eq!(largest(&Sde::new(), 3)?, 3);
/// # Ok::<(), sde::Error>(())
/// ```
pub trait Collective {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// The number of the process set within its engine, equal on all of its ranks.
    fn set(&self) -> u64;

    /// Tells the other ranks this rank's number, or why it has none, and gives the numbers of all ranks in their order.
    /// `alike` is a digest of all that the ranks must agree on, the operation included. `doing` is for messages, as in
    /// "moves an array".
    ///
    /// # Errors
    /// All ranks get one error: if they are about to do different things, or a rank has left; if ranks fail, the error
    /// of the lowest of them.
    fn meet(
        &self,
        doing: &str,
        alike: &Digest,
        mine: Result<usize, &Error>,
    ) -> Result<Vec<usize>, Error>;

    /// Sends each listed rank its bytes, and fills each buffer from its rank. No rank is twice in a list. Both sides
    /// know the lengths. `what` is for messages.
    ///
    /// # Errors
    /// If the connection fails. No collective operation works afterwards.
    fn exchange(
        &self,
        what: &str,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), Error>;

    /// Makes the error of a rank that can't go on after a meeting. It leaves the set, so that the others get an error
    /// instead of waiting. No collective operation works afterwards.
    fn give_up(&self, doing: &str, why: String) -> Error;
}

impl Collective for Ranks {
    fn rank(&self) -> usize {
        self.rank()
    }

    fn size(&self) -> usize {
        self.size()
    }

    fn set(&self) -> u64 {
        self.id()
    }

    fn meet(
        &self,
        doing: &str,
        alike: &Digest,
        mine: Result<usize, &Error>,
    ) -> Result<Vec<usize>, Error> {
        let key = Key::from_bytes(*alike.as_bytes());
        let header = Header::new(CollectiveOp::Joint, key, doing);
        let header = header.with_body(Body::Number(mine.unwrap_or(0)));
        let met = self.meet(header.with_failure(mine.err()))?;
        Ok(met.iter().map(Header::number).collect())
    }

    fn exchange(
        &self,
        what: &str,
        send: &[(usize, &[u8])],
        receive: &mut [(usize, &mut [u8])],
    ) -> Result<(), Error> {
        let doing = format!("exchanges {what}");
        self.operated(&doing, |group| group.exchange(send, receive))
    }

    fn give_up(&self, doing: &str, why: String) -> Error {
        self.leave();
        self.break_off(doing, GroupError::Other(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meets on two ranks with these digests, and these numbers or errors; gives each rank's outcome.
    fn heard(alike: [u8; 2], mine: [Result<usize, &str>; 2]) -> Vec<Result<Vec<usize>, String>> {
        Ranks::on_threads(2, |ranks| {
            let (rank, ranks): (_, &dyn Collective) = (ranks.rank(), ranks);
            let alike = Digest::from_bytes([alike[rank]; 32]);
            let mine = mine[rank].map_err(|why| Error::refused("a test", why));
            let met = ranks.meet("counts", &alike, mine.as_ref().copied());
            met.map_err(|error| format!("{error:#}"))
        })
    }

    #[test]
    fn all_hear_the_numbers_of_all_or_one_error() {
        assert_eq!(
            heard([1, 1], [Ok(3), Ok(4)]),
            [Ok(vec![3, 4]), Ok(vec![3, 4])]
        );
        for of_ranks in [
            heard([1, 2], [Ok(3), Ok(3)]),
            heard([1, 1], [Ok(3), Err("no memory")]),
        ] {
            assert!(of_ranks.iter().all(Result::is_err), "{of_ranks:?}");
        }
        let says = heard([1, 1], [Ok(3), Err("no memory")]).swap_remove(0);
        assert!(says.is_err_and(|says| says.contains("no memory")));
    }
}
