//! What ranks tell each other before they move anything.
//!
//! MPI takes what it is given: two ranks in different operations, or with lengths that do not
//! fit, end the job or hang. So each operation begins with a round in which every rank gives one
//! frame of a fixed length. All see the same frames, and come to the same verdict.

use sde::GroupError;

/// How long a frame is: the engine's messages of a meeting fit, with their 168 bytes.
pub(crate) const LENGTH: usize = 224;
const NUMBERS: usize = 6;
/// What fits in a frame besides its numbers.
pub(crate) const INLINE: usize = LENGTH - 8 - 8 * NUMBERS;

/// The operation that a rank is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Meet = 1,
    AllGather = 2,
    AllToAll = 3,
    Split = 4,
    /// All know that counts do not fit, and look for the rank.
    Blame = 5,
}

/// One rank's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    operation: u64,
    pub(crate) numbers: [u64; NUMBERS],
    pub(crate) inline: [u8; INLINE],
}

impl Frame {
    /// Bytes beyond what fits are left out.
    pub(crate) fn new<const N: usize>(operation: Operation, given: [u64; N], bytes: &[u8]) -> Self {
        let mut numbers = [0; NUMBERS];
        numbers.iter_mut().zip(given).for_each(|(to, n)| *to = n);
        let mut inline = [0; INLINE];
        inline
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, byte)| *to = *byte);
        Self {
            operation: operation as u64,
            numbers,
            inline,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(self.operation.to_le_bytes());
        bytes.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(self.inline);
        bytes
    }

    /// The frames of all ranks.
    pub(crate) fn decode(all: &[u8]) -> Vec<Self> {
        all.chunks_exact(LENGTH).map(Self::decode_one).collect()
    }

    fn decode_one(bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(8).map(|word| {
            let word = word.try_into().unwrap_or_default();
            u64::from_le_bytes(word)
        });
        let operation = words.next().unwrap_or_default();
        let mut numbers = [0; NUMBERS];
        numbers.iter_mut().zip(words).for_each(|(to, n)| *to = n);
        let mut inline = [0; INLINE];
        inline.copy_from_slice(&bytes[LENGTH - INLINE..]);
        Self {
            operation,
            numbers,
            inline,
        }
    }
}

/// Whether all ranks are in one operation.
pub(crate) fn same_operation(frames: &[Frame]) -> Result<(), GroupError> {
    let first = frames.first().map_or(0, |frame| frame.operation);
    match frames.iter().position(|frame| frame.operation != first) {
        None => Ok(()),
        Some(rank) => Err(GroupError::Other(format!(
            "rank {rank} called {}, and rank 0 {}; the ranks of a process set make the same calls",
            name(frames[rank].operation),
            name(first),
        ))),
    }
}

fn name(operation: u64) -> &'static str {
    let all = [
        (Operation::Meet, "meet"),
        (Operation::AllGather, "all_gather"),
        (Operation::AllToAll, "all_to_all"),
        (Operation::Split, "split"),
    ];
    let known = all.iter().find(|(known, _)| *known as u64 == operation);
    known.map_or("something else", |(_, name)| name)
}

/// `meet`: the length that all messages have.
pub(crate) fn same_length(frames: &[Frame]) -> Result<usize, GroupError> {
    let length = |frame: &Frame| as_length(frame.numbers[0]);
    let expected = frames.first().map_or(0, length);
    match frames.iter().position(|frame| length(frame) != expected) {
        None => Ok(expected),
        Some(rank) => Err(GroupError::Length {
            rank,
            given: length(&frames[rank]),
            expected,
        }),
    }
}

/// `all_gather`: what a rank gives, and what it makes of the counts.
pub(crate) fn gather(mine: usize, counts: &[usize], all: usize, size: usize) -> Frame {
    let sum = sum(counts, size);
    Frame::new(
        Operation::AllGather,
        [mine as u64, digest(counts), all as u64, sum],
        &[],
    )
}

