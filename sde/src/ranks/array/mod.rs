//! Values whose parts lie on several ranks.
//!
//! To its users such a value is one thing: it has one key, is remembered as a whole, and lives on
//! whatever ranks the program goes on with. To do that the engine must be able to move its parts
//! when process sets change, and to put it together from what was saved by other ranks, perhaps
//! another number of them. A type that can do both is [`Distributed`]; [`DistArray`] is one.

mod block;
mod dist_array;
mod fields;
mod hand_over;
#[cfg(test)]
mod hostile;
mod keyed;
mod layout;
mod moves;
mod ops;
mod part;
mod shard;
mod whereabouts;

pub use block::Block;
pub use dist_array::DistArray;
#[doc(hidden)]
pub use fields::{check_same, join_outlines, outline_of_same, outlines_of, part_for};
pub use hand_over::HandOver;
pub use layout::Layout;
pub(crate) use ops::DistOps;
pub use part::{Distributed, SavedParts};
pub use whereabouts::Whereabouts;
