//! Calls of a driver that fail on demand, for tests.
//!
//! A driver that lacks resources, or refuses a binary that it made itself, can't be had for a test.
//! [`Faults`] stand between a context and its driver, a simulated one or a real one: chosen calls
//! answer with a code of OpenCL in place of the driver.
//!
//! ```
//! use sde::Sde;
//! use sde_opencl::driver::faults::{Call, Faults};
//! use sde_opencl::driver::simulated::Simulated;
//! use sde_opencl::{Context, ProgramSpec};
//!
//! # fn main() -> Result<(), sde_opencl::Error> {
//! let faults = Faults::new();
//! // On a device: `Context::on(opencl).faults(&faults)`.
//! let context = Context::simulated(&Simulated::new()).faults(&faults).build()?;
//! let program = context.describe(0, &ProgramSpec::source("kernel void copy() {}"))?;
//!
//! const OUT_OF_RESOURCES: i32 = -5;
//! faults.fail(&[Call::CreateKernel], 1, OUT_OF_RESOURCES);
//! // What is idle is let go, and the call is tried once more.
//! context.kernel(&Sde::new(), 0, &program, "copy")?;
//! assert_eq!(context.stats().out_of_resources, 1);
//! # Ok(())
//! # }
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use super::{Capture, DeviceInfo, Done, Driver, ForeignFacts, RawKernel, RawProgram};
use crate::error::Refusal;
use crate::lock::lock;

/// A call of OpenCL that this crate makes and that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// `clCreateProgramWithSource`
    CreateWithSource,
    /// `clCreateProgramWithIL`
    CreateWithIl,
    /// `clCreateProgramWithBinary`
    CreateWithBinary,
    /// `clSetProgramSpecializationConstant`
    SetConstant,
    /// `clBuildProgram`
    Build,
    /// `clCompileProgram`
    Compile,
    /// `clLinkProgram`
    Link,
    /// `clGetProgramBuildInfo`, asked for what the compiler said
    BuildLog,
    /// `clGetProgramInfo`, asked for the binary
    Binary,
    /// `clGetProgramInfo`, asked for the names of the kernels
    KernelNames,
    /// `clGetProgramInfo` and `clGetProgramBuildInfo`, asked about a foreign program
    Foreign,
    /// `clCreateKernel`
    CreateKernel,
}

impl Call {
    /// The calls that make a program.
    pub const THAT_MAKE_PROGRAMS: [Self; 4] = [
        Self::CreateWithSource,
        Self::CreateWithIl,
        Self::CreateWithBinary,
        Self::Link,
    ];

    /// OpenCL's name of the call.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateWithSource => "clCreateProgramWithSource",
            Self::CreateWithIl => "clCreateProgramWithIL",
            Self::CreateWithBinary => "clCreateProgramWithBinary",
            Self::SetConstant => "clSetProgramSpecializationConstant",
            Self::Build => "clBuildProgram",
            Self::Compile => "clCompileProgram",
            Self::Link => "clLinkProgram",
            Self::BuildLog => "clGetProgramBuildInfo",
            Self::Binary | Self::KernelNames | Self::Foreign => "clGetProgramInfo",
            Self::CreateKernel => "clCreateKernel",
        }
    }
}

/// Which calls fail, which were made, and which of the driver's objects were not given back. A clone is the same.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    made: Vec<Call>,
    /// Codes, by the call's number among all calls.
    at: HashMap<usize, i32>,
    /// For each kind of call, how many more times it fails and with which code.
    of: HashMap<Call, (usize, i32)>,
    /// The addresses of the programs that the driver made and did not get back. A user's own programs are not among
    /// them.
    programs: HashSet<usize>,
    kernels: HashSet<usize>,
}

impl Faults {
    /// No faults: the driver gets all calls.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next `times` calls of each of these kinds fail with this code.
    pub fn fail(&self, calls: &[Call], times: usize, code: i32) {
        let of = calls.iter().map(|call| (*call, (times, code)));
        lock(&self.0).of.extend(of);
    }

    /// After `others` more calls, the next one fails with this code, whichever it is.
    pub fn fail_after(&self, others: usize, code: i32) {
        let mut plan = lock(&self.0);
        let at = plan.made.len() + others;
        plan.at.insert(at, code);
    }

