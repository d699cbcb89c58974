//! Many numbers, written and read as bytes.
//!
//! serde shows a format one element at a time. For a list of a hundred million
//! numbers that is a hundred million calls, behind type erasure even dynamic ones,
//! and it takes longer than the disk. The bytes are already there, in memory: this
//! module shows a format all of them at once.
//!
//! A result that is itself a list of numbers (`Vec<f64>`, `Box<[u8]>`, an array of
//! ndarray) needs nothing; [`Codec`](crate::archiver::Codec) knows such types. A field of
//! a struct says so:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Trajectory {
//!     time_step: f64,
//!     #[serde(with = "sde::bulk")]
//!     positions: Vec<[f64; 3]>,
//! }
//!
//! let made = Trajectory { time_step: 0.5, positions: vec![[0.0, 0.1, 0.2], [1.0, 1.1, 1.2]] };
//! // People see a plain list.
//! let json = serde_json::to_string(&made)?;
//! assert_eq!(json, r#"{"time_step":0.5,"positions":[[0.0,0.1,0.2],[1.0,1.1,1.2]]}"#);
//! assert_eq!(serde_json::from_str::<Trajectory>(&json)?, made);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # What a format sees
//!
//! A human-readable one: a plain list; an array of ndarray is a variant named after its
//! order, around its shape and a plain list of its numbers as they lie. Any other:
//!
//! - numbers in one dimension: a newtype struct with the reserved name
//!   [`NumberType::name`] around their bytes, little-endian;
//! - more dimensions, also those that a complex number or `[f64; 3]` has itself:
//!   a newtype variant of the enum [`ARRAY`], whose name is [`AxisOrder::name`], around
//!   the pair of the shape (a list of lengths) and the numbers as above.
//!
//! A format that knows the names can mark the type of the numbers; the store of
//! `sde-archives` writes RFC 8746 typed arrays. One that doesn't, writes bytes.
//!
//! Every bit comes back, those of a signalling NaN too.

mod container;
mod element;
#[cfg(feature = "ndarray-0_17")]
mod nd;
mod number_type;
mod pages;
mod read;
mod write;

pub use container::{AxisOrder, Bulk, Elements, Shape};
pub use element::Element;
pub use number_type::NumberType;
pub use pages::try_zeroed;
pub(crate) use pages::{room_for_start, start_of_large};
pub use read::deserialize;
pub(crate) use read::{elements, of_bytes};
pub use write::{BulkBytes, serialize};
pub(crate) use write::{bytes_of, little_endian, whole_shape};

/// The name of the enum that numbers with a shape are shown as.
pub const ARRAY: &str = "$sde::bulk::array";

/// The name of the newtype struct by which a value of unknown type asks for what comes next. A format that marks the
/// type of numbers shows those as a newtype variant around their bytes, named as the newtype struct of their type; and
/// numbers with a shape as it shows a variant of [`ARRAY`]. Anything else is shown as the newtype's content.
pub const ANY: &str = "$sde::bulk::any";

#[cfg(test)]
mod tests;
