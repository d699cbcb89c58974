//! A driver that does nothing but what a test asks of it.
//!
//! It "builds" by noting the text, and its binaries are small. On demand it is full, takes an
//! intermediate language, gives no binaries, or waits or panics in a build. It counts
//! what is made and given back, and damaged binaries, which would end the process with a real
//! driver. [`faults`](super::faults) make its calls fail.
//!
//! ```
//! use sde::Sde;
//! use sde_opencl::driver::simulated::Simulated;
//! use sde_opencl::{Context, ProgramSpec};
//!
//! # fn main() -> Result<(), sde_opencl::Error> {
//! let driver = Simulated::new();
//! let context = Context::simulated(&driver).build()?;
//! let sde = Sde::new();
//! let program = context.describe(0, &ProgramSpec::source("kernel void copy() {}"))?;
//! let first = context.kernel(&sde, 0, &program, "copy")?;
//! let again = context.kernel(&sde, 0, &program, "copy")?;
//! assert!(sde::Value::ptr_eq(&first, &again));
//! assert_eq!(driver.counts().builds, 1);
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use opencl3::error_codes::{
    CL_BUILD_PROGRAM_FAILURE, CL_INVALID_BINARY, CL_INVALID_PROGRAM, CL_INVALID_SPEC_ID,
    CL_INVALID_VALUE, CL_OUT_OF_RESOURCES,
};

use super::{
    BinaryKind, Capture, DeviceIdentity, DeviceInfo, DeviceType, Done, Driver, ForeignFacts,
    RawKernel, RawProgram,
};
use crate::error::Refusal;
use crate::lock::lock;

const MAGIC: &[u8; 4] = b"SIM1";

/// A simulated driver. A clone is the same one.
#[derive(Clone)]
pub struct Simulated {
    devices: Arc<Vec<DeviceInfo>>,
    state: Arc<Mutex<State>>,
    in_build: Arc<Mutex<Hook>>,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulated")
            .field("devices", &self.devices)
            .finish_non_exhaustive()
    }
}

/// Called in each build, with the text.
type Hook = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct State {
    next: usize,
    programs: HashMap<usize, Program>,
    kernels: HashMap<usize, usize>,
    counts: Counts,
    room: Option<usize>,
    gives_no_binaries: bool,
    captures: Capture,
    is_busy: bool,
}

/// The counts of a simulated driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Builds from source or intermediate language.
    pub builds: usize,
    /// Compilations of parts.
    pub compiles: usize,
    /// Links.
    pub links: usize,
    /// Programs made from an intermediate language; it refuses a module of no bytes.
    pub from_il: usize,
    /// Programs made from binaries.
    pub from_binary: usize,
    /// Damaged binaries that were given to it: a real driver would have ended the process.
    pub damaged: usize,
    /// Programs that were not given back.
    pub programs: usize,
    /// Kernels that were not given back.
    pub kernels: usize,
}

#[derive(Clone, Default)]
struct Program {
    text: String,
    /// The code that the binary holds.
    code: String,
    options: String,
    log: String,
    kind: BinaryKind,
    is_il: bool,
}

impl Default for Simulated {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulated {
    /// A driver with one processor.
    #[must_use]
    pub fn new() -> Self {
        Self::with(vec![device("simulated", "1.0")])
    }

    /// A driver with these devices.
    #[must_use]
    pub fn with(devices: Vec<DeviceInfo>) -> Self {
        let nothing: Hook = Arc::new(|_: &str| {});
        Self {
            devices: Arc::new(devices),
            state: Arc::default(),
            in_build: Arc::new(Mutex::new(nothing)),
        }
    }

    /// At most this many programs may live at once.
    pub fn room_for(&self, programs: usize) {
        lock(&self.state).room = Some(programs);
    }

    /// It gives no binaries from now on.
    pub fn give_no_binaries(&self) {
        lock(&self.state).gives_no_binaries = true;
    }