    /// The calls made until now, in order, including those that failed.
    #[must_use]
    pub fn made(&self) -> Vec<Call> {
        lock(&self.0).made.clone()
    }

    /// The numbers of programs and kernels that were not given back to the driver.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        let plan = lock(&self.0);
        (plan.programs.len(), plan.kernels.len())
    }

    fn ask(&self, call: Call) -> Done<()> {
        let mut plan = lock(&self.0);
        let number = plan.made.len();
        plan.made.push(call);
        let code = plan.at.remove(&number).or_else(|| {
            let (left, code) = plan.of.get_mut(&call).filter(|(left, _)| *left > 0)?;
            *left -= 1;
            Some(*code)
        });
        match code {
            None => Ok(()),
            Some(code) => Err(Refusal {
                call: call.name(),
                code,
            }),
        }
    }

    fn program(&self, made: Done<RawProgram>) -> Done<RawProgram> {
        if let Ok(made) = &made {
            lock(&self.0).programs.insert(made.0);
        }
        made
    }
}

/// A driver with faults before it.
pub(crate) struct Faulty {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) faults: Faults,
}

impl Driver for Faulty {
    fn devices(&self) -> &[DeviceInfo] {
        self.driver.devices()
    }

    fn with_source(&self, text: &str) -> Done<RawProgram> {
        self.faults.ask(Call::CreateWithSource)?;
        self.faults.program(self.driver.with_source(text))
    }

    fn with_il(&self, il: &[u8]) -> Done<RawProgram> {
        self.faults.ask(Call::CreateWithIl)?;
        self.faults.program(self.driver.with_il(il))
    }

    fn with_binary(&self, device: usize, binary: &[u8]) -> Done<RawProgram> {
        self.faults.ask(Call::CreateWithBinary)?;
        self.faults.program(self.driver.with_binary(device, binary))
    }

    fn set_constant(&self, program: &RawProgram, id: u32, value: &[u8]) -> Done<()> {
        self.faults.ask(Call::SetConstant)?;
        self.driver.set_constant(program, id, value)
    }

    fn build(&self, program: &RawProgram, device: usize, options: &str) -> Done<()> {
        self.faults.ask(Call::Build)?;
        self.driver.build(program, device, options)
    }

    fn compile(&self, program: &RawProgram, device: usize, options: &str) -> Done<()> {
        self.faults.ask(Call::Compile)?;
        self.driver.compile(program, device, options)
    }

    fn link(&self, device: usize, options: &str, parts: &[&RawProgram]) -> Done<RawProgram> {
        self.faults.ask(Call::Link)?;
        self.faults
            .program(self.driver.link(device, options, parts))
    }

    fn log(&self, program: &RawProgram, device: usize) -> Done<String> {
        self.faults.ask(Call::BuildLog)?;
        self.driver.log(program, device)
    }

    fn binary(&self, program: &RawProgram, device: usize) -> Done<Vec<u8>> {
        self.faults.ask(Call::Binary)?;
        self.driver.binary(program, device)
    }

    fn kernel_names(&self, program: &RawProgram) -> Done<Vec<String>> {
        self.faults.ask(Call::KernelNames)?;
        self.driver.kernel_names(program)
    }

    fn kernel(&self, program: &RawProgram, name: &str) -> Done<RawKernel> {
        self.faults.ask(Call::CreateKernel)?;
        let made = self.driver.kernel(program, name);
        if let Ok(made) = &made {
            lock(&self.faults.0).kernels.insert(made.0);
        }
        made
    }

    fn release_program(&self, program: RawProgram) {
        // Removed before the release, since the driver may give the next program the same address.
        lock(&self.faults.0).programs.remove(&program.0);
        self.driver.release_program(program);
    }

    fn release_kernel(&self, kernel: RawKernel) {
        lock(&self.faults.0).kernels.remove(&kernel.0);
        self.driver.release_kernel(kernel);
    }

    fn context(&self) -> Option<&Arc<opencl3::context::Context>> {
        self.driver.context()
    }

    fn captures(&self, device: usize) -> Capture {
        self.driver.captures(device)
    }

    fn may_be_queued(&self, kernel: &RawKernel) -> bool {
        self.driver.may_be_queued(kernel)
    }

    fn foreign(&self, program: &RawProgram, device: usize) -> Done<ForeignFacts> {
        self.faults.ask(Call::Foreign)?;
        self.driver.foreign(program, device)
    }
}
