//! The calls of OpenCL that are needed here, and nothing else.
//!
//! A driver that runs out of memory, refuses a binary that it made itself, or was updated over
//! night can't be had for a test. So all calls go through one trait with two implementations: OpenCL, and a
//! [simulated] driver that does so on demand. [Faults](faults) can be put before either, to make chosen calls fail.
//!
//! A program is built for one device at a time. With several devices in a context there is a
//! program for each; those of equal identity share the binary. That is also how SYCL's cache keys
//! programs.
//!
//! The trait is closed: a raw program or kernel is made by one driver, owned by one holder, given back
//! to that driver once, and never seen outside of this crate. Safe code can't get at a dangling one.

pub mod faults;
pub(crate) mod opencl;
pub mod simulated;

use crate::error::Refusal;

pub use opencl::{Found, devices};

/// The kind of a device.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub enum DeviceType {
    /// A processor that also runs the host program.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Any other kind.
    Accelerator,
}

impl DeviceType {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Gpu, Self::Accelerator];

    /// Its name in messages and environment variables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
        }
    }
}

/// The identity of a device: two devices of equal identity share binaries, in this process, in another, and
/// on another machine that shares the directory.
///
/// It has what SYCL's cache takes, the versions of the platform, the vendor's name, and the extensions and features,
/// which a compiler sees as macros. OpenCL has no better name for the instructions of a device; drivers that serve
/// processors of several kinds put the kind into the name or the version, as PoCL does. A binary that the driver
/// refuses all the same is built anew.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, sde::Fingerprint, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub struct DeviceIdentity {
    /// The name of the platform.
    pub platform: String,
    /// The version of the platform.
    pub platform_version: String,
    /// The name of the device.
    pub name: String,
    /// The name of its maker.
    pub vendor: String,
    /// The version of OpenCL, with what the vendor adds.
    pub version: String,
    /// The version of the driver.
    pub driver: String,
    /// The extensions, as the driver lists them.
    pub extensions: String,
    /// The version of OpenCL C, and its features with their versions.
    pub language: String,
}

/// A driver's description of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its identity.
    pub identity: DeviceIdentity,
    /// The versions of the intermediate languages it takes; empty if it takes none.
    pub il: String,
    /// The kind of the device.
    pub kind: DeviceType,
}

/// A program of a driver: whoever holds it gives it back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RawProgram(usize);

/// A kernel of a driver: whoever holds it gives it back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawKernel(usize);

impl RawKernel {
    pub(crate) fn address(&self) -> usize {
        self.0
    }
}

pub(crate) type Done<T> = Result<T, Refusal>;

/// A context of a driver. `device` counts its devices from 0.
pub(crate) trait Driver: Send + Sync {
    fn devices(&self) -> &[DeviceInfo];
    fn with_source(&self, text: &str) -> Done<RawProgram>;
    fn with_il(&self, il: &[u8]) -> Done<RawProgram>;
    /// The bytes must have been checked: drivers end the process over a damaged binary.
    fn with_binary(&self, device: usize, binary: &[u8]) -> Done<RawProgram>;
    fn set_constant(&self, program: &RawProgram, id: u32, value: &[u8]) -> Done<()>;
    fn build(&self, program: &RawProgram, device: usize, options: &str) -> Done<()>;
    fn compile(&self, program: &RawProgram, device: usize, options: &str) -> Done<()>;
    fn link(&self, device: usize, options: &str, parts: &[&RawProgram]) -> Done<RawProgram>;
    /// The compiler's last log.
    fn log(&self, program: &RawProgram, device: usize) -> Done<String>;
    /// Empty if the driver gives none.
    fn binary(&self, program: &RawProgram, device: usize) -> Done<Vec<u8>>;
    fn kernel_names(&self, program: &RawProgram) -> Done<Vec<String>>;
    fn kernel(&self, program: &RawProgram, name: &str) -> Done<RawKernel>;
    fn release_program(&self, program: RawProgram);
    fn release_kernel(&self, kernel: RawKernel);
    /// The context of OpenCL; `None` on another driver.
    fn context(&self) -> Option<&std::sync::Arc<opencl3::context::Context>> {
        None
    }
    /// Which binaries have the code that is finished at a launch.
    fn captures(&self, device: usize) -> Capture;
    /// Whether a launch of the kernel may not have ended. `false` must be certain.
    fn may_be_queued(&self, kernel: &RawKernel) -> bool;
    /// The driver's facts about a foreign program.
    fn foreign(&self, program: &RawProgram, device: usize) -> Done<ForeignFacts>;
}

/// A driver's facts about a foreign program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForeignFacts {
    /// Empty if it was not made from source. It may end with null bytes, and need not be UTF-8.
    pub(crate) source: Vec<u8>,
    /// Empty if it was not made from an intermediate language.
    pub(crate) il: Vec<u8>,
    /// The options it was built with, with the caveats of `source`.
    pub(crate) options: Vec<u8>,
    pub(crate) kind: BinaryKind,
}

/// Which binary has the code that a driver finishes at a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Capture {
    /// The binary of the program, whenever it is asked for.
    #[default]
    SameProgram,
    /// The binary stays as it was when it was first asked for, or given. A new program of the same source has the
    /// finished code in its binary, also that of the binaries that were loaded. It costs little, since the driver
    /// finds the code in a cache of its own.
    NewProgram,
    /// In no binary.
    Never,
}

/// The state of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BinaryKind {
    /// It was not built.
    #[default]
    Nothing,
    /// It was compiled and not linked, or linked to a library.
    Object,
    /// Its kernels can be run.
    Executable,
}
