//! Arrays of which each rank of a process set has a block.
//!
//! [`DistArray`] is a [`Distributed`](sde_engine::Distributed) value: the engine moves it when process sets change,
//! saves it part by part, and assembles it from parts that any number of ranks saved. This crate adds the layout of
//! blocks over ranks ([`Layout`]), halos around a block ([`Padded`]), and reductions. Ranks cooperate through the
//! engine's [`Collective`](sde_engine::ranks::Collective) and its `gather`.
//!
//! Programs add the crate `sde`, which has all of this under its own name.

#![forbid(unsafe_code)]

mod block;
mod dist_array;
mod distributed;
mod keyed;
mod layout;
mod moves;
mod padded;
mod reduce;
mod shard;

pub use block::Block;
pub use dist_array::DistArray;
pub use layout::Layout;
pub use padded::{Edge, Near, Padded};
