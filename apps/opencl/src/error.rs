//! Errors of programs and kernels, and whether a failure is remembered.

use std::fmt;
use std::path::PathBuf;

use opencl3::error_codes::{
    CL_BUILD_PROGRAM_FAILURE, CL_COMPILE_PROGRAM_FAILURE, CL_INVALID_BUILD_OPTIONS,
    CL_INVALID_COMPILER_OPTIONS, CL_INVALID_LINKER_OPTIONS, CL_INVALID_OPERATION,
    CL_INVALID_SPEC_ID, CL_INVALID_VALUE, CL_LINK_PROGRAM_FAILURE,
    CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, error_text,
};

use crate::cacheable::NotCacheable;

/// Why there is no program or kernel.
///
/// A [permanent](Error::is_permanent) error is remembered in memory: the same build is not tried
/// again, and all callers get the same error.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no OpenCL on this machine.
    #[error(
        "no OpenCL here: {why}; install a driver (for processors, PoCL) and the library libOpenCL"
    )]
    #[non_exhaustive]
    NoOpenCl {
        /// The missing part.
        why: String,
    },
    /// A device can't be asked for its identity.
    #[error("a device could not be asked: {0}; another device may do")]
    Device(Refusal),
    /// There is no such device in the context.
    #[error(
        "the context has {devices} devices, and number {device} was asked for; they count from 0"
    )]
    #[non_exhaustive]
    NoDevice {
        /// The device asked for.
        device: usize,
        /// The number of devices in the context.
        devices: usize,
    },
    /// A program was described for another device than the one it is to be built for.
    #[error(
        "a program described for {described} was to be built for {asked}; describe it for that device"
    )]
    #[non_exhaustive]
    OtherDevice {
        /// The device it was described for.
        described: String,
        /// The device it was to be built for.
        asked: String,
    },
    /// A file that the source is said to read is not there.
    #[error(
        "\"{name}\", which the source is said to read, is not in {}; add its directory",
        places(looked_in)
    )]
    #[non_exhaustive]
    NoInclude {
        /// The name that was given.
        name: String,
        /// The directories that were searched, beside the working directory.
        looked_in: Vec<PathBuf>,
    },
    /// A file or a switch of the driver is not as it was when the program was described.
    #[error(
        "a file that {program} includes, or a switch of the driver in the environment, was changed after the program was described; describe it again"
    )]
    #[non_exhaustive]
    Changed {
        /// The program.
        program: String,
    },
    /// The options can't be parsed.
    #[error("the build options `{options}` are not understood: {why}")]
    #[non_exhaustive]
    Options {
        /// The options.
        options: String,
        /// The reason.
        why: String,
    },
    /// A linked program has no parts, or parts that can't be linked.
    #[error("a linked program can't be made of this: {why}")]
    #[non_exhaustive]
    Parts {
        /// The reason.
        why: String,
    },
    /// The program does not compile, or does not link.
    #[error("{what} for {device} failed ({refusal}); the compiler said:\n{log}")]
    #[non_exhaustive]
    Build {
        /// The operation and its program.
        what: String,
        /// The device.
        device: String,
        /// The driver's answer.
        refusal: Refusal,
        /// The compiler's log.
        log: String,
    },
    /// The device takes no intermediate language, or not this one.
    #[error(
        "{device} does not take the intermediate language of {program}: {why}; give it the source"
    )]
    #[non_exhaustive]
    NoIl {
        /// The device.
        device: String,
        /// The program.
        program: String,
        /// That it takes none, or what the driver said.
        why: String,
    },
    /// Memory or another resource was lacking, even after all unused programs and kernels were released.
    #[error(
        "{device} is out of resources ({refusal}); drop programs, kernels or buffers that are not needed"
    )]
    #[non_exhaustive]
    OutOfResources {
        /// The device.
        device: String,
        /// The driver's answer.
        refusal: Refusal,
    },
    /// The driver refused for another reason.
    #[error("{what} on {device}: {refusal}")]
    #[non_exhaustive]
    Driver {
        /// The operation.
        what: String,
        /// The device.
        device: String,
        /// The driver's answer.
        refusal: Refusal,
    },
    /// The program has no kernel of that name.
    #[error("{program} has no kernel \"{name}\"; it has: {}", there.join(", "))]
    #[non_exhaustive]
    NoKernel {
        /// The program.
        program: String,
        /// The kernel asked for.
        name: String,
        /// The kernels that it has.
        there: Vec<String>,
    },
    /// The key of the program does not cover all that it is built from.
    #[error("the program can't be cached: {0}; `Context::program` builds it each time")]
    NotCacheable(NotCacheable),
    /// The engine failed.
    #[error("{0:#}")]
    Engine(sde::Error),
}

sde::debug_as_said!(Error);

fn places(dirs: &[PathBuf]) -> String {
    let dirs: Vec<_> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    match dirs.is_empty() {
        true => "the working directory".to_owned(),
        false => format!("{} or the working directory", dirs.join(", ")),
    }
}

impl Error {
    /// Whether the same build would fail in the same way again.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Build { refusal, .. } => refusal.is_of_the_program(),
            Self::NoKernel { .. } | Self::NoIl { .. } => true,
            _ => false,
        }
    }

    /// Whether a resource was lacking.
    #[must_use]
    pub fn is_out_of_resources(&self) -> bool {
        matches!(self, Self::OutOfResources { .. })
    }

    /// The error of a driver's refusal: for lack of resources, or for another reason.
    pub(crate) fn refused(what: impl Into<String>, device: &str, refusal: Refusal) -> Self {
        let device = device.to_owned();
        match refusal.is_out_of_resources() {
            true => Self::OutOfResources { device, refusal },
            false => Self::Driver {
                what: what.into(),
                device,
                refusal,
            },
        }
    }
}

/// The answer of a call of OpenCL: its name and the code it gave.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The call.
    pub call: &'static str,
    /// The code, as OpenCL numbers them.
    pub code: i32,
}

sde::debug_as_said!(Refusal);

impl Refusal {
    /// Whether memory or another resource was lacking: a later try may work.
    #[must_use]
    pub fn is_out_of_resources(self) -> bool {
        matches!(
            self.code,
            CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY
        )
    }

    /// Whether the module is at fault, if the call makes a program of an intermediate language.
    #[must_use]
    pub(crate) fn is_of_the_module(self) -> bool {
        matches!(self.code, CL_INVALID_VALUE | CL_INVALID_OPERATION)
    }

    /// Whether the program is at fault, so that the same build would always fail so.
    #[must_use]
    pub(crate) fn is_of_the_program(self) -> bool {
        matches!(
            self.code,
            CL_BUILD_PROGRAM_FAILURE
                | CL_COMPILE_PROGRAM_FAILURE
                | CL_LINK_PROGRAM_FAILURE
                | CL_INVALID_BUILD_OPTIONS
                | CL_INVALID_COMPILER_OPTIONS
                | CL_INVALID_LINKER_OPTIONS
                | CL_INVALID_SPEC_ID
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = error_text(self.code);
        write!(f, "{} gave {} ({name})", self.call, self.code)
    }
}

impl std::error::Error for Refusal {}
