//! Entries as they come in from one rank, cut anywhere.
//!
//! New memory is what an exchange of large values costs most, more than moving the bytes. So entries are
//! sent in turns that all go through the same buffers, and what arrives is copied from there once, to memory
//! of the entry's own: a rank takes no memory for what it has already, or does not lack, and each
//! entry's is given back when nobody holds that entry.

use super::packed::LENGTHS;

/// The number of the entry, and the lengths that an entry begins with.
const HEAD: usize = 8 + LENGTHS;

/// What has come from one rank.
#[derive(Default)]
pub(super) struct Stream {
    /// The part of the next entry's head that has come.
    head: Vec<u8>,
    current: Option<Current>,
}

/// An entry of which a part has come.
struct Current {
    number: usize,
    missing: usize,
    kept: Option<Vec<u8>>,
}

impl Stream {
    /// Before an entry: its number, in front of what [`pack`](super::pack) makes of it.
    pub(super) fn begin(number: usize, to: &mut Vec<u8>) {
        to.extend((number as u64).to_le_bytes());
    }

    /// Takes in what has come. `wants` says whether an entry is to be kept, `done` is given each that
    /// is complete, as it was packed. False if the bytes make no sense.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        wants: impl Fn(usize) -> bool,
        mut done: impl FnMut(usize, Option<Vec<u8>>),
    ) -> bool {
        loop {
            if self.current.is_none() {
                let (part, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
                self.head.extend_from_slice(part);
                bytes = rest;
                if self.head.len() < HEAD {
                    return true;
                }
                self.current = Current::begin(&self.head, &wants);
                self.head.clear();
            }
            let Some(current) = &mut self.current else {
                return false;
            };
            bytes = current.take(bytes);
            if current.missing > 0 {
                return true;
            }
            if let Some(entry) = self.current.take() {
                done(entry.number, entry.kept);
            }
        }
    }

    /// Whether nothing is in the middle.
    pub(super) fn is_whole(&self) -> bool {
        self.current.is_none() && self.head.is_empty()
    }
}

impl Current {
    fn begin(head: &[u8], wants: impl Fn(usize) -> bool) -> Option<Self> {
        let number = |bytes: &[u8]| {
            let number = u64::from_le_bytes(*bytes.first_chunk()?);
            usize::try_from(number).ok()
        };
        let (at, lengths) = (number(head)?, &head[8..]);
        let missing = number(lengths)?;
        let kept = wants(at).then(|| {
            let mut kept = Vec::new();
            // If there is no room for it, that shows when it comes.
            let _ = kept.try_reserve_exact(missing.saturating_add(LENGTHS));
            kept.extend_from_slice(lengths);
            kept
        });
        Some(Self {
            number: at,
            missing,
            kept,
        })
    }

    /// Takes what is its own; gives what is not.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (own, rest) = bytes.split_at(bytes.len().min(self.missing));
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(own);
        }
        self.missing -= own.len();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `pack` lays them out; what the second length says does not matter here.
    fn entry(number: usize, body: &[u8], to: &mut Vec<u8>) {
        Stream::begin(number, to);
        to.extend((body.len() as u64).to_le_bytes());
        to.extend(0_u64.to_le_bytes());
        to.extend_from_slice(body);
    }

    #[test]
    fn entries_come_whole_however_they_are_cut() {
        let mut bytes = Vec::new();
        entry(3, b"three", &mut bytes);
        entry(1, b"", &mut bytes);
        entry(7, b"seven is longer", &mut bytes);
        for length in 1..=bytes.len() {
            let (mut stream, mut got) = (Stream::default(), Vec::new());
            for part in bytes.chunks(length) {
                let wants = |number| number != 3;
                assert!(stream.take(part, wants, |number, kept| got.push((number, kept))));
            }
            assert!(stream.is_whole());
            let numbers: Vec<usize> = got.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, [3, 1, 7], "{length}");
            assert_eq!(got[0].1, None);
            assert_eq!(got[1].1.as_ref().map(Vec::len), Some(LENGTHS));
            let seven = got[2].1.as_ref().map(|kept| &kept[LENGTHS..]);
            assert_eq!(seven, Some(&b"seven is longer"[..]));
        }
        let mut stream = Stream::default();
        assert!(stream.take(&bytes[..30], |_| true, |_, _| {}));
        assert!(!stream.is_whole());
    }
}
