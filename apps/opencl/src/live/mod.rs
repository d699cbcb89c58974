//! Objects that live in a driver: programs, compiled parts, kernels. Each is given back when its last holder
//! drops it.

mod kernel;
mod program;

pub(crate) use kernel::Idle;
pub use kernel::{Kernel, Launch};
pub(crate) use program::{Live, Owned};
pub use program::{Object, Program};
