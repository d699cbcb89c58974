//! Programs and kernels of OpenCL, built once and remembered.
//!
//! Building a GPU program takes from a tenth of a second to minutes, and a program that starts ten
//! times a day builds the same kernels ten times. Here a build is a run of an app of SDE: within
//! a process one builds and the others wait; the live program is remembered for its context; its binary is
//! kept for other processes, checked before a driver sees it.
//!
//! The guide's page on kernels begins with a program that launches one, and says what is guaranteed.

pub mod apps;
mod blob;
mod cacheable;
mod capture;
mod context;
pub mod driver;
mod error;
mod failed;
mod foreign;
mod identity;
mod kept;
mod live;
mod lock;
mod make;
mod settings;
mod stats;

pub use apps::memory_budget;
pub use blob::BlobError;
pub use cacheable::NotCacheable;
pub use context::{Context, ContextBuilder};
pub use driver::{DeviceIdentity, DeviceInfo, DeviceType, Found, devices};
pub use error::{Error, Refusal};
pub use foreign::Foreign;
pub use identity::{
    Content, DRIVER_CACHES, Descriptor, Environment, FullKey, Included, Material, ProgramSpec,
};
pub use kept::{KernelDir, KernelStore, StoreError};
pub use live::{Kernel, Launch, Object, Program};
pub use opencl3;
pub use settings::{Mode, Settings, SettingsError};
pub use stats::{Event, Stats};
