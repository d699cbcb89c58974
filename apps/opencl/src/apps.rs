//! Building as apps of SDE.
//!
//! The engine gives what other kernel caches write by hand: single flight per key, hits without a lock, errors that
//! all waiting callers share, and the permanent ones remembered. If a builder panics, a waiting caller takes its place.
//! The context is an input of each app, since a live program belongs to one context.
//!
//! [`Context::program`] and [`Context::kernel`] call these apps. They also compare the full key, and release unused
//! programs and kernels when a resource is lacking.

use sde::{AppError, Builder, EvictionOrder, Handle, MemoryBudget, MemorySize};

use crate::Error;
use crate::context::Context;
use crate::identity::Descriptor;
use crate::live::{Kernel, Object, Program};
use crate::make;

/// A live program, built or made from a kept binary.
///
/// A program that is not cacheable is refused, since its result would be remembered: [`Context::program`] builds it.
/// [`Error::from`] takes this crate's error out of the engine's.
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

/// The engine remembers a run by its key, and the key of such a program does not cover all that it is built from.
fn cacheable(program: &Descriptor) -> Result<(), Error> {
    let is_cacheable = program.is_cacheable();
    is_cacheable.map_err(|why| Error::NotCacheable(why.clone()))
}

/// A compiled part of a linked program. A part that is not cacheable is refused.
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

/// A kernel of a program. A kernel of a program that is not cacheable is refused: [`Context::kernel`] makes it.
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

/// The names of these apps; an app whose results hold another's comes first.
pub(crate) const NAMES: [&str; 3] = [
    "sde_opencl.Kernel",
    "sde_opencl.ProgramBuild",
    "sde_opencl.Object",
];

/// Limits the programs and kernels that an engine remembers. Above the limit, the least recently used are evicted,
/// except those that are held. A program is evicted only when none of its kernels is remembered or held.
///
/// A program counts with the length of its binary if known, else with an estimate; a kernel, which holds its program,
/// counts as much. Programs, kernels and compiled parts each have this limit. A context also has a
/// [limit](crate::ContextBuilder::memory_limit) of its own.
///
/// ```
/// use sde::{MemoryBudget, Sde};
///
/// let sde = sde_opencl::memory_budget(Sde::builder(), MemoryBudget::mib(256)).build()?;
/// # let _ = sde;
/// # Ok::<(), sde::Error>(())
/// ```
pub fn memory_budget(builder: Builder, budget: MemoryBudget) -> Builder {
    let budget = budget.order(EvictionOrder::LeastRecentlyUsed);
    NAMES.into_iter().fold(builder, |builder, app| {
        builder.memory_budget_of(app, budget.clone())
    })
}

impl MemorySize for Program {
    fn memory_size(&self) -> usize {
        self.0.bytes()
    }
}

/// A kernel keeps its whole program in memory, even if no other kernel of it is used.
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
