//! Programs and kernels of OpenCL, built once and remembered.
//!
//! Building a GPU program takes from a tenth of a second to minutes, and a program that starts ten
//! times a day builds the same kernels ten times. Here a build is a run of an app of SDE: within
//! a process one builds and the others wait; the live program is remembered for its context; its binary is
//! kept for other processes, checked before a driver sees it.
//!
//! ```no_run
//! use std::sync::Arc;
//! use opencl3::context::Context as ClContext;
//! use sde::Sde;
//! use sde_opencl::{Context, ProgramSpec, Settings, devices};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let found = devices()?;
//! let context = Context::on(Arc::new(ClContext::from_device(&found[0].device)?))
//!     .keep(Settings::from_env()?)
//!     .build()?;
//!
//! let scale = ProgramSpec::source(
//!     "kernel void scale(global T *x, T by) { x[get_global_id(0)] *= by; }",
//! );
//! let scale = context.describe(0, &scale.named("scale").define("T", "float"))?;
//!
//! let sde = Sde::new();
//! let kernel = context.kernel(&sde, 0, &scale, "scale")?;  // built, loaded, waited for or remembered
//! let launch = kernel.launch()?;                           // arguments of its own
//! # let _ = launch;
//! # Ok(())
//! # }
//! ```
//!
//! The guide's page on kernels says what is guaranteed.

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
