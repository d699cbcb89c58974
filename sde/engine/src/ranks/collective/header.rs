//! What each rank says when ranks meet.
//!
//! A rank that looks up another key than the others, or calls something else, would have them
//! wait for what never comes. So before anything is done together each rank says what it is
//! about to do, in a message of fixed length, and everybody compares.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::event::RunId;
use crate::key::Key;

/// What a rank is about to do together with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CollectiveOp {
    Run,
    End,
    Split,
    Release,
    Exchange,
    RankMap,
    Gather,
    Move,
    Save,
    Agree,
    /// What a type outside of the engine does, which says in words what.
    Joint,
}

impl CollectiveOp {
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
            Self::Joint => "",
        }
    }
}

/// What one rank says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) op: CollectiveOp,
    /// How many meetings this process set has had before, so that a rank that is out of step is found.
    pub(super) sequence: u64,
    /// The run, or a digest of what else all must have alike.
    pub(crate) key: Key,
    /// What may differ from rank to rank.
    pub(crate) body: Body,
    /// Whether this rank is to save the next state of an iteration.
    pub(super) saves_state: bool,
    /// For messages: which app, or what else. Others get the beginning of it.
    pub(crate) what: String,
    /// Why it failed, on the rank whose header it is.
    #[serde(skip)]
    pub(crate) failure: String,
}

/// What a rank has to say besides what it is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Body {
    Nothing,
    /// Something failed here, for a reason of so many bytes.
    Failed {
        length: usize,
    },
    /// So many bytes are here for all ranks.
    Bytes(usize),
    /// How a run may use what is remembered, as all must say alike: else one would give up where others enter
    /// the body, or not save its part. What it is called if it begins now, and what of it is here already.
    Run {
        policy: u8,
        next: RunId,
        has: Has,
        /// How many of the results that the ranks made together are to be evicted for this rank to keep to its budget.
        evict: u32,
    },
    /// The process set that this rank goes to or comes from, and its place among those that do too;
    /// whether its store is to be committed by the way, and whether it has results of distributed apps that may move.
    Part {
        set: u64,
        place: i64,
        commits: bool,
        moves: bool,
    },
    /// Whether the store of this rank is committed by all ranks.
    Store {
        is_shared: bool,
    },
    /// Of what a run has made here, digests: of what its nested runs depended on, and of the results that are to be
    /// the same everywhere.
    Made {
        dependencies: ShortDigest,
        replicas: ShortDigest,
    },
    /// A digest of which items of a list are here.
    Held(ShortDigest),
    /// A number that means something to the type that gives it.
    Number(usize),
    /// Which point of a list the ranks compute next, on the first of them; nothing at the end, and on the others.
    Point(Option<usize>),
}

/// What a rank remembers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Has {
    Nothing,
    /// The results that this run made.
    Results(RunId),
    /// That it would fail again.
    Failure,
    /// That a larger process set has the results, of which some lie on all of its ranks.
    LeftBehind,
}

/// Enough of a digest to tell apart what ranks have of one run.
pub(crate) type ShortDigest = [u8; 16];

pub(crate) fn short(of: &blake3::Hash) -> ShortDigest {
    of.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// How long the message is, which a group had better send at once.
pub const MEETING_BYTES: usize = 173;
/// How much of a text fits in it whatever else is said.
const TEXT: usize = 79;

impl Header {
    pub(crate) fn new(op: CollectiveOp, key: Key, what: impl Into<String>) -> Self {
        Self {
            op,
            sequence: 0,
            key,
            body: Body::Nothing,
            saves_state: false,
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
    pub(crate) fn with_failure(mut self, why: Option<&Error>) -> Self {
        if let Some(why) = why {
            self.failure = chain(why);
            let length = self.failure.len();
            self.body = Body::Failed { length };
        }
        self
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.body, Body::Failed { .. })
    }

    /// How many bytes this rank has for all.
    pub(crate) fn bytes(&self) -> usize {
        match self.body {
            Body::Failed { length } | Body::Bytes(length) => length,
            _ => 0,
        }
    }

    /// Whether two ranks are about to do the same.
    pub(super) fn fits(&self, other: &Self) -> bool {
        use std::mem::discriminant;
        let alike = match (self.body, other.body) {
            (Body::Failed { .. }, _) | (_, Body::Failed { .. }) => true,
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

    /// The message: [`MEETING_BYTES`] long, whatever it says.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut cut = self.clone();
        let mut end = cut.what.len().min(TEXT);
        while !cut.what.is_char_boundary(end) {
            end -= 1;
        }
        cut.what.truncate(end);
        // It fits, and what has no bytes is no header.
        let mut bytes = postcard::to_allocvec(&cut).unwrap_or_default();
        bytes.resize(MEETING_BYTES, 0);
        bytes
    }

    /// `None` if the bytes are no header.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }
}

/// An error and all that led to it.
pub(crate) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
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
            Body::Failed { length: usize::MAX },
            Body::Run {
                policy: u8::MAX,
                next: RUN,
                has: Has::Results(RUN),
                evict: u32::MAX,
            },
            Body::Part {
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
            // The longest that there is.
            let what = "x".repeat(TEXT);
            let mut header = Header::new(CollectiveOp::Agree, Key::from_bytes([7; 32]), what);
            header.sequence = u64::MAX;
            header.saves_state = true;
            header.body = body;
            let bytes = header.to_bytes();
            assert_eq!(bytes.len(), MEETING_BYTES);
            assert_eq!(Header::from_bytes(&bytes), Some(header));
        }
    }

    /// Input from a peer: whatever it is, it is a header or none.
    #[test]
    fn bad_bytes_are_no_header() {
        assert_eq!(Header::from_bytes(&[0; MEETING_BYTES]), None);
        assert_eq!(Header::from_bytes(&[255; MEETING_BYTES]), None);
        assert_eq!(Header::from_bytes(&[]), None);
        let good = Header::keyless(CollectiveOp::Run, "Rhf").to_bytes();
        // It ends in the middle of the key.
        assert_eq!(Header::from_bytes(&good[..30]), None);
        // There is no such operation.
        assert_eq!(Header::from_bytes(&[&[200], &good[1..]].concat()), None);
        for at in 0..MEETING_BYTES {
            for byte in [0, 1, 127, 128, 200, 255] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                // No panic, whatever it is.
                let _ = Header::from_bytes(&bytes);
            }
        }
    }

    #[test]
    fn ranks_that_say_things_of_other_kinds_do_not_do_the_same() {
        let with = |body| Header::keyless(CollectiveOp::Exchange, "results").with_body(body);
        let bytes = |length| with(Body::Bytes(length));
        assert!(bytes(1).fits(&bytes(2)));
        assert!(bytes(1).fits(&with(Body::Failed { length: 1 })));
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
        let header = Header::new(
            CollectiveOp::Run,
            Key::from_bytes([0; 32]),
            "xä".repeat(100),
        );
        let back = Header::from_bytes(&header.to_bytes()).unwrap();
        assert_eq!(back.what, "xä".repeat(26) + "x");
    }
}
