//! What each rank says when ranks meet.
//!
//! A rank that looks up another key than the others, or calls something else, would have them
//! wait for what never comes. So before anything is done together each rank says what it is
//! about to do, in a message of fixed length, and everybody compares.

use crate::event::RunId;
use crate::key::Key;

/// What a rank is about to do together with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CollectiveOp {
    Run = 1,
    End = 2,
    Split = 3,
    Release = 4,
    Exchange = 5,
    RankMap = 6,
    Gather = 7,
    Move = 8,
    Save = 9,
    Agree = 10,
}

impl CollectiveOp {
    const ALL: [Self; 10] = [
        Self::Run,
        Self::End,
        Self::Split,
        Self::Release,
        Self::Exchange,
        Self::RankMap,
        Self::Gather,
        Self::Move,
        Self::Save,
        Self::Agree,
    ];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|op| *op as u8 == byte)
    }

    fn text(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::End => "ends",
            Self::Split => "splits its process set for",
            Self::Release => "releases",
            Self::Exchange => "exchanges",
            Self::RankMap => "maps in parallel",
            Self::Gather => "gathers",
            Self::Move => "moves",
            Self::Save => "saves",
            Self::Agree => "compares how it went:",
        }
    }
}

/// What one rank says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) op: CollectiveOp,
    /// The run, or a digest of what else all must have alike.
    pub(crate) key: Key,
    /// What may differ from rank to rank.
    pub(crate) body: Body,
    /// For messages: which app, or what else.
    pub(crate) what: String,
    /// Why it failed, on the rank whose header it is.
    pub(crate) failure: String,
}

/// What a rank has to say besides what it is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Nothing,
    /// Something failed here, for a reason of so many bytes.
    Failed {
        length: u64,
    },
    /// So many bytes are here for all ranks; if they are the last, no more come.
    Bytes {
        length: u64,
        are_last: bool,
    },
    /// What a run is called if it begins now, and the run whose results are here already.
    Run {
        next: RunId,
        has: Option<RunId>,
    },
    /// The process set that this rank goes to or comes from, and its place among those that do too;
    /// whether its store is to be committed by the way.
    Part {
        set: u64,
        place: i64,
        commits: bool,
    },
    /// Whether the store of this rank is committed by all ranks.
    Store {
        is_shared: bool,
    },
    /// The digest of what should be the same everywhere.
    Digest([u8; 16]),
    /// The largest number of elements for one other rank; whether all lie where they are sent from.
    Elements {
        most: u64,
        are_in_place: bool,
    },
}

/// How many headers a process set has had, so that one that is out of step is noticed.
pub(super) type Sequence = u64;

/// Where things are in the bytes of a header, and how many these are.
const SEQUENCE: usize = 8;
const NUMBERS: usize = 16;
const KEY: usize = 48;
const TEXT: usize = 80;
pub(super) const BYTES: usize = 168;

impl Body {
    /// That this is the digest of what should be the same everywhere.
    pub(crate) fn digest(of: &blake3::Hash) -> Self {
        Self::Digest(of.as_bytes().first_chunk().copied().unwrap_or_default())
    }

    /// The kind, a flag, and four numbers.
    fn to_parts(self) -> (u8, bool, [u64; 4]) {
        match self {
            Self::Nothing => (0, false, [0; 4]),
            Self::Failed { length } => (1, false, [length, 0, 0, 0]),
            Self::Bytes { length, are_last } => (2, are_last, [length, 0, 0, 0]),
            Self::Run { next, has } => {
                let (process, number) = has.map_or((0, 0), |run| (run.process, run.number));
                (
                    3,
                    has.is_some(),
                    [next.process, next.number, process, number],
                )
            }
            Self::Part {
                set,
                place,
                commits,
            } => (4, commits, [set, place.cast_unsigned(), 0, 0]),
            Self::Store { is_shared } => (5, is_shared, [0; 4]),
            Self::Digest(digest) => {
                let number = u128::from_le_bytes(digest);
                (6, false, [number as u64, (number >> 64) as u64, 0, 0])
            }
            Self::Elements { most, are_in_place } => (7, are_in_place, [most, 0, 0, 0]),
        }
    }

    fn of_parts(kind: u8, flag: bool, numbers: [u64; 4]) -> Option<Self> {
        let [first, second, third, fourth] = numbers;
        let run = |process, number| RunId { process, number };
        Some(match kind {
            0 => Self::Nothing,
            1 => Self::Failed { length: first },
            2 => Self::Bytes {
                length: first,
                are_last: flag,
            },
            3 => Self::Run {
                next: run(first, second),
                has: flag.then(|| run(third, fourth)),
            },
            4 => Self::Part {
                set: first,
                place: second.cast_signed(),
                commits: flag,
            },
            5 => Self::Store { is_shared: flag },
            6 => Self::Digest((u128::from(first) | u128::from(second) << 64).to_le_bytes()),
            7 => Self::Elements {
                most: first,
                are_in_place: flag,
            },
            _ => return None,
        })
    }
}

impl Header {
    pub(crate) fn new(op: CollectiveOp, key: Key, what: impl Into<String>) -> Self {
        Self {
            op,
            key,
            body: Body::Nothing,
            what: what.into(),
            failure: String::new(),
        }
    }

    /// The header of what is known by what is done alone.
    pub(crate) fn keyless(op: CollectiveOp, what: &str) -> Self {
        Self::new(op, Key::from_bytes([0; 32]), what)
    }

