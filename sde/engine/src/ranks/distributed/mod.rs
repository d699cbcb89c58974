//! Values whose parts lie on several ranks.
//!
//! To its users such a value is one thing: it has one key, is remembered as a whole, and lives on
//! whatever ranks the program goes on with. To do that the engine must be able to move its parts
//! when process sets change, and to put it together from what was saved by other ranks, perhaps
//! another number of them. A type that can do both is [`Distributed`]; the arrays of the crate
//! `sde-arrays` are.

mod fields;
mod ops;
mod part;
mod placement;
mod redistribution;

#[doc(hidden)]
pub use fields::{check_same, descriptor_of_same, descriptors_of, join_descriptors, part_for};
pub(crate) use ops::DistOps;
pub use part::{Distributed, SavedParts};
pub use placement::Placement;
pub use redistribution::Redistribution;
