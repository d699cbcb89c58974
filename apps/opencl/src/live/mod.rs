//! What lives in a driver: programs, compiled parts, kernels. Each is given back when its last holder
//! lets it go.

mod kernel;
mod program;

pub(crate) use kernel::Idle;
pub use kernel::{Kernel, Launch};
pub(crate) use program::{Live, Owned};
pub use program::{Object, Program};
