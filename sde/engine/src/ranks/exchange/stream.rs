//! Entries as they come in from one rank, cut anywhere.
//!
//! New memory is what an exchange of large values costs most, more than moving the bytes. So entries are
//! sent in turns that all go through the same buffers, and what arrives is copied from there once, to memory
//! of the entry's own: a rank takes no memory for what it has already, or does not lack, and each
//! entry's is given back when nobody holds that entry.

use super::packed::{EntryHeader, PackedEntry};

/// What has come from one rank.
#[derive(Default)]
pub(super) struct Stream {
    /// The part of the next entry's header that has come.
    header: Vec<u8>,
    current: Option<Current>,
}

/// An entry of which a part has come.
struct Current {
    number: usize,
    missing: usize,
    kept: Option<PackedEntry>,
}

impl Stream {
    /// Takes in what has come. `wants` says whether an entry is to be kept, `done` is given each that
    /// is complete. False if the bytes make no sense.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        wants: impl Fn(usize) -> bool,
        mut done: impl FnMut(usize, Option<PackedEntry>),
    ) -> bool {
        loop {
            if self.current.is_none() {
                let rest = EntryHeader::BYTES - self.header.len();
                let (part, rest) = bytes.split_at(bytes.len().min(rest));
                self.header.extend_from_slice(part);
                bytes = rest;
                if self.header.len() < EntryHeader::BYTES {
                    return true;
                }
                self.current = Current::begin(&self.header, &wants);
                self.header.clear();
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
        self.current.is_none() && self.header.is_empty()
    }
}

impl Current {
    fn begin(header: &[u8], wants: impl Fn(usize) -> bool) -> Option<Self> {
        let header: EntryHeader = postcard::from_bytes(header).ok()?;
        let number = usize::try_from(header.number).ok()?;
        let missing = usize::try_from(header.bytes).ok()?;
        let kept = wants(number).then(|| {
            let mut bytes = Vec::new();
            // If there is no room for it, that shows when it comes.
            let _ = bytes.try_reserve_exact(missing);
            let head = header.head;
            PackedEntry { head, bytes }
        });
        Some(Self {
            number,
            missing,
            kept,
        })
    }

    /// Takes what is its own; gives what is not.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (own, rest) = bytes.split_at(bytes.len().min(self.missing));
        if let Some(kept) = &mut self.kept {
            kept.bytes.extend_from_slice(own);
        }
        self.missing -= own.len();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `pack` lays them out; how long the head is does not matter here.
    fn entry(number: u64, body: &[u8], to: &mut Vec<u8>) {
        let bytes = body.len() as u64;
        let header = EntryHeader {
            number,
            bytes,
            head: 0,
        };
        let header = postcard::to_allocvec(&header).unwrap();
        assert_eq!(header.len(), EntryHeader::BYTES);
        to.extend(header);
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
            let kept = |at: usize| got[at].1.as_ref().map(|kept| &kept.bytes[..]);
            assert_eq!(kept(0), None);
            assert_eq!(kept(1), Some(&b""[..]));
            assert_eq!(kept(2), Some(&b"seven is longer"[..]));
        }
        let mut stream = Stream::default();
        assert!(stream.take(&bytes[..30], |_| true, |_, _| {}));
        assert!(!stream.is_whole());
    }

    /// Input from a peer is not believed: no memory is taken for what only is said to come.
    #[test]
    fn a_length_that_can_not_be_is_no_harm() {
        let header = EntryHeader {
            number: u64::MAX,
            bytes: u64::MAX,
            head: u64::MAX,
        };
        let mut bytes = postcard::to_allocvec(&header).unwrap();
        bytes.push(0);
        let mut stream = Stream::default();
        let _ = stream.take(&bytes, |_| true, |_, _| unreachable!("none is complete"));
        assert!(!stream.is_whole() || usize::try_from(u64::MAX).is_err());
    }
}
