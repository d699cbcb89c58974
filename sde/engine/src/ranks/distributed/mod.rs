//! Values whose parts lie on several ranks.
//!
//! A distributed value has one key, is cached as a whole, and lies on whichever ranks the program goes on with. The
//! engine moves its parts when process sets change, and assembles it from parts that any number of ranks saved. A type
//! that supports both is [`Distributed`]; the arrays of the crate `sde-arrays` are.

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
