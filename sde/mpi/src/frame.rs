//! The frames that ranks exchange before they move data.
//!
//! MPI does not check its arguments: two ranks in different operations, or with lengths that do not fit, end the job or
//! hang. So each operation begins with a round in which every rank gives one frame of a fixed length. All ranks see the
//! same frames, and come to the same verdict. Only operations and lengths are checked here, not the messages' meaning.

use std::collections::HashMap;

use sde::ranks::GroupError;
use serde::{Deserialize, Serialize};

/// The length of a frame: the encoded call, then a message.
pub(crate) const LENGTH: usize = CALL + INLINE;
const CALL: usize = 80;
/// The longest message that fits in a frame; a meeting of the engine's ranks has this length.
pub(crate) const INLINE: usize = sde::__private::MEETING_BYTES;

/// The operation that a rank is about to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) operation: Operation,
    /// An error that this rank knows of, which stops all ranks.
    pub(crate) misfit: Option<Misfit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Meet {
        length: usize,
    },
    /// Has a digest of the counts, which must be equal on all ranks.
    AllGather {
        counts: u64,
    },
    /// Has sums over the messages that this rank sends and expects. If all messages fit, the totals over all ranks are
    /// equal.
    Exchange {
        sent: u64,
        expected: u64,
    },
    Split {
        color: Option<u32>,
        key: i64,
    },
}

/// The length that a rank gave, and the length that was expected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Misfit {
    pub(crate) rank: usize,
    pub(crate) given: usize,
    pub(crate) expected: usize,
}

impl From<Misfit> for GroupError {
    fn from(misfit: Misfit) -> Self {
        Self::length(misfit.rank, misfit.given, misfit.expected)
    }
}

impl From<Operation> for Frame {
    fn from(operation: Operation) -> Self {
        Self {
            operation,
            misfit: None,
        }
    }
}

impl Frame {
    /// The frame of `all_gather`, with the contribution of rank `rank` checked.
    pub(crate) fn gather(
        rank: usize,
        size: usize,
        mine: usize,
        counts: &[usize],
        all: usize,
    ) -> Self {
        let own = counts.get(rank).copied().unwrap_or(usize::MAX);
        let counts_digest = counts.iter().fold(0, |digest, n| mix(digest ^ *n as u64));
        Self {
            operation: Operation::AllGather {
                counts: counts_digest,
            },
            misfit: misfit(rank, all, sum(counts, size)).or(misfit(rank, mine, own)),
        }
    }

    /// Encodes the frame with a message. A message that is too long is cut.
    pub(crate) fn encode(&self, message: &[u8]) -> Vec<u8> {
        // A frame always fits, so encoding does not fail.
        let mut bytes = postcard::to_allocvec(self).unwrap_or_default();
        bytes.resize(CALL, 0);
        bytes.extend(&message[..message.len().min(INLINE)]);
        bytes.resize(LENGTH, 0);
        bytes
    }

    /// The frames of all ranks.
    ///
    /// # Errors
    /// If the operations differ, or a frame has a misfit.
    pub(crate) fn decode(all: &[u8]) -> Result<Vec<Self>, GroupError> {
        let frames = all.chunks_exact(LENGTH).enumerate().map(|(rank, bytes)| {
            let foreign = "sent no frame; do all ranks run one program?";
            let frame = postcard::from_bytes::<Self>(&bytes[..CALL]);
            frame.map_err(|_| GroupError::Other(format!("rank {rank} {foreign}")))
        });
        let frames: Vec<Self> = frames.collect::<Result<_, _>>()?;
        let name = |frame: &Self| frame.operation.name();
        if let Some(rank) = frames.iter().position(|f| name(f) != name(&frames[0])) {
            return Err(GroupError::Other(format!(
                "rank {rank} called {}, and rank 0 {}; the ranks of a process set make the same calls",
                name(&frames[rank]),
                name(&frames[0]),
            )));
        }
        match frames.iter().find_map(|frame| frame.misfit) {
            None => Ok(frames),
            Some(misfit) => Err(misfit.into()),
        }
    }
}

