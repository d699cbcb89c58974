//! OpenCL, by way of opencl3.
//!
//! The lower half of opencl3 is called, which gives codes: the upper half panics where a text has a null byte or a
//! release fails, and its `Program::link` passes the program where OpenCL wants the context. Lists of binaries or
//! sources never have more than one item, since the lower half passes slices as if they were pointers.

#![allow(
    unsafe_code,
    reason = "OpenCL is C: each call says why what it is given lives long enough"
)]

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use opencl3::context::Context;
use opencl3::device::{self, Device};
use opencl3::platform::{Platform, get_platforms};
use opencl3::types::{cl_device_id, cl_kernel, cl_program};
use opencl3::{error_codes, kernel, program};

use super::{
    BinaryKind, Capture, DeviceIdentity, DeviceInfo, DeviceType, Done, Driver, ForeignFacts,
    RawKernel, RawProgram,
};
use crate::error::{Error, Refusal};
use crate::lock::lock;

/// A device of this machine, to be put into a context.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// The driver's description of it.
    pub info: DeviceInfo,
    /// The device.
    pub device: Device,
}

/// All devices of this machine, those of each platform together.
///
/// The library of OpenCL is looked for once in a process. Threads that ask at the same time take turns.
///
/// ```
/// match sde_opencl::devices() {
///     Ok(devices) => assert!(!devices.is_empty()),
///     Err(error) => assert!(matches!(error, sde_opencl::Error::NoOpenCl { .. }), "{error}"),
/// }
/// ```
///
/// # Errors
/// [`Error::NoOpenCl`] if there is no library, no platform or no device here.
pub fn devices() -> Result<Vec<Found>, Error> {
    // PoCL sets up its devices at the first query, and a thread that asks meanwhile reads
    // uninitialized memory, which ends the process.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = lock(&TURN);
    let none = |why: String| Error::NoOpenCl { why };
    let platforms = get_platforms().map_err(|error| match error.0 {
        error_codes::DLOPEN_RUNTIME_LOAD_FAILED => none("its library can't be loaded".to_owned()),
        _ => none(format!("the library has no platform: {error}")),
    })?;
    let mut found = Vec::new();
    for platform in platforms {
        // A platform with no device says so by an error.
        let ids = platform.get_devices(device::CL_DEVICE_TYPE_ALL);
        for id in ids.unwrap_or_default() {
            let device = Device::new(id);
            let info = info(&device)?;
            found.push(Found { info, device });
        }
    }
    match found.is_empty() {
        true => Err(none("no platform has a device".to_owned())),
        false => Ok(found),
    }
}

fn info(device: &Device) -> Result<DeviceInfo, Error> {
    let refused = |call: &'static str| {
        move |error: error_codes::ClError| {
            Error::Device(Refusal {
                call,
                code: error.0,
            })
        }
    };
    let of_device = refused("clGetDeviceInfo");
    let platform = Platform::new(device.platform().map_err(of_device)?);
    let of_platform = refused("clGetPlatformInfo");
    let bits = device.dev_type().map_err(of_device)?;
    let identity = DeviceIdentity {
        platform: platform.name().map_err(of_platform)?,
        platform_version: platform.version().map_err(of_platform)?,
        name: device.name().map_err(of_device)?,
        vendor: device.vendor().map_err(of_device)?,
        version: device.version().map_err(of_device)?,
        driver: device.driver_version().map_err(of_device)?,
        extensions: device.extensions().map_err(of_device)?,
        language: language(device).map_err(of_device)?,
    };
    Ok(DeviceInfo {
        identity,
        // Devices before OpenCL 2.1 do not know the query.
        il: device.il_version().unwrap_or_default(),
        kind: match bits {
            _ if bits & device::CL_DEVICE_TYPE_GPU != 0 => DeviceType::Gpu,
            _ if bits & device::CL_DEVICE_TYPE_CPU != 0 => DeviceType::Cpu,
            _ => DeviceType::Accelerator,
        },
    })
}

fn language(device: &Device) -> Result<String, error_codes::ClError> {
    let mut language = device.opencl_c_version()?;
    // Devices before OpenCL 3.0 do not know the query.
    for feature in device.opencl_c_features().unwrap_or_default() {
        let name = feature.name.split(|byte| *byte == 0).next();
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        language += &format!(" {name} {:#x}", feature.version);
    }
    Ok(language)
}

/// A context of OpenCL.
pub(crate) struct OpenCl {
    context: Arc<Context>,
    devices: Vec<DeviceInfo>,
    ids: Vec<Id>,
    /// Whether PoCL keeps what it compiles.
    has_pocl_cache: bool,
}

const POCL: &str = "Portable Computing Language";

/// A device of the context.
struct Id(cl_device_id);

// SAFETY: it is a handle that the library gave; any thread may make OpenCL's calls, except
// those that set arguments of one kernel, which are not made here.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