    /// It gives the binary of a program as it first was, whatever was launched since.
    pub fn freeze_binaries(&self) {
        lock(&self.state).captures = Capture::NewProgram;
    }

    /// It has no finished code in any binary.
    pub fn finish_in_memory(&self) {
        lock(&self.state).captures = Capture::Never;
    }

    /// Sets whether its queues have launches that have not ended.
    pub fn is_busy(&self, is_busy: bool) {
        lock(&self.state).is_busy = is_busy;
    }

    /// Calls this in each build, with the text and no lock held: it may wait or panic.
    pub fn in_build(&self, hook: impl Fn(&str) + Send + Sync + 'static) {
        *lock(&self.in_build) = Arc::new(hook);
    }

    /// The counts until now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = lock(&self.state);
        Counts {
            programs: state.programs.len(),
            kernels: state.kernels.len(),
            ..state.counts
        }
    }

    fn add(&self, program: Program) -> Done<RawProgram> {
        let mut state = lock(&self.state);
        if state.room.is_some_and(|room| state.programs.len() >= room) {
            return Err(refused("making a program", CL_OUT_OF_RESOURCES));
        }
        state.next += 1;
        let number = state.next;
        state.programs.insert(number, program);
        Ok(RawProgram(number))
    }

    fn get(&self, raw: &RawProgram) -> Done<Program> {
        let found = lock(&self.state).programs.get(&raw.0).cloned();
        found.ok_or_else(|| refused("using a program", CL_INVALID_PROGRAM))
    }

    fn finish(&self, raw: &RawProgram, device: usize, options: &str, kind: BinaryKind) -> Done<()> {
        let mut program = self.get(raw)?;
        if program.code.is_empty() {
            let hook = Arc::clone(&lock(&self.in_build));
            hook(&program.text);
            let mut state = lock(&self.state);
            match kind {
                BinaryKind::Executable => state.counts.builds += 1,
                _ => state.counts.compiles += 1,
            }
            drop(state);
            program.log = format!("{} bytes compiled", program.text.len());
            if let Some((_, why)) = program.text.split_once("#error") {
                let why = why.lines().next().unwrap_or_default().trim();
                program.log = format!("error: {why}");
                lock(&self.state).programs.insert(raw.0, program);
                return Err(refused("building", CL_BUILD_PROGRAM_FAILURE));
            }
            let device = &self.devices[device].identity;
            program.code = format!(
                "{} {}|{options}|{}",
                device.name, device.driver, program.text
            );
        }
        program.options = options.to_owned();
        program.kind = kind;
        lock(&self.state).programs.insert(raw.0, program);
        Ok(())
    }
}

/// A processor of this name and driver version.
#[must_use]
pub fn device(name: &str, driver: &str) -> DeviceInfo {
    let identity = DeviceIdentity {
        platform: "Simulated Platform".to_owned(),
        platform_version: "OpenCL 3.0".to_owned(),
        name: name.to_owned(),
        vendor: "SDE".to_owned(),
        version: "OpenCL 3.0".to_owned(),
        driver: driver.to_owned(),
        extensions: String::new(),
        language: "OpenCL C 3.0".to_owned(),
    };
    DeviceInfo {
        identity,
        il: String::new(),
        kind: DeviceType::Cpu,
    }
}

fn refused(call: &'static str, code: i32) -> Refusal {
    Refusal { call, code }
}

/// A sum over the bytes that any flipped byte changes.
fn sum(bytes: &[u8]) -> [u8; 8] {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).to_le_bytes()
}

impl Driver for Simulated {
    fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    fn with_source(&self, text: &str) -> Done<RawProgram> {
        self.add(Program {
            text: text.to_owned(),
            ..Program::default()
        })
    }

    fn with_il(&self, il: &[u8]) -> Done<RawProgram> {
        lock(&self.state).counts.from_il += 1;
        if il.is_empty() {
            return Err(refused("taking a module", CL_INVALID_VALUE));
        }
        self.add(Program {
            text: String::from_utf8_lossy(il).into_owned(),
            is_il: true,
            ..Program::default()
        })
    }