impl Operation {
    fn name(&self) -> &'static str {
        match self {
            Self::Meet { .. } => "meet",
            Self::AllGather { .. } => "all_gather",
            Self::Exchange { .. } => "exchange",
            Self::Split { .. } => "split",
        }
    }
}

/// The messages of these lengths, if they fit in frames.
pub(crate) fn messages(all: &[u8], lengths: impl IntoIterator<Item = usize>) -> Option<Vec<u8>> {
    let mut messages = Vec::new();
    for (frame, length) in all.chunks_exact(LENGTH).zip(lengths) {
        messages.extend_from_slice(frame[CALL..].get(..length)?);
    }
    Some(messages)
}

/// Checks for `meet` that all messages have the same length.
pub(crate) fn same_length(frames: &[Frame]) -> Result<(), GroupError> {
    let length = |frame: &Frame| match frame.operation {
        Operation::Meet { length } => length,
        _ => 0,
    };
    let expected = frames.first().map_or(0, length);
    let mut lengths = frames.iter().map(length).enumerate();
    let other = lengths.find_map(|(rank, given)| misfit(rank, given, expected));
    other.map_or(Ok(()), |misfit| Err(misfit.into()))
}

/// Checks for `all_gather` that all ranks give the same counts.
pub(crate) fn same_counts(frames: &[Frame]) -> Result<(), GroupError> {
    let other = frames
        .iter()
        .position(|f| f.operation != frames[0].operation);
    other.map_or(Ok(()), |rank| {
        Err(GroupError::Other(format!(
            "rank {rank} and rank 0 gave `all_gather` different counts; all ranks give the same"
        )))
    })
}

/// Checks for `exchange` that the messages sent are those expected.
pub(crate) fn same_messages(frames: &[Frame]) -> Result<(), GroupError> {
    let sums = frames.iter().map(|frame| match frame.operation {
        Operation::Exchange { sent, expected } => sent.wrapping_sub(expected),
        _ => 0,
    });
    match sums.fold(0, u64::wrapping_add) {
        0 => Ok(()),
        _ => Err(GroupError::Other(
            "the messages of `exchange` do not fit together: each must be expected, with its length".to_owned(),
        )),
    }
}

pub(crate) fn misfit(rank: usize, given: usize, expected: usize) -> Option<Misfit> {
    let misfit = Misfit {
        rank,
        given,
        expected,
    };
    (given != expected).then_some(misfit)
}

/// The sum of the counts; `usize::MAX`, which no buffer has, on overflow or if there is not one count for each rank.
fn sum(counts: &[usize], size: usize) -> usize {
    let mut counts_left = counts.iter();
    let sum = counts_left.try_fold(0_usize, |sum, n| sum.checked_add(*n));
    sum.filter(|_| counts.len() == size).unwrap_or(usize::MAX)
}

/// A sum over messages, each given by the other rank and the length. Senders and receivers get equal sums if they agree
/// on all messages and their order.
pub(crate) fn messages_sum(
    messages: impl Iterator<Item = (usize, usize)>,
    pair: impl Fn(usize) -> (usize, usize),
) -> u64 {
    let mut of_pairs = HashMap::new();
    for (other, length) in messages {
        let (from, to) = pair(other);
        let so_far = of_pairs
            .entry(other)
            .or_insert_with(|| mix(mix(from as u64) ^ to as u64));
        *so_far = mix(*so_far ^ length as u64);
    }
    of_pairs.into_values().fold(0, u64::wrapping_add)
}