impl OpenCl {
    pub(crate) fn on(context: Arc<Context>) -> Result<Self, Error> {
        let ids = context.devices();
        let devices = ids.iter().map(|id| info(&Device::new(*id)));
        Ok(Self {
            devices: devices.collect::<Result<_, _>>()?,
            ids: ids.iter().map(|id| Id(*id)).collect(),
            context,
            // PoCL reads the variable in this way.
            has_pocl_cache: std::env::var_os("POCL_KERNEL_CACHE")
                .is_none_or(|said| said.as_encoded_bytes().starts_with(b"1")),
        })
    }

    fn id(&self, device: usize) -> Done<[cl_device_id; 1]> {
        let id = self.ids.get(device).ok_or(Refusal {
            call: "choosing a device",
            code: error_codes::CL_INVALID_DEVICE,
        })?;
        Ok([id.0])
    }
}

fn refused(call: &'static str) -> impl Fn(i32) -> Refusal {
    move |code| Refusal { call, code }
}

/// OpenCL's texts end with a null byte and have no other.
fn text(call: &'static str, text: &str) -> Done<CString> {
    CString::new(text).map_err(|_| refused(call)(error_codes::CL_INVALID_VALUE))
}

impl RawProgram {
    fn get(&self) -> cl_program {
        self.0 as cl_program
    }

    fn of(program: cl_program) -> Self {
        Self(program as usize)
    }
}

impl Driver for OpenCl {
    fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    fn with_source(&self, text: &str) -> Done<RawProgram> {
        // To OpenCL a length of 0 means a text that ends with a null byte, and this one does not.
        let text = if text.is_empty() { "\n" } else { text };
        program::create_program_with_source(self.context.get(), &[text])
            .map(RawProgram::of)
            .map_err(refused("clCreateProgramWithSource"))
    }

    fn with_il(&self, il: &[u8]) -> Done<RawProgram> {
        program::create_program_with_il(self.context.get(), il)
            .map(RawProgram::of)
            .map_err(refused("clCreateProgramWithIL"))
    }

    fn with_binary(&self, device: usize, binary: &[u8]) -> Done<RawProgram> {
        let id = self.id(device)?;
        // SAFETY: the context is alive, the device is one of it, and there is one binary, whose
        // bytes the driver copies before the call returns.
        let made =
            unsafe { program::create_program_with_binary(self.context.get(), &id, &[binary]) };
        made.map(RawProgram::of)
            .map_err(refused("clCreateProgramWithBinary"))
    }

    fn set_constant(&self, program: &RawProgram, id: u32, value: &[u8]) -> Done<()> {
        // SAFETY: the program is alive; the value is copied before the call returns.
        let set = unsafe {
            program::set_program_specialization_constant(
                program.get(),
                id,
                value.len(),
                value.as_ptr().cast::<c_void>(),
            )
        };
        set.map_err(refused("clSetProgramSpecializationConstant"))
    }

    fn build(&self, program: &RawProgram, device: usize, options: &str) -> Done<()> {
        let (id, options) = (self.id(device)?, text("clBuildProgram", options)?);
        program::build_program(program.get(), &id, &options, None, ptr::null_mut())
            .map_err(refused("clBuildProgram"))
    }

    fn compile(&self, program: &RawProgram, device: usize, options: &str) -> Done<()> {
        let (id, options) = (self.id(device)?, text("clCompileProgram", options)?);
        program::compile_program(
            program.get(),
            &id,
            &options,
            &[],
            &[],
            None,
            ptr::null_mut(),
        )
        .map_err(refused("clCompileProgram"))
    }

    fn link(&self, device: usize, options: &str, parts: &[&RawProgram]) -> Done<RawProgram> {
        let (id, options) = (self.id(device)?, text("clLinkProgram", options)?);
        let parts: Vec<cl_program> = parts.iter().map(|part| part.get()).collect();
        if parts.is_empty() {
            return Err(refused("clLinkProgram")(error_codes::CL_INVALID_VALUE));
        }
        // SAFETY: context and programs are alive; without a callback the call returns when it is
        // done.
        let linked = unsafe {
            program::link_program(
                self.context.get(),
                &id,
                &options,
                &parts,
                None,
                ptr::null_mut(),
            )
        };
        linked.map(RawProgram::of).map_err(refused("clLinkProgram"))
    }

    fn log(&self, program: &RawProgram, device: usize) -> Done<String> {
        let id = self.id(device)?;
        program::get_program_build_info(program.get(), id[0], program::CL_PROGRAM_BUILD_LOG)
            .map(String::from)
            .map_err(refused("clGetProgramBuildInfo"))
    }

    /// The binary for one device; a program of this crate is built for one device only. PoCL lists only the devices
    /// that a program was built for, and a device in place of its parts. A foreign program with several binaries is
    /// read by their order, if it has one for each device.
    fn binary(&self, program: &RawProgram, device: usize) -> Done<Vec<u8>> {
        let wanted = self.id(device)?[0] as isize;
        let info = |what| {
            let info = program::get_program_info(program.get(), what);
            info.map_err(refused("clGetProgramInfo"))
        };
        let mut binaries: Vec<Vec<u8>> = info(program::CL_PROGRAM_BINARIES)?.into();
        let devices: Vec<isize> = info(program::CL_PROGRAM_DEVICES)?.into();
        let there = binaries.iter().filter(|binary| !binary.is_empty()).count();
        let at = match there == 1 {
            true => binaries.iter().position(|binary| !binary.is_empty()),
            false if binaries.len() != devices.len() => None,
            false => devices.iter().position(|id| *id == wanted),
        };
        Ok(at.map(|at| binaries.swap_remove(at)).unwrap_or_default())
    }