/// `all_gather`: whether all fit together. `counts` are this rank's.
pub(crate) fn gather_fits(frames: &[Frame], counts: &[usize]) -> Result<(), GroupError> {
    for (rank, frame) in frames.iter().enumerate() {
        let [_, digest, all, sum, ..] = frame.numbers;
        buffer_fits(rank, all, sum)?;
        if digest != frames[0].numbers[1] {
            return Err(GroupError::Other(format!(
                "rank {rank} and rank 0 gave `all_gather` different counts; all ranks give the same"
            )));
        }
    }
    // The counts are the same on all ranks, so this is too.
    for (rank, (frame, expected)) in frames.iter().zip(counts).enumerate() {
        let given = as_length(frame.numbers[0]);
        if given != *expected {
            return Err(GroupError::Length {
                rank,
                given,
                expected: *expected,
            });
        }
    }
    Ok(())
}

/// `all_to_all`: what a rank gives and takes. Two sums tell whether all pairs agree.
pub(crate) fn exchange(
    rank: usize,
    size: usize,
    send: usize,
    send_counts: &[usize],
    receive: usize,
    receive_counts: &[usize],
) -> Frame {
    let sent = pairs(send_counts, |to| (rank, to));
    let received = pairs(receive_counts, |from| (from, rank));
    let largest = send_counts.iter().chain(receive_counts).max();
    let (send_sum, receive_sum) = (sum(send_counts, size), sum(receive_counts, size));
    // One of the buffers stands for both, the one with something wrong where there is one.
    let (buffer, sum) = if send_sum == send as u64 {
        (receive as u64, receive_sum)
    } else {
        (send as u64, send_sum)
    };
    let largest_buffer = send.max(receive) as u64;
    let largest = largest.copied().unwrap_or(0) as u64;
    Frame::new(
        Operation::AllToAll,
        [sent, received, buffer, sum, largest_buffer, largest],
        &[],
    )
}

/// What the ranks found out about an `all_to_all`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// All fits; the largest buffer, and the largest count.
    Fits { buffer: usize, count: usize },
    /// Two ranks do not agree on a count; who they are is not known.
    CountsDiffer,
}

/// `all_to_all`: whether all fit together.
pub(crate) fn exchange_fits(frames: &[Frame]) -> Result<Exchange, GroupError> {
    let (mut sent, mut received) = (0_u64, 0_u64);
    for (rank, frame) in frames.iter().enumerate() {
        let [out, into, buffer, sum, ..] = frame.numbers;
        buffer_fits(rank, buffer, sum)?;
        sent = sent.wrapping_add(out);
        received = received.wrapping_add(into);
    }
    if sent != received {
        return Ok(Exchange::CountsDiffer);
    }
    let largest = |n: usize| as_length(frames.iter().map(|f| f.numbers[n]).max().unwrap_or(0));
    Ok(Exchange::Fits {
        buffer: largest(4),
        count: largest(5),
    })
}

/// The rank whose count is wrong, as seen by the first rank that sees one.
pub(crate) fn blame(seen: Option<(usize, usize, usize)>) -> Frame {
    let numbers = seen.map_or([0; 4], |(rank, given, expected)| {
        [1, rank as u64, given as u64, expected as u64]
    });
    Frame::new(Operation::Blame, numbers, &[])
}

/// The error that all ranks get.
pub(crate) fn blamed(frames: &[Frame]) -> GroupError {
    let seen = frames.iter().map(|frame| frame.numbers);
    match seen.into_iter().find(|[seen, ..]| *seen == 1) {
        Some([_, rank, given, expected, ..]) => GroupError::Length {
            rank: as_length(rank),
            given: as_length(given),
            expected: as_length(expected),
        },
        None => GroupError::Other("the counts of `all_to_all` do not fit together".to_owned()),
    }
}

fn buffer_fits(rank: usize, buffer: u64, sum: u64) -> Result<(), GroupError> {
    if buffer == sum {
        return Ok(());
    }
    Err(GroupError::Length {
        rank,
        given: as_length(buffer),
        expected: as_length(sum),
    })
}

/// The sum of one count for each rank; `u64::MAX`, which no buffer has, if that is not what
/// they are.
fn sum(counts: &[usize], size: usize) -> u64 {
    let sum = counts
        .iter()
        .try_fold(0_u64, |sum, n| sum.checked_add(*n as u64));
    match sum {
        Some(sum) if counts.len() == size => sum,
        _ => u64::MAX,
    }
}

