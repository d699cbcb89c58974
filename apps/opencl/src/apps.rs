//! Building as apps of SDE.
//!
//! The engine gives what the seeds of this crate build by hand: one flight for each key while others
//! wait, errors shared by all who wait and remembered where they would come again, a panicking builder whose place
//! is taken by one of those who wait, and a hit without a lock. The context is an input of each: a live
//! program belongs to one.
//!
//! [`Context::program`] and [`Context::kernel`] call these, and do what an app can't: they let go
//! what is not in use if a resource is lacking.

use sde::{AppError, Handle};

use crate::context::Context;
use crate::identity::Descriptor;
use crate::live::{Kernel, Object, Program};
use crate::make;

/// A live program, built or made from a kept binary.
#[sde::app(
    name = "sde_opencl.ProgramBuild",
    version = "1",
    tags(expendable),
    gpu,
    about = "a live program of OpenCL, built or made from a kept binary"
)]
pub fn program_build(
    sde: &Handle,
    context: &Context,
    device: usize,
    program: &Descriptor,
) -> Result<Program, AppError> {
    make::program(sde, context, device, program).map_err(crate::Error::for_app)
}

/// A part of a linked program, compiled.
#[sde::app(
    name = "sde_opencl.Object",
    version = "1",
    tags(expendable),
    gpu,
    about = "a compiled part of a program of OpenCL"
)]
pub fn object(context: &Context, device: usize, program: &Descriptor) -> Result<Object, AppError> {
    make::object(context, device, program).map_err(crate::Error::for_app)
}

/// A kernel of a program.
#[sde::app(
    name = "sde_opencl.Kernel",
    version = "1",
    tags(expendable),
    gpu,
    about = "a kernel of a live program of OpenCL"
)]
pub fn kernel(
    sde: &Handle,
    context: &Context,
    device: usize,
    program: &Descriptor,
    name: &str,
) -> Result<Kernel, AppError> {
    let program = context.program(sde, device, program);
    let made = program.and_then(|program| program.kernel(name));
    made.map_err(crate::Error::for_app)
}

/// The names of these apps, those first that hold others' results.
pub(crate) const NAMES: [&str; 3] = [
    "sde_opencl.Kernel",
    "sde_opencl.ProgramBuild",
    "sde_opencl.Object",
];
