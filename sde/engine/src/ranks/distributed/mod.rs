//! Values whose parts lie on several ranks.
//!
//! To its users such a value is one thing: it has one key, is remembered as a whole, and lives on
//! whatever ranks the program goes on with. To do that the engine must be able to move its parts
//! when process sets change, and to put it together from what was saved by other ranks, perhaps
//! another number of them. A type that can do both is [`Distributed`]; [`DistArray`] is one.

mod block;
mod dist_array;
mod distributed;
mod fields;
mod keyed;
mod layout;
mod moves;
mod ops;
mod padded;
mod part;
mod placement;
mod redistribution;
mod reduce;
mod shard;

pub use block::Block;
pub use dist_array::DistArray;
#[doc(hidden)]
pub use fields::{check_same, descriptor_of_same, descriptors_of, join_descriptors, part_for};
pub use layout::Layout;
pub(crate) use ops::DistOps;
pub use padded::{Edge, Near, Padded};
pub use part::{Distributed, SavedParts};
pub use placement::Placement;
pub use redistribution::Redistribution;