    fn with_binary(&self, _: usize, binary: &[u8]) -> Done<RawProgram> {
        lock(&self.state).counts.from_binary += 1;
        let code = binary.strip_prefix(MAGIC).and_then(|rest| {
            let (code, check) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
            (check == sum(code)).then(|| String::from_utf8_lossy(code).into_owned())
        });
        let Some(code) = code else {
            lock(&self.state).counts.damaged += 1;
            return Err(refused("taking a binary", CL_INVALID_BINARY));
        };
        let text = code.splitn(3, '|').last().unwrap_or_default().to_owned();
        self.add(Program {
            text,
            code,
            ..Program::default()
        })
    }

    fn set_constant(&self, program: &RawProgram, id: u32, value: &[u8]) -> Done<()> {
        let mut program_there = self.get(program)?;
        if id > 1000 {
            return Err(refused("setting a constant", CL_INVALID_SPEC_ID));
        }
        program_there.text += &format!(" {id}={value:?}");
        lock(&self.state).programs.insert(program.0, program_there);
        Ok(())
    }

    fn build(&self, program: &RawProgram, device: usize, options: &str) -> Done<()> {
        self.finish(program, device, options, BinaryKind::Executable)
    }

    fn compile(&self, program: &RawProgram, device: usize, options: &str) -> Done<()> {
        self.finish(program, device, options, BinaryKind::Object)
    }

    fn link(&self, device: usize, options: &str, parts: &[&RawProgram]) -> Done<RawProgram> {
        let parts = parts.iter().map(|part| self.get(part));
        let parts = parts.collect::<Done<Vec<_>>>()?;
        let text: String = parts
            .iter()
            .map(|part| format!("{}\n", part.text))
            .collect();
        lock(&self.state).counts.links += 1;
        let device = &self.devices[device].identity;
        self.add(Program {
            code: format!("{} {}|{options}|{text}", device.name, device.driver),
            text,
            options: options.to_owned(),
            log: "linked".to_owned(),
            kind: BinaryKind::Executable,
            is_il: false,
        })
    }

    fn log(&self, program: &RawProgram, _: usize) -> Done<String> {
        Ok(self.get(program)?.log)
    }

    fn binary(&self, program: &RawProgram, _: usize) -> Done<Vec<u8>> {
        let program = self.get(program)?;
        if lock(&self.state).gives_no_binaries {
            return Ok(Vec::new());
        }
        let code = program.code.as_bytes();
        Ok([MAGIC, code, &sum(code)].concat())
    }

    fn kernel_names(&self, program: &RawProgram) -> Done<Vec<String>> {
        let text = self.get(program)?.text;
        let after = text.split("kernel void ").skip(1);
        let names = after.filter_map(|rest| rest.split_once('(').map(|(name, _)| name.to_owned()));
        Ok(names.collect())
    }

    fn kernel(&self, program: &RawProgram, _: &str) -> Done<RawKernel> {
        self.get(program)?;
        let mut state = lock(&self.state);
        state.next += 1;
        let number = state.next;
        state.kernels.insert(number, program.0);
        Ok(RawKernel(number))
    }

    fn release_program(&self, program: RawProgram) {
        lock(&self.state).programs.remove(&program.0);
    }

    fn release_kernel(&self, kernel: RawKernel) {
        lock(&self.state).kernels.remove(&kernel.0);
    }

    fn captures(&self, _: usize) -> Capture {
        lock(&self.state).captures
    }

    fn may_be_queued(&self, _: &RawKernel) -> bool {
        lock(&self.state).is_busy
    }

    fn foreign(&self, program: &RawProgram, _: usize) -> Done<ForeignFacts> {
        let program = self.get(program)?;
        let (source, il) = match program.is_il {
            true => (Vec::new(), program.text.into_bytes()),
            false => (program.text.into_bytes(), Vec::new()),
        };
        Ok(ForeignFacts {
            source,
            il,
            options: program.options.into_bytes(),
            kind: program.kind,
        })
    }
}
