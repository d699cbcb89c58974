//! The identity of a build.
//!
//! A wrong hit here runs the wrong machine code. So the key has all that a compiler can see: the source with every
//! file it includes (or the intermediate language with its constants), the options from all three places, the
//! identity of the device and its driver, and the environment variables that change the driver's code. The key is the
//! digest of a typed encoding, so that no two sets of these encode alike. The full key is kept beside the
//! binary and compared, so that even two keys with one digest are told apart.

mod descriptor;
mod environment;
mod full_key;
mod options;
mod scan;
mod spec;
mod unchanged;
mod words;

pub use descriptor::Descriptor;
pub(crate) use descriptor::{Describe, Made};
pub use environment::{DRIVER_CACHES, Environment};
pub use full_key::{Content, FullKey, Included, Material};
pub use spec::ProgramSpec;
