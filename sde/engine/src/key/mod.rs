//! The identity of runs: their keys.
//!
//! A remembered result may be given back only for the inputs it was made from. So the key of a run must differ whenever
//! anything differs that its app can see. It must not depend on anything else: the order in which a map is walked, the
//! machine, the build, or the holder of the data. Systems that hash whatever is at hand get this wrong in both
//! directions: a list and a tuple with one key, a dictionary with two, a float cut to 14 digits, an input that cannot
//! be hashed left out.
//!
//! Here a value writes itself ([`Fingerprint`]) to an [`Encoder`], as typed items that say where
//! they end; BLAKE3 of those bytes, keyed by the digest of the app, is the [`Key`]. No two different
//! sequences of items have the same bytes. A value longer than 1 KiB enters as its length and
//! digest, so that a shared handle that has kept its [`Commitment`] is keyed in constant time and
//! gives the key that the value itself would.
//!
//! The traps, since a key is only as good as what goes into it:
//!
//! - A [`Path`](std::path::Path) is a name. [`InputFile`] hashes the content of the file.
//! - Floats count by their bits: 0.1 + 0.2 is another input than 0.3. [`Rounded`] and
//!   `#[fingerprint(round = ..)]` are there where a few digits are all that matter.
//! - `#[fingerprint(skip)]` is a promise that the field can't change a result.
//! - [`BySerde`] sees a value as serde shows it: it can't tell a set from a list, and leaves out fields that the type's
//!   author skipped.
//! - The container of a sequence does not count: a `Vec`, a `VecDeque`, a slice and an array of equal elements are
//!   alike, and so are a list of arrays and a list of lists.
//! - A derived name is the bare name of the type. Two types of one name in two modules are alike if
//!   their fields are: give one of them `#[fingerprint(name = "..")]`.

mod bounded;
mod bulk;
mod by_serde;
mod commitment;
mod digest;
mod encoded_cursor;
mod encoder;
mod error;
mod fingerprint;
mod hasher;
mod impls;
mod input_file;
mod items;
mod rounded;
mod scalar;
mod scratch;
mod sequence;
mod shape;
pub(crate) mod short;
mod spill;
mod tag;
mod unordered;
mod volatile;
mod writing;

pub(crate) use bounded::{same_as, write_shared};
pub use bulk::set_hash_threads;
pub use by_serde::BySerde;
pub use commitment::{Commitment, commit};
pub use digest::{Digest, Key, ParseDigestError};
#[doc(hidden)]
pub use encoded_cursor::EncodedCursor;
pub use encoder::{Encoder, name_frame};
pub use error::{FingerprintError, FingerprintErrorKind};
pub use fingerprint::Fingerprint;
#[doc(hidden)]
pub use hasher::{BuildKeyHasher, KeyHasher};
pub use input_file::InputFile;
pub(crate) use input_file::{content, digest_file};
pub use items::Fields;
pub use rounded::{Round, Rounded};
pub(crate) use scalar::SCALAR_TEXT;
pub use scalar::{Bare, Scalar, ScalarKind};
pub use scratch::{keyed, with_encoder};
pub use shape::{TypeShape, TypeWriter};
pub(crate) use short::field;
pub use short::{Short, describe};
pub use tag::{FORMAT, INLINE_LIMIT};
pub(crate) use volatile::Volatile;