    fn kernel_names(&self, program: &RawProgram) -> Done<Vec<String>> {
        let count = program::get_program_info(program.get(), program::CL_PROGRAM_NUM_KERNELS);
        let count: usize = count.map_err(refused("clGetProgramInfo"))?.into();
        if count == 0 {
            // PoCL gives an uninitialized byte then.
            return Ok(Vec::new());
        }
        let names = program::get_program_info(program.get(), program::CL_PROGRAM_KERNEL_NAMES);
        let names: String = names.map_err(refused("clGetProgramInfo"))?.into();
        let mut names: Vec<String> = names.split(';').map(str::to_owned).collect();
        names.retain(|name| !name.is_empty());
        names.sort();
        Ok(names)
    }

    fn kernel(&self, program: &RawProgram, name: &str) -> Done<RawKernel> {
        let name = text("clCreateKernel", name)?;
        kernel::create_kernel(program.get(), &name)
            .map(|kernel| RawKernel(kernel as usize))
            .map_err(refused("clCreateKernel"))
    }

    fn release_program(&self, program: RawProgram) {
        // SAFETY: this driver made it, and it is given back once: the call takes the only holder.
        if let Err(code) = unsafe { program::release_program(program.get()) } {
            sde::warning!("{}", refused("clReleaseProgram")(code));
        }
    }

    fn release_kernel(&self, kernel: RawKernel) {
        // SAFETY: as for programs.
        if let Err(code) = unsafe { kernel::release_kernel(kernel.0 as cl_kernel) } {
            sde::warning!("{}", refused("clReleaseKernel")(code));
        }
    }

    fn context(&self) -> Option<&Arc<Context>> {
        Some(&self.context)
    }

    /// PoCL compiles for a size of work groups at the first launch with that size, and keeps the code in its cache.
    /// From there it puts the binary together, once for each program. Without the cache no binary gets that code.
    fn captures(&self, device: usize) -> Capture {
        let device = self.devices.get(device);
        match device.is_some_and(|device| device.identity.platform == POCL) {
            false => Capture::SameProgram,
            true if self.has_pocl_cache => Capture::NewProgram,
            true => Capture::Never,
        }
    }

    /// A command in a queue of PoCL references its kernel. On drivers where commands don't, binaries have no code
    /// that is finished at a launch.
    fn may_be_queued(&self, kernel: &RawKernel) -> bool {
        let kernel = kernel.0 as cl_kernel;
        let count = kernel::get_kernel_info(kernel, kernel::CL_KERNEL_REFERENCE_COUNT);
        count.map_or(true, |count| u32::from(count) > 1)
    }

    fn foreign(&self, program: &RawProgram, device: usize) -> Done<ForeignFacts> {
        let id = self.id(device)?[0];
        let of_program = |name| {
            program::get_program_info(program.get(), name).map_err(refused("clGetProgramInfo"))
        };
        let of_build = |name| {
            program::get_program_build_info(program.get(), id, name)
                .map_err(refused("clGetProgramBuildInfo"))
        };
        let context: isize = of_program(program::CL_PROGRAM_CONTEXT)?.into();
        if context != self.context.get() as isize {
            return Err(refused("looking at a program of another context")(
                error_codes::CL_INVALID_CONTEXT,
            ));
        }
        let kind: u32 = of_build(program::CL_PROGRAM_BINARY_TYPE)?.into();
        let bytes_of_program = |name| {
            program::get_program_data(program.get(), name).map_err(refused("clGetProgramInfo"))
        };
        Ok(ForeignFacts {
            // Read as bytes: a lossy conversion would make two sources one.
            source: bytes_of_program(program::CL_PROGRAM_SOURCE)?,
            // Drivers before OpenCL 2.1 do not know the query.
            il: program::get_program_data(program.get(), program::CL_PROGRAM_IL)
                .unwrap_or_default(),
            options: program::get_program_build_data(
                program.get(),
                id,
                program::CL_PROGRAM_BUILD_OPTIONS,
            )
            .map_err(refused("clGetProgramBuildInfo"))?,
            kind: match kind {
                program::CL_PROGRAM_BINARY_TYPE_EXECUTABLE => BinaryKind::Executable,
                program::CL_PROGRAM_BINARY_TYPE_NONE => BinaryKind::Nothing,
                _ => BinaryKind::Object,
            },
        })
    }
}

/// Retains a foreign program: it lives until it is given back.
///
/// # Safety
/// It must be a program of OpenCL that is alive.
pub(crate) unsafe fn retain(raw: cl_program) -> Done<RawProgram> {
    // SAFETY: the caller says that it is alive.
    let retained = unsafe { program::retain_program(raw) };
    retained
        .map(|()| RawProgram::of(raw))
        .map_err(refused("clRetainProgram"))
}