/// Spreads differences over all bits; the constants are those of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(frames: &[Frame]) -> Result<Vec<Frame>, GroupError> {
        let bytes: Vec<u8> = frames
            .iter()
            .flat_map(|frame| frame.encode(b"ab"))
            .collect();
        let all = messages(&bytes, vec![2; frames.len()]);
        assert_eq!(all, Some(b"ab".repeat(frames.len())));
        let got = Frame::decode(&bytes)?;
        assert_eq!(got, frames);
        Ok(got)
    }

    #[test]
    fn other_operations_and_other_lengths_are_told() {
        let meet = |length| Frame::from(Operation::Meet { length });
        let good = sent(&[meet(2), meet(2)]).unwrap();
        assert_eq!(same_length(&good), Ok(()));
        let other = sent(&[meet(2), Frame::gather(1, 2, 1, &[1, 1], 2)]);
        let text = other.unwrap_err().to_string();
        assert!(
            text.starts_with("rank 1 called all_gather, and rank 0 meet"),
            "{text}"
        );
        let longer = sent(&[meet(2), meet(3)]).unwrap();
        assert_eq!(same_length(&longer), Err(GroupError::length(1, 3, 2)));
    }

    #[test]
    fn a_frame_has_one_length_and_what_is_none_is_an_error() {
        let most = Operation::Exchange {
            sent: u64::MAX,
            expected: u64::MAX,
        };
        let frame = Frame {
            operation: most,
            misfit: Some(Misfit {
                rank: usize::MAX,
                given: usize::MAX,
                expected: usize::MAX,
            }),
        };
        let bytes = frame.encode(&[1; 1000]);
        assert_eq!(bytes.len(), LENGTH);
        assert_eq!(
            Frame::decode(&bytes),
            Err(GroupError::length(usize::MAX, usize::MAX, usize::MAX))
        );
        let foreign = Frame::decode(&[255; LENGTH]).unwrap_err().to_string();
        assert!(foreign.starts_with("rank 0 sent no frame"), "{foreign}");
    }

    /// Found by a profile: the engine's meeting message had grown 5 bytes too long for a frame. Each meeting was two
    /// operations of MPI, and the second one spun on cores that other ranks needed.
    #[test]
    fn what_the_engine_says_when_ranks_meet_fits_in_a_frame() {
        let said = vec![7; sde::__private::MEETING_BYTES];
        let length = said.len();
        let frame = Frame::from(Operation::Meet { length }).encode(&said);
        assert_eq!(messages(&frame, [length]), Some(said));
        assert_eq!(messages(&frame, [INLINE + 1]), None);
    }

    #[test]
    fn a_gather_fits_or_the_rank_is_named() {
        let counts = [1, 2];
        let good = Frame::gather(0, 2, 1, &counts, 3);
        let with = |other: Frame| same_counts(&sent(&[good, other])?);
        assert_eq!(with(Frame::gather(1, 2, 2, &counts, 3)), Ok(()));
        let longer = Frame::gather(1, 2, 4, &counts, 3);
        assert_eq!(with(longer), Err(GroupError::length(1, 4, 2)));
        let buffer = Frame::gather(1, 2, 2, &counts, 2);
        assert_eq!(with(buffer), Err(GroupError::length(1, 2, 3)));
        let other = Frame::gather(1, 2, 1, &[2, 1], 3);
        assert!(matches!(with(other), Err(GroupError::Other(_))));
        let few = Frame::gather(1, 2, 2, &[3], 3);
        assert_eq!(with(few), Err(GroupError::length(1, 3, usize::MAX)));
    }

    #[test]
    fn an_exchange_fits_if_all_pairs_agree() {
        let frame = |rank: usize, send: &[(usize, usize)], expect: &[(usize, usize)]| {
            Frame::from(Operation::Exchange {
                sent: messages_sum(send.iter().copied(), |to| (rank, to)),
                expected: messages_sum(expect.iter().copied(), |from| (from, rank)),
            })
        };
        let fit = |zero: Frame, one: Frame| same_messages(&sent(&[zero, one]).unwrap()).is_ok();
        let zero = || frame(0, &[(1, 2), (0, 1), (1, 3)], &[(0, 1), (1, 7)]);
        assert!(fit(zero(), frame(1, &[(0, 7)], &[(0, 2), (0, 3)])));
        assert!(!fit(zero(), frame(1, &[(0, 7)], &[(0, 3), (0, 2)])));
        assert!(!fit(zero(), frame(1, &[(0, 7)], &[(0, 5)])));
        assert!(!fit(zero(), frame(1, &[(0, 7), (0, 0)], &[(0, 2), (0, 3)])));
        assert!(!fit(zero(), frame(1, &[(1, 7)], &[(0, 2), (0, 3)])));
        // The group has no rank 2.
        assert!(!fit(
            zero(),
            frame(1, &[(0, 7), (2, 1)], &[(0, 2), (0, 3), (2, 1)])
        ));
    }
}
