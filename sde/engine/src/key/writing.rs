//! Writing at the end of an encoding: the buffer, its growth, and content too large for it.
//!
//! Each function takes the end of the encoding and gives the new end.

use super::bulk;
use super::digest::Digest;
use super::encoder::Encoder;

/// How many bytes a node keeps in the buffer before they go into its hasher. Part of the speed, not
/// of the format.
const SPILL: usize = 32 * 1024;

/// The length of a text that takes more than one byte.
const SHORT: usize = 0x80;

/// The size of a new buffer: enough for most inputs.
const FIRST: usize = 4 * 1024;

/// From this size on, a piece of content goes into the hasher from where it lies, without a copy.
const DIRECT: usize = 4 * 1024;

impl Encoder<'_> {
    /// Writes the marker, length and digest of a long node.
    pub(super) fn collapsed_at(
        &mut self,
        at: usize,
        marker: u8,
        length: u64,
        digest: &Digest,
    ) -> usize {
        let mut bytes = [0_u8; 41];
        bytes[0] = marker;
        bytes[1..9].copy_from_slice(&length.to_le_bytes());
        bytes[9..].copy_from_slice(digest.as_bytes());
        self.put_at(at, bytes)
    }

    /// Room for `size` bytes at `at`, if the buffer has it.
    #[inline]
    pub(crate) fn room_at(&mut self, at: usize, size: usize) -> Option<&mut [u8]> {
        self.buffer.get_mut(at..)?.get_mut(..size)
    }

    /// Writes bytes at the end `at` of the encoding; gives the new end.
    #[inline]
    pub(crate) fn put_at<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> usize {
        match self.buffer.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => {
                *room = bytes;
                at + N
            }
            None => self.slice_slow(at, &bytes),
        }
    }

    /// As [`put_at`](Encoder::put_at), for constants of the program, which are copied from there without being
    /// assembled first.
    #[inline]
    pub(crate) fn constant_at<const N: usize>(
        &mut self,
        at: usize,
        bytes: &'static [u8; N],
    ) -> usize {
        match self.buffer.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => {
                *room = *bytes;
                at + N
            }
            None => self.slice_slow(at, bytes),
        }
    }

    /// Writes tag, length and content: an item or a part of one.
    #[inline]
    pub(crate) fn framed_at(&mut self, at: usize, tag: u8, content: &[u8]) -> usize {
        if content.len() < SHORT
            && let Some([first, second, room @ ..]) = self.room_at(at, content.len() + 2)
        {
            *first = tag;
            *second = content.len() as u8;
            copy(room, content);
            return at + 2 + content.len();
        }
        let at = self.put_at(at, [tag]);
        let at = self.varint_at(at, content.len() as u64);
        self.slice_at(at, content)
    }

    /// Writes tag, length and content as a node.
    #[inline]
    pub(crate) fn framed_node_at(&mut self, at: usize, tag: u8, content: &[u8]) -> usize {
        if content.len() < SHORT {
            self.framed_at(at, tag, content)
        } else {
            self.framed_long_at(at, tag, content)
        }
    }

    #[inline(never)]
    fn framed_long_at(&mut self, at: usize, tag: u8, content: &[u8]) -> usize {
        let done = self.node_at(at, |to| {
            to.framed(tag, content);
            Ok(())
        });
        // Writing a framed item cannot fail.
        done.unwrap_or(self.length)
    }

    /// As [`put_at`](Encoder::put_at), for a slice.
    #[inline]
    pub(crate) fn slice_at(&mut self, at: usize, bytes: &[u8]) -> usize {
        match self.room_at(at, bytes.len()) {
            Some(room) if bytes.len() < DIRECT => {
                copy(room, bytes);
                at + bytes.len()
            }
            _ => self.slice_slow(at, bytes),
        }
    }

    /// Seven bits a byte, the lowest first; the top bit says that more follow.
    #[inline]
    pub(crate) fn varint_at(&mut self, mut at: usize, mut value: u64) -> usize {
        while value >= 0x80 {
            at = self.put_at(at, [value as u8 | 0x80]);
            value >>= 7;
        }
        self.put_at(at, [value as u8])
    }

    /// Large pieces go into the hasher. For others the buffer lacks room. A node with much in the buffer is moved to
    /// the hasher, so that the buffer's size is bounded; for one with little the buffer grows.
    #[cold]
    #[inline(never)]
    fn slice_slow(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.length = at;
        if bytes.len() >= DIRECT {
            bulk::update(self.spill(), bytes);
            return self.length;
        }
        if self.length - self.start > SPILL {
            self.spill();
        }
        let end = self.length + bytes.len();
        if end > self.buffer.len() {
            self.buffer
                .resize((2 * self.buffer.len()).max(end + FIRST), 0);
        }
        self.buffer[self.length..end].copy_from_slice(bytes);
        end
    }
}

/// Copies between slices of one length. Names and short texts are of 4 to 16 bytes: two moves, where
/// the general copy is a call.
#[inline]
fn copy(room: &mut [u8], bytes: &[u8]) {
    match bytes.len() {
        8..=16 => copy_ends::<8>(room, bytes),
        4..=7 => copy_ends::<4>(room, bytes),
        _ => room.copy_from_slice(bytes),
    }
}

/// Copies the first and the last `N` bytes, which are all, between slices of `N` to `2 * N` bytes.
#[inline]
fn copy_ends<const N: usize>(room: &mut [u8], bytes: &[u8]) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
        if let Some(room) = room.first_chunk_mut::<N>() {
            *room = *first;
        }
        if let Some(room) = room.last_chunk_mut::<N>() {
            *room = *last;
        }
    }
}
