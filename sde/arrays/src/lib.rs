//! Arrays of which each rank of a process set has a block.
//!
//! [`DistArray`] is a [`Distributed`](sde_engine::Distributed) value: the engine moves it when process sets
//! change, saves it part by part, and puts it together from what other ranks saved, perhaps another number of them. Here is what is particular to
//! arrays: which rank has what ([`Layout`]), what lies around a block ([`Padded`]), and what is made of all
//! elements. Ranks do nothing together but by the [`Collective`](sde_engine::Collective) that the engine gives.
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
