//! The header that each rank sends to a meeting.
//!
//! A rank that looks up another key, or calls something else, would leave the others waiting for a message that never
//! comes. So every collective operation begins with headers of fixed length, which all ranks compare.

use serde::{Deserialize, Serialize};

use crate::error::{Error, said};
use crate::event::RunId;
use crate::key::Key;

/// The operation that a rank is about to begin with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CollectiveOp {
    Run,
    End,
    Split,
    Release,
    /// The release after a sweep on sets, which ranks that find nothing to compute reach long before others.
    EndSweep,
    Exchange,
    RankMap,
    Gather,
    Move,
    Save,
    Agree,
    /// An operation of a type outside the engine; `what` describes it.
    Joint,
}

impl CollectiveOp {
    fn text(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::End => "ends",
            Self::Split => "splits its process set for",
            Self::Release => "releases",
            Self::EndSweep => "ends a sweep on",
            Self::Exchange => "exchanges",
            Self::RankMap => "maps in parallel",
            Self::Gather => "gathers",
            Self::Move => "moves",
            Self::Save => "saves",
            Self::Agree => "compares how it went:",
            Self::Joint => "",
        }
    }
}

/// The header of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) op: CollectiveOp,
    /// The number of meetings this process set had before, which reveals a rank that is out of step.
    pub(super) sequence: u64,
    /// The key of the run, or a digest of the other values on which all ranks must agree.
    pub(crate) key: Key,
    /// The part that may differ from rank to rank.
    pub(crate) body: Body,
    /// Whether a state of an iteration is due on this rank.
    pub(super) state_due: StateDue,
    /// For messages: the name of the app or of the operation. Other ranks get its first bytes.
    pub(crate) what: String,
    /// Why this rank failed. Not sent with the header.
    #[serde(skip)]
    pub(crate) failure: String,
}

/// Whether a state of an iteration is due on a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StateDue {
    #[default]
    No,
    Yes,
    /// This rank's process is about to end.
    AtOnce,
}

/// The part of a header that depends on the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Body {
    Nothing,
    /// The operation failed on this rank; the error text has so many bytes.
    Failed(usize),
    /// A run. All ranks must have one cache policy: otherwise one would give up where others enter the body, or would
    /// not save its part. `next` is the run's id if it begins now; `has` is what this rank has cached of it.
    Run {
        policy: u8,
        next: RunId,
        has: Has,
        /// How many of the set's shared results to evict so that this rank keeps to its budget.
        evict: u32,
    },
    /// A split or a release: the process set that this rank goes to or comes from, and its place there; whether its
    /// store is to be committed on this occasion, and whether it has distributed results that may move.
    Subset {
        set: u64,
        place: i64,
        commits: bool,
        moves: bool,
    },
    /// Whether this rank's store is committed by all ranks together.
    Store(bool),
    /// Digests of what this rank made in a run: of its nested runs' dependencies, and of the results that must be equal
    /// on all ranks.
    Made {
        dependencies: ShortDigest,
        replicas: ShortDigest,
    },
    /// A digest of which items of a list this rank has.
    Held(ShortDigest),
    /// The number of bytes that this rank sends to all, or a number that the calling type interprets.
    Number(usize),
    /// The next point of a list to compute, told by the first rank; `None` at the end, and on other ranks.
    Point(Option<usize>),
}

/// The part of a run that a rank has cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Has {
    Nothing,
    /// The results, made by this run.
    Results(RunId),
    /// A remembered failure, which would occur again.
    Failure,
    /// A larger process set has the results, some of which are distributed over all of its ranks.
    LeftBehind,
}

/// A digest long enough to compare what ranks have of one run.
pub(crate) type ShortDigest = [u8; 16];

pub(crate) fn short(of: &blake3::Hash) -> ShortDigest {
    of.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// A digest of a value of the engine's own, which can always be encoded, for ranks to compare.
pub(crate) fn digest_of<const N: usize>(value: &impl Serialize) -> [u8; N] {
    let bytes = postcard::to_allocvec(value).unwrap_or_default();
    let mut digest = [0; N];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes).finalize_xof().fill(&mut digest);
    digest
}

/// The length of a meeting's message, which a group should send in one piece.
pub const MEETING_BYTES: usize = 173;
/// The longest text that fits into a header with any other fields.
const TEXT: usize = 79;

impl Header {
    pub(crate) fn new(op: CollectiveOp, key: Key, what: impl Into<String>) -> Self {
        Self {
            op,
            sequence: 0,
            key,
            body: Body::Nothing,
            state_due: StateDue::No,
            what: what.into(),
            failure: String::new(),
        }
    }

    /// A header for an operation that is identified by its kind and sequence number alone.
    pub(crate) fn keyless(op: CollectiveOp, what: &str) -> Self {
        Self::new(op, Key::from_bytes([0; 32]), what)
    }

    /// A header whose key is a hash of `what` and `of`: ranks that pass other values disagree.
    pub(crate) fn about(op: CollectiveOp, what: &str, of: &str) -> Self {
        Self::new(op, Key::from_bytes(digest_of(&(what, of))), what)
    }