    /// The header of what has a name for a key: ranks that say another do something else.
    pub(crate) fn about(op: CollectiveOp, what: &str, of: &str) -> Self {
        let mut name = blake3::Hasher::new();
        name.update(&(what.len() as u64).to_le_bytes());
        name.update(what.as_bytes()).update(of.as_bytes());
        Self::new(op, Key::from_bytes(*name.finalize().as_bytes()), what)
    }

    pub(crate) fn with_body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// The header of a rank where this failed, if it did: it says that instead.
    pub(crate) fn with_failure(mut self, why: Option<String>) -> Self {
        if let Some(why) = why {
            let length = why.len() as u64;
            (self.body, self.failure) = (Body::Failed { length }, why);
        }
        self
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.body, Body::Failed { .. })
    }

    /// How many bytes this rank has for all.
    pub(crate) fn bytes(&self) -> usize {
        match self.body {
            // More than there is memory for are none the fewer for being cut off here.
            Body::Failed { length } | Body::Bytes { length, .. } => {
                usize::try_from(length).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    /// Whether two ranks are about to do the same.
    pub(super) fn fits(&self, other: &Self) -> bool {
        let one_kind = self.body.to_parts().0 == other.body.to_parts().0;
        let one_may = one_kind || self.has_failed() || other.has_failed();
        self.op == other.op && self.key == other.key && one_may
    }

    /// `runs Rhf [0123456789ab]`.
    pub(super) fn describe(&self) -> String {
        let what = crate::error::printable(&self.what);
        match self.op {
            CollectiveOp::Run | CollectiveOp::End | CollectiveOp::RankMap => {
                format!("{} {what} [{}]", self.op.text(), self.key.short())
            }
            op => format!("{} {what}", op.text()),
        }
    }

    pub(super) fn to_bytes(&self, sequence: Sequence) -> Vec<u8> {
        let mut end = self.what.len().min(BYTES - TEXT);
        while !self.what.is_char_boundary(end) {
            end -= 1;
        }
        let (kind, flag, numbers) = self.body.to_parts();
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend([self.op as u8, kind, u8::from(flag), end as u8, 0, 0, 0, 0]);
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(self.key.as_bytes());
        bytes.extend(&self.what.as_bytes()[..end]);
        bytes.resize(BYTES, 0);
        bytes
    }

    /// `None` if the bytes are no header.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<(Sequence, Self)> {
        let number = |at: usize| -> Option<u64> {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let [op, kind, flag, length] = *bytes.first_chunk()?;
        let mut numbers = [0; 4];
        for (at, to) in numbers.iter_mut().enumerate() {
            *to = number(NUMBERS + 8 * at)?;
        }
        let key: [u8; 32] = bytes.get(KEY..TEXT)?.try_into().ok()?;
        let what = bytes.get(TEXT..TEXT + usize::from(length))?;
        let header = Self {
            op: CollectiveOp::of(op)?,
            key: Key::from_bytes(key),
            body: Body::of_parts(kind, flag == 1, numbers)?,
            what: String::from_utf8_lossy(what).into_owned(),
            failure: String::new(),
        };
        Some((number(SEQUENCE)?, header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId {
        process: u64::MAX - 1,
        number: 5,
    };

    #[test]
    fn a_notice_comes_back_as_it_was() {
        let says = [
            Body::Nothing,
            Body::Failed { length: 1 << 40 },
            Body::Bytes {
                length: 7,
                are_last: true,
            },
            Body::Run {
                next: RUN,
                has: Some(RUN),
            },
            Body::Run {
                next: RUN,
                has: None,
            },
            Body::Part {
                set: 9,
                place: -3,
                commits: true,
            },
            Body::Store { is_shared: true },
            Body::Digest(*b"0123456789abcdef"),
            Body::Elements {
                most: 8,
                are_in_place: true,
            },
        ];
        for op in CollectiveOp::ALL {
            for says in says {
                let header = Header::new(op, Key::from_bytes([7; 32]), "Rhf").with_body(says);
                let bytes = header.to_bytes(9);
                assert_eq!(bytes.len(), BYTES);
                assert_eq!(Header::from_bytes(&bytes), Some((9, header)));
            }
        }
        assert_eq!(Header::from_bytes(&[0; BYTES]), None);
        assert_eq!(Header::from_bytes(&[]), None);
        let mut bytes = Header::keyless(CollectiveOp::Run, "Rhf").to_bytes(0);
        bytes[1] = 200;
        assert_eq!(Header::from_bytes(&bytes), None);
    }

    #[test]
    fn ranks_that_say_things_of_other_kinds_do_not_do_the_same() {
        let with = |says| Header::keyless(CollectiveOp::Exchange, "results").with_body(says);
        let bytes = |length| {
            with(Body::Bytes {
                length,
                are_last: true,
            })
        };
        assert!(bytes(1).fits(&bytes(2)));
        assert!(bytes(1).fits(&with(Body::Failed { length: 1 })));
        assert!(!bytes(1).fits(&with(Body::Nothing)));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let header = Header::new(
            CollectiveOp::Run,
            Key::from_bytes([0; 32]),
            "xä".repeat(100),
        );
        let (_, back) = Header::from_bytes(&header.to_bytes(0)).unwrap();
        assert_eq!(back.what, "xä".repeat(29) + "x");
    }
}
