//! Building as apps of SDE.
//!
//! The engine gives what other kernel caches build by hand: one flight for each key while others
//! wait, errors shared by all who wait and remembered where they would come again, a panicking builder whose place
//! is taken by one of those who wait, and a hit without a lock. The context is an input of each: a live
//! program belongs to one.
//!
//! [`Context::program`] and [`Context::kernel`] call these, compare more than the digest, and let go what
//! is not in use if a resource is lacking.

use sde::{AppError, Builder, EvictionOrder, Handle, MemoryBudget, MemorySize};

use crate::Error;
use crate::context::Context;
use crate::identity::Descriptor;
use crate::live::{Kernel, Object, Program};
use crate::make;

/// A live program, built or made from a kept binary.
///
/// One that is not cacheable is refused, since it would be remembered: [`Context::program`] builds it.
/// What it fails with is had by [`Error::from`].
#[sde::app(
    name = "sde_opencl.ProgramBuild",
    version = "1",
    tags(expendable),
    sized,
    about = "a live program of OpenCL, built or made from a kept binary"
)]
pub fn program_build(
    sde: &Handle,
    context: &Context,
    device: usize,
    program: &Descriptor,
) -> Result<Program, AppError> {
    let made = cacheable(program).and_then(|()| make::program(sde, context, device, program));
    made.map_err(|error| error.for_app(program))
}

/// A run is remembered by its key, and the key of such a program does not tell it.
fn cacheable(program: &Descriptor) -> Result<(), Error> {
    let is_cacheable = program.is_cacheable();
    is_cacheable.map_err(|why| Error::NotCacheable(why.clone()))
}

/// A part of a linked program, compiled. One that is not cacheable is refused.
#[sde::app(
    name = "sde_opencl.Object",
    version = "1",
    tags(expendable),
    sized,
    about = "a compiled part of a program of OpenCL"
)]
pub fn object(context: &Context, device: usize, program: &Descriptor) -> Result<Object, AppError> {
    let made = cacheable(program).and_then(|()| make::object(context, device, program));
    made.map_err(|error| error.for_app(program))
}

/// A kernel of a program. One that is not cacheable is refused: [`Context::kernel`] has its kernels.
#[sde::app(
    name = "sde_opencl.Kernel",
    version = "1",
    tags(expendable),
    sized,
    about = "a kernel of a live program of OpenCL"
)]
pub fn kernel(
    sde: &Handle,
    context: &Context,
    device: usize,
    program: &Descriptor,
    name: &str,
) -> Result<Kernel, AppError> {
    let live = cacheable(program).and_then(|()| context.program_once(sde, device, program));
    let made = live.and_then(|live| Kernel::of(&live, name));
    made.map_err(|error| error.for_app(program))
}

/// The names of these apps, those first that hold others' results.
pub(crate) const NAMES: [&str; 3] = [
    "sde_opencl.Kernel",
    "sde_opencl.ProgramBuild",
    "sde_opencl.Object",
];

/// How many bytes of programs and kernels an engine may remember; when there are more, those that were
/// used longest ago are let go, but for what somebody holds: a program goes only when none of its kernels is remembered or held.
///
/// A program counts with the length of its binary where that is known, else with an estimate; a kernel, which holds its program, with as
/// much. The limit holds for programs, for kernels and for compiled parts of programs each. A context has a
/// [limit](crate::ContextBuilder::memory_limit) by itself.
///
/// ```
/// use sde::Sde;
///
/// let sde = sde_opencl::memory_budget(Sde::builder(), 256 << 20).build()?;
/// # let _ = sde;
/// # Ok::<(), sde::Error>(())
/// ```
pub fn memory_budget(builder: Builder, bytes: usize) -> Builder {
    let budget = MemoryBudget::bytes(bytes).order(EvictionOrder::LeastRecentlyUsed);
    NAMES.into_iter().fold(builder, |builder, app| {
        builder.memory_budget_of(app, budget.clone())
    })
}

impl MemorySize for Program {
    fn memory_size(&self) -> usize {
        self.0.bytes()
    }
}

/// It holds the program, whose other kernels may be used by nobody.
impl MemorySize for Kernel {
    fn memory_size(&self) -> usize {
        self.program().0.bytes()
    }
}

impl MemorySize for Object {
    fn memory_size(&self) -> usize {
        self.bytes()
    }
}
