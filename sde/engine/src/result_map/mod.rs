//! The results of a run: named, typed, tagged, shared values.
//!
//! Large objects live in the cache, and several callers hold them at once. So a result is a [`Value`], a shared pointer
//! that also keeps its own digest. A [`ResultMap`] is a read-only table of results. The table is type-erased because
//! one cache holds the results of every app. Asking for a name with the wrong type is an error that names the right
//! one.

pub(crate) mod allowed;
mod bulk_types;
mod codec;
mod compared;
mod data;
mod map;
mod named;
mod size;
mod spec;
mod stored;
mod tag;
pub(crate) mod typed;
mod value;
mod wire;

pub use codec::{Codec, Storable};
pub(crate) use compared::have_same_bits;
pub use data::{AnyArray, Data, KeyedArray};
pub use map::{Origin, ResultMap};
pub(crate) use map::{as_type, no_result};
pub(crate) use named::{Content, EVICTED, EntryResults, Failed, NOT_KEPT, Named, why_let_go};
pub use size::MemorySize;
#[cfg(test)]
pub(crate) use size::SizeOf;
pub use spec::ResultSpec;
pub use stored::{Payload, Stored};
pub use tag::{Tag, Tags};
pub(crate) use value::WeakValue;
pub use value::{ErasedValue, Value};
#[cfg(test)]
pub(crate) use wire::Json;
pub use wire::{Wire, WireBuffer};
