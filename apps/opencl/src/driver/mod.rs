//! The calls of OpenCL that are needed here, and nothing else.
//!
//! A driver that runs out of memory, refuses a binary that it made itself, or was updated over
//! night can't be had for a test. So all calls go through one trait with two sides: OpenCL, and a
//! [simulated] driver that does on demand what no device here does; and before either
//! [faults] can be put, which have chosen calls fail.
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

/// What a device is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub enum DeviceType {
    /// A processor that runs the program itself too.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Any other kind.
    Accelerator,
}

impl DeviceType {
    /// All of them.
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

/// Who a device is: two devices of equal identity share binaries, in this process, in another, and
/// on another machine that shares the directory.
///
/// It is what SYCL's cache takes, and the versions of the platform, what the vendor is called, and what a compiler is told of the
/// device: its extensions and features are macros.
/// OpenCL has no better name for the instructions of a device; drivers that serve processors of several kinds put
/// the kind into the name or the version, as PoCL does. A binary that is refused
/// all the same is built anew.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, sde::Fingerprint, serde::Serialize, serde::Deserialize,
)]
pub struct DeviceIdentity {
    /// The name of the platform.
    pub platform: String,
    /// The version of the platform.
    pub platform_version: String,
    /// The name of the device.
    pub name: String,
    /// Who made it.
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

/// What a driver says of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Who it is.
    pub identity: DeviceIdentity,
    /// The versions of the intermediate languages it takes; empty if it takes none.
    pub il: String,
    /// What kind of device it is.
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
    /// What the compiler said last.
    fn log(&self, program: &RawProgram, device: usize) -> Done<String>;
    /// Empty if the driver gives none.
    fn binary(&self, program: &RawProgram, device: usize) -> Done<Vec<u8>>;
    fn kernel_names(&self, program: &RawProgram) -> Done<Vec<String>>;
    fn kernel(&self, program: &RawProgram, name: &str) -> Done<RawKernel>;
    fn release_program(&self, program: RawProgram);
    fn release_kernel(&self, kernel: RawKernel);
    /// The context of OpenCL, if this is one.
    fn context(&self) -> Option<&std::sync::Arc<opencl3::context::Context>> {
        None
    }
    /// Where the code is that was finished at a launch.
    fn captures(&self, device: usize) -> Capture;
    /// Whether a launch of the kernel may not have ended. Who says no is to be believed.
    fn may_be_queued(&self, kernel: &RawKernel) -> bool;
    /// What is known of a program that somebody else made.
    fn foreign(&self, program: &RawProgram, device: usize) -> Done<ForeignFacts>;
}

/// What a driver tells of a program that somebody else made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForeignFacts {
    /// Empty if it was not made from source. It may end with null bytes, and need not be UTF-8.
    pub(crate) source: Vec<u8>,
    /// Empty if it was not made from an intermediate language.
    pub(crate) il: Vec<u8>,
    /// The options it was built with, as the source.
    pub(crate) options: Vec<u8>,
    pub(crate) kind: BinaryKind,
}

/// Where a driver has the code that it finishes at a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Capture {
    /// In the binary of the program, whenever that is asked for.
    #[default]
    SameProgram,
    /// The binary stays what it was when it was first asked for, or given. A new program of the same
    /// source has that code in its binary, with what was in the binaries that were loaded, and costs
    /// little, since the driver finds it in a cache of its own.
    NewProgram,
    /// In no binary.
    Never,
}

/// What a program is ready for.
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
