//! The bytes of a value, in pieces, so that large ones are not copied.

use sde::ErasedValue;
use sde::archiver::Codec;

/// A byte string from this size on becomes a piece of its own.
const OWN_PIECE: usize = 64 << 10;

/// The bytes of one value, one CBOR item.
pub(crate) struct Encoded {
    pieces: Vec<Piece>,
    last: Vec<u8>,
}

enum Piece {
    Bytes(Vec<u8>),
    /// The numbers of a value, not copied: the piece holds the value.
    Numbers(ErasedValue, Codec),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Numbers(value, codec) => match codec.bulk(value).map(|bulk| bulk.bytes) {
                Some(std::borrow::Cow::Borrowed(bytes)) => bytes,
                // Checked when the piece was made.
                _ => &[],
            },
        }
    }
}

impl Encoded {
    pub(super) fn new() -> Self {
        Self {
            pieces: Vec::new(),
            last: Vec::with_capacity(128),
        }
    }

    /// Bytes that were encoded before.
    pub(crate) fn of_bytes(last: Vec<u8>) -> Self {
        let pieces = Vec::new();
        Self { pieces, last }
    }

    /// The last piece, to append small parts to.
    #[inline]
    pub(super) fn last(&mut self) -> &mut Vec<u8> {
        &mut self.last
    }

    /// Appends bytes, with one copy.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        match bytes.len() < OWN_PIECE {
            true => self.last.extend_from_slice(bytes),
            false => self.piece(Piece::Bytes(bytes.to_vec())),
        }
    }

    /// Appends bytes without a copy.
    pub(super) fn append_owned(&mut self, bytes: Vec<u8>) {
        self.piece(Piece::Bytes(bytes));
    }

    /// Appends the numbers of a value whose bytes are borrowed from it, without a copy.
    pub(super) fn append_numbers(&mut self, value: &ErasedValue, codec: &Codec) {
        self.piece(Piece::Numbers(value.clone(), *codec));
    }

    fn piece(&mut self, piece: Piece) {
        let before = std::mem::take(&mut self.last);
        self.pieces.extend([Piece::Bytes(before), piece]);
    }

    /// All pieces.
    pub(crate) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let pieces = self.pieces.iter().map(Piece::bytes);
        pieces.chain([self.last.as_slice()])
    }

    /// Appends all bytes; a single piece is not copied if `to` is empty.
    pub(crate) fn append_to(self, to: &mut Vec<u8>) {
        match to.is_empty() && self.pieces.is_empty() {
            true => *to = self.last,
            false => self.slices().for_each(|slice| to.extend_from_slice(slice)),
        }
    }

    /// The number of bytes.
    pub(crate) fn length(&self) -> u64 {
        self.slices().map(|slice| slice.len() as u64).sum()
    }

    /// The BLAKE3 digest of the bytes.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for slice in self.slices() {
            hasher.update(slice);
        }
        *hasher.finalize().as_bytes()
    }
}
