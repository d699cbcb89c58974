//! What makes two builds the same.
//!
//! A wrong hit here runs the wrong machine code. So all that a compiler can see is in the key: the
//! source with every file it includes (or the intermediate language with its constants), the options
//! from all three places they come from, who the device and its driver are, and the environment
//! variables that change what the driver makes. The key is the digest of a typed encoding, so that
//! no two sets of these encode alike; and the whole of it is kept beside the binary and
//! compared, so that not even two keys with one digest are mistaken for one another.

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
