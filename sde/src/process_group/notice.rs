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
pub(crate) enum Act {
    Run = 1,
    End = 2,
    Split = 3,
    Release = 4,
    Exchange = 5,
    Spread = 6,
    Gather = 7,
    Move = 8,
    Save = 9,
    Agree = 10,
}

impl Act {
    const ALL: [Self; 10] = [
        Self::Run,
        Self::End,
        Self::Split,
        Self::Release,
        Self::Exchange,
        Self::Spread,
        Self::Gather,
        Self::Move,
        Self::Save,
        Self::Agree,
    ];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|act| *act as u8 == byte)
    }

    fn text(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::End => "ends",
            Self::Split => "splits its process set for",
            Self::Release => "releases",
            Self::Exchange => "exchanges",
            Self::Spread => "maps in parallel",
            Self::Gather => "gathers",
            Self::Move => "moves",
            Self::Save => "saves",
            Self::Agree => "compares how it went:",
        }
    }
}

/// What one rank says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) act: Act,
    /// The run, or a digest of what else all must have alike.
    pub(crate) key: Key,
    /// What a rank has to say besides, which may differ.
    pub(crate) word: u8,
    /// How long the text is that it has to say, should anybody ask.
    pub(crate) length: u64,
    /// The name of a computation that may be about to begin.
    pub(crate) run: RunId,
    /// The computation that the rank has already.
    pub(crate) made: RunId,
    /// For messages: which app, or what else.
    pub(crate) what: String,
    /// What it has to say, on the rank whose notice it is.
    pub(crate) text: String,
}

/// The word of a rank where something failed.
pub(crate) const FAILED: u8 = 255;

/// How many notices a process set has had, so that one that is out of step is noticed.
pub(super) type Sequence = u64;

const TEXT: usize = 79;
pub(super) const BYTES: usize = 168;

const NONE: RunId = RunId {
    process: 0,
    number: 0,
};

impl Notice {
    pub(crate) fn new(act: Act, key: Key, what: impl Into<String>) -> Self {
        Self {
            act,
            key,
            word: 0,
            length: 0,
            run: NONE,
            made: NONE,
            what: what.into(),
            text: String::new(),
        }
    }

    /// The notice of what has a name for a key: ranks that say another do something else.
    pub(crate) fn about(act: Act, what: &str, of: &str) -> Self {
        let mut name = blake3::Hasher::new();
        name.update(&(what.len() as u64).to_le_bytes());
        name.update(what.as_bytes()).update(of.as_bytes());
        Self::new(act, Key::from_bytes(*name.finalize().as_bytes()), what)
    }

    /// The notice of a rank where this failed, if it did.
    pub(crate) fn with_failure(mut self, why: Option<String>) -> Self {
        if let Some(why) = why {
            self.word = FAILED;
            self.length = why.len() as u64;
            self.text = why;
        }
        self
    }

    /// Whether two ranks are about to do the same.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.act == other.act && self.key == other.key
    }

    /// `runs Rhf [0123456789ab]`.
    pub(super) fn describe(&self) -> String {
        let what = crate::error::printable(&self.what);
        match self.act {
            Act::Run | Act::End | Act::Spread => {
                format!("{} {what} [{}]", self.act.text(), self.key.short())
            }
            act => format!("{} {what}", act.text()),
        }
    }

    pub(super) fn to_bytes(&self, sequence: Sequence) -> Vec<u8> {
        let mut end = self.what.len().min(TEXT);
        while !self.what.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend([self.act as u8, self.word, end as u8, 0, 0, 0, 0, 0, 0]);
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.run.process.to_le_bytes());
        bytes.extend(self.run.number.to_le_bytes());
        bytes.extend(self.made.process.to_le_bytes());
        bytes.extend(self.made.number.to_le_bytes());
        bytes.extend(self.key.as_bytes());
        bytes.extend(&self.what.as_bytes()[..end]);
        bytes.resize(BYTES, 0);
        bytes
    }

    /// `None` if the bytes are no notice.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<(Sequence, Self)> {
        let number = |at: usize| -> Option<u64> {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let [act, word, length] = *bytes.first_chunk()?;
        let key: [u8; 32] = bytes.get(57..89)?.try_into().ok()?;
        let what = bytes.get(89..89 + usize::from(length))?;
        let notice = Self {
            act: Act::of(act)?,
            key: Key::from_bytes(key),
            word,
            length: number(17)?,
            run: RunId {
                process: number(25)?,
                number: number(33)?,
            },
            made: RunId {
                process: number(41)?,
                number: number(49)?,
            },
            what: String::from_utf8_lossy(what).into_owned(),
            text: String::new(),
        };
        Some((number(9)?, notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_comes_back_as_it_was() {
        for act in Act::ALL {
            let mut notice = Notice::new(act, Key::from_bytes([7; 32]), "Rhf");
            notice.word = 3;
            notice.length = 1 << 40;
            notice.run = RunId {
                process: u64::MAX - 1,
                number: 5,
            };
            notice.made = RunId {
                process: 6,
                number: 7,
            };
            let bytes = notice.to_bytes(9);
            assert_eq!(bytes.len(), BYTES);
            assert_eq!(Notice::from_bytes(&bytes), Some((9, notice)));
        }
        assert_eq!(Notice::from_bytes(&[0; BYTES]), None);
        assert_eq!(Notice::from_bytes(&[]), None);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let notice = Notice::new(Act::Run, Key::from_bytes([0; 32]), "ä".repeat(100));
        let (_, back) = Notice::from_bytes(&notice.to_bytes(0)).unwrap();
        assert_eq!(back.what, "ä".repeat(39));
    }
}
