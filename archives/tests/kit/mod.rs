//! The test kit of the store: a simulated medium.
//!
//! [`Sim`] is a [`Vfs`](sde_archives::vfs::Vfs) in memory. It knows of each byte and each
//! name whether it was synced, and can be told to
//!
//! - lose what was not, as after a power failure ([`Sim::power_loss`]);
//! - fail, stop or lose its power at any chosen call ([`Order`]);
//! - write what it was not given ([`Then::Spoil`]), and give everybody each lock ([`Sim::lying_locks`]);
//! - have the clock of a process ahead ([`Sim::pass_time`]);
//! - have the calls of several processes take turns ([`Sim::take_turns`]);
//! - be full, or read-only ([`Sim::room`], [`Sim::read_only`]);
//! - leave out the syncs of one place in the source ([`Sim::leave_out`]).
//!
//! It also notes what a store must never do: write to a file, or sync it, after one of its calls
//! failed ([`Sim::misdeeds`]).
//!
//! Other packages use it by `#[path]`, since nothing may depend on tests.

#![allow(clippy::unwrap_used, reason = "a failure is the point")]
#![allow(clippy::panic, reason = "a failure is the point")]
#![allow(unused_imports, reason = "not every test program uses all of the kit")]
#![allow(dead_code, reason = "not every test program uses all of the kit")]

mod content;
mod disk;
mod gate;
pub mod made;
mod orders;
mod random;
mod sim;
mod turns;
mod world;

pub use gate::Gate;
pub use orders::{CHANGING, Call, Error, LOOKING, Order, Then};
pub use random::Random;
pub use sim::{HOME, Place, Sim};
pub use turns::Turns;