    pub(crate) fn with_body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// The header with its body replaced by the failure, if there is one.
    pub(crate) fn with_failure(mut self, why: Option<&Error>) -> Self {
        if let Some(why) = why {
            self.failure = said(why);
            self.body = Body::Failed(self.failure.len());
        }
        self
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.body, Body::Failed(_))
    }

    /// This rank's number, or the length of its error.
    pub(crate) fn number(&self) -> usize {
        match self.body {
            Body::Failed(number) | Body::Number(number) => number,
            _ => 0,
        }
    }

    /// Whether two ranks are about to do the same.
    pub(super) fn fits(&self, other: &Self) -> bool {
        use std::mem::discriminant;
        let alike = match (self.body, other.body) {
            (Body::Failed(_), _) | (_, Body::Failed(_)) => true,
            (Body::Run { policy: own, .. }, Body::Run { policy, .. }) => own == policy,
            (own, other) => discriminant(&own) == discriminant(&other),
        };
        let in_step = self.sequence == other.sequence;
        in_step && self.op == other.op && self.key == other.key && alike
    }

    /// `runs Rhf [0123456789ab]`.
    pub(super) fn describe(&self) -> String {
        let what = crate::error::printable(&self.what);
        match self.op {
            CollectiveOp::Run | CollectiveOp::End | CollectiveOp::RankMap => {
                format!("{} {what} [{}]", self.op.text(), self.key.short())
            }
            CollectiveOp::Joint => what,
            op => format!("{} {what}", op.text()),
        }
    }

    /// The message, always [`MEETING_BYTES`] long.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut cut = self.clone();
        let mut end = cut.what.len().min(TEXT);
        while !cut.what.is_char_boundary(end) {
            end -= 1;
        }
        cut.what.truncate(end);
        // The fields always fit; if encoding failed, the zeros would not decode as a header.
        let mut bytes = postcard::to_allocvec(&cut).unwrap_or_default();
        bytes.resize(MEETING_BYTES, 0);
        bytes
    }

    /// `None` if the bytes are no header.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId {
        process: u64::MAX - 1,
        number: u64::MAX,
    };

    #[test]
    fn a_header_comes_back_as_it_was() {
        let bodies = [
            Body::Nothing,
            Body::Failed(usize::MAX),
            Body::Run {
                policy: u8::MAX,
                next: RUN,
                has: Has::Results(RUN),
                evict: u32::MAX,
            },
            Body::Subset {
                set: u64::MAX,
                place: i64::MIN,
                commits: true,
                moves: true,
            },
            Body::Made {
                dependencies: *b"0123456789abcdef",
                replicas: [255; 16],
            },
            Body::Number(usize::MAX),
            Body::Point(Some(usize::MAX)),
        ];
        for body in bodies {
            // The longest text that a header holds.
            let what = "x".repeat(TEXT);
            let mut header = Header::new(CollectiveOp::Agree, Key::from_bytes([7; 32]), what);
            header.sequence = u64::MAX;
            header.state_due = StateDue::AtOnce;
            header.body = body;
            let bytes = header.to_bytes();
            assert_eq!(bytes.len(), MEETING_BYTES);
            assert_eq!(Header::from_bytes(&bytes), Some(header));
        }
    }

    /// Bytes from a peer are untrusted: decoding never panics.
    #[test]
    fn bad_bytes_are_no_header() {
        assert_eq!(Header::from_bytes(&[0; MEETING_BYTES]), None);
        assert_eq!(Header::from_bytes(&[255; MEETING_BYTES]), None);
        assert_eq!(Header::from_bytes(&[]), None);
        let good = Header::keyless(CollectiveOp::Run, "Rhf").to_bytes();
        // It ends in the middle of the key.
        assert_eq!(Header::from_bytes(&good[..30]), None);
        // No operation has this number.
        assert_eq!(Header::from_bytes(&[&[200], &good[1..]].concat()), None);
        for at in 0..MEETING_BYTES {
            for byte in [0, 1, 127, 128, 200, 255] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                let _ = Header::from_bytes(&bytes);
            }
        }
    }

    #[test]
    fn ranks_that_say_things_of_other_kinds_do_not_do_the_same() {
        let with = |body| Header::keyless(CollectiveOp::Exchange, "results").with_body(body);
        let bytes = |length| with(Body::Number(length));
        assert!(bytes(1).fits(&bytes(2)));
        assert!(bytes(1).fits(&with(Body::Failed(1))));
        assert!(!bytes(1).fits(&with(Body::Nothing)));
        let run = |policy| {
            with(Body::Run {
                policy,
                next: RUN,
                has: Has::Nothing,
                evict: 0,
            })
        };
        assert!(run(1).fits(&run(1)));
        assert!(!run(1).fits(&run(2)));
        let mut later = bytes(1);
        later.sequence = 1;
        assert!(!bytes(1).fits(&later));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let header = Header::keyless(CollectiveOp::Run, &"xä".repeat(100));
        let back = Header::from_bytes(&header.to_bytes()).unwrap();
        assert_eq!(back.what, "xä".repeat(26) + "x");
    }
}