fn as_length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn digest(counts: &[usize]) -> u64 {
    counts.iter().fold(0, |digest, n| mix(digest ^ *n as u64))
}

/// A sum over pairs, so that senders and receivers come to the same if they agree on each.
fn pairs(counts: &[usize], pair: impl Fn(usize) -> (usize, usize)) -> u64 {
    let one = |(other, count): (usize, &usize)| {
        let (from, to) = pair(other);
        mix(mix(mix(from as u64) ^ to as u64) ^ *count as u64)
    };
    let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    some.map(one).fold(0, u64::wrapping_add)
}

/// Spreads what differs over all bits; the constants are those of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(frames: &[Frame]) -> Vec<Frame> {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        let got = Frame::decode(&bytes);
        assert_eq!(got, frames);
        got
    }

    #[test]
    fn other_operations_and_other_lengths_are_told() {
        let meet = |length, bytes| Frame::new(Operation::Meet, [length], bytes);
        let good = sent(&[meet(2, b"ab"), meet(2, b"cd")]);
        assert_eq!(same_operation(&good), Ok(()));
        assert_eq!(same_length(&good), Ok(2));
        assert_eq!(good[1].inline[..2], *b"cd");
        let other = sent(&[meet(2, b"ab"), gather(1, &[1, 1], 2, 2)]);
        let text = same_operation(&other).unwrap_err().to_string();
        assert!(
            text.starts_with("rank 1 called all_gather, and rank 0 meet"),
            "{text}"
        );
        let longer = sent(&[meet(2, b"ab"), meet(3, b"cde")]);
        let length = |rank, given, expected| GroupError::Length {
            rank,
            given,
            expected,
        };
        assert_eq!(same_length(&longer), Err(length(1, 3, 2)));
    }

    #[test]
    fn a_gather_fits_or_the_rank_is_named() {
        let check = |frames: [Frame; 2], counts: &[usize]| gather_fits(&sent(&frames), counts);
        let counts = [1, 2];
        let good = gather(1, &counts, 3, 2);
        assert_eq!(check([good, gather(2, &counts, 3, 2)], &counts), Ok(()));
        let length = |rank, given, expected| GroupError::Length {
            rank,
            given,
            expected,
        };
        let longer = [good, gather(4, &counts, 3, 2)];
        assert_eq!(check(longer, &counts), Err(length(1, 4, 2)));
        let buffer = [good, gather(2, &counts, 2, 2)];
        assert_eq!(check(buffer, &counts), Err(length(1, 2, 3)));
        let other = [good, gather(2, &[2, 1], 3, 2)];
        assert!(matches!(check(other, &counts), Err(GroupError::Other(_))));
        let few = [good, gather(2, &[3], 3, 2)];
        assert_eq!(check(few, &counts), Err(length(1, 3, usize::MAX)));
    }

    #[test]
    fn an_exchange_fits_if_all_pairs_agree() {
        // Rank 0 has 1 and 2 bytes, rank 1 has 3 and 0.
        let zero = exchange(0, 2, 3, &[1, 2], 4, &[1, 3]);
        let one = exchange(1, 2, 3, &[3, 0], 2, &[2, 0]);
        let fits = Exchange::Fits {
            buffer: 4,
            count: 3,
        };
        assert_eq!(exchange_fits(&sent(&[zero, one])), Ok(fits));
        let swapped = exchange(1, 2, 3, &[0, 3], 2, &[0, 2]);
        assert_eq!(exchange_fits(&[zero, swapped]), Ok(Exchange::CountsDiffer));
        let short = exchange(1, 2, 2, &[3, 0], 2, &[2, 0]);
        let length = |rank, given, expected| GroupError::Length {
            rank,
            given,
            expected,
        };
        assert_eq!(exchange_fits(&[zero, short]), Err(length(1, 2, 3)));
        let frames = [blame(None), blame(Some((0, 5, 6)))];
        assert_eq!(blamed(&sent(&frames)), length(0, 5, 6));
    }
}
