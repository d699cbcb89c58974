//! Devices with their live programs and kernels.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use sde::key::{Encoder, FingerprintError, Short};
use sde::{Fingerprint, Handle, Policy, Value, inputs};

use crate::Error;
use crate::apps;
use crate::driver::opencl::OpenCl;
use crate::driver::simulated::Simulated;
use crate::driver::{DeviceInfo, Driver};
use crate::error::given;
use crate::identity::{Describe, Descriptor, DeviceIdentity, Environment, ProgramSpec};
use crate::keep::{self, Ended};
use crate::live::{Idle, Kernel, Live, Program};
use crate::persistent::{KernelDir, KernelStore, Settings};
use crate::stats::{Event, Notes, Stats};

/// A set of devices whose programs and kernels are remembered together.
///
/// A clone is the same context. Two that were built are two, also on one context of OpenCL: what is
/// live in one is not found in the other, but their binaries are shared. Build one and clone it.
///
/// What an [`Sde`](sde::Sde) remembers of a context holds it: programs, kernels, and the context of OpenCL. They stay
/// when the last clone is dropped, until they are cleaned, make room within a [limit](crate::memory_limit), or the
/// `Sde` goes. A program that builds context after context sets a limit, or cleans.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// No two contexts of a process share one.
    number: u64,
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) identities: Vec<DeviceIdentity>,
    pub(crate) environment: Environment,
    pub(crate) store: Option<Arc<dyn KernelStore>>,
    pub(crate) notes: Notes,
    bits: Option<usize>,
    live: Mutex<Vec<Weak<Live>>>,
    idle: Mutex<Vec<Weak<Idle>>>,
}

static CONTEXTS: AtomicU64 = AtomicU64::new(1);

/// Sets up a [`Context`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct ContextBuilder {
    driver: Result<Box<dyn Driver>, Error>,
    environment: Environment,
    store: Option<Arc<dyn KernelStore>>,
    notes: Notes,
    bits: Option<usize>,
}

impl ContextBuilder {
    fn new(driver: Result<Box<dyn Driver>, Error>) -> Self {
        Self {
            driver,
            environment: Environment::default(),
            store: None,
            notes: Notes::default(),
            bits: None,
        }
    }

    /// Keeps binaries here: a [`KernelDir`](crate::KernelDir), or a store of your own. Without this
    /// nothing outlives the process.
    pub fn keep_in(mut self, store: impl KernelStore + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Keeps binaries in a [`KernelDir`](crate::KernelDir) with these settings. Where that can't be
    /// opened, a warning says so, and nothing is kept; nor if it is off for all kinds of devices.
    pub fn keep(mut self, settings: Settings) -> Self {
        if settings.is_off() {
            return self;
        }
        match KernelDir::open(settings) {
            Ok(dir) => self.store = Some(Arc::new(dir)),
            Err(error) => tracing::warn!("{error}"),
        }
        self
    }

    /// Which environment variables change what the driver makes.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Tells somebody what happens, on the thread where it does.
    pub fn observer(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.notes.observer = Some(Box::new(observer));
        self
    }

    /// Uses only the first bits of each digest, so that a test meets programs that share one.
    #[doc(hidden)]
    pub fn cut_digests_to(mut self, bits: usize) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Makes the context.
    ///
    /// # Errors
    /// If a device does not say what it is.
    pub fn build(self) -> Result<Context, Error> {
        let driver = self.driver?;
        Ok(Context(Arc::new(Inner {
            number: CONTEXTS.fetch_add(1, Ordering::Relaxed),
            identities: driver.devices().iter().map(DeviceIdentity::of).collect(),
            driver,
            environment: self.environment,
            store: self.store,
            notes: self.notes,
            bits: self.bits,
            live: Mutex::default(),
            idle: Mutex::default(),
        })))
    }
}

impl Context {
    /// On a context of OpenCL, with its devices in their order. It stays alive for as long as anything
    /// that was built on it.
    pub fn on(context: Arc<opencl3::context::Context>) -> ContextBuilder {
        let driver = OpenCl::on(context);
        ContextBuilder::new(driver.map(|driver| Box::new(driver) as Box<dyn Driver>))
    }

    /// On a driver that does nothing but what a test asks of it.
    pub fn simulated(driver: &Simulated) -> ContextBuilder {
        ContextBuilder::new(Ok(Box::new(driver.clone())))
    }

    /// The context of OpenCL; `None` on a simulated driver.
    #[must_use]
    pub fn opencl(&self) -> Option<&Arc<opencl3::context::Context>> {
        self.0.driver.context()
    }

    /// What the drivers say of the devices.
    #[must_use]
    pub fn devices(&self) -> &[DeviceInfo] {
        self.0.driver.devices()
    }

    /// Describes a program for a device: reads what it includes, adds what the environment says,
    /// makes the key. It takes from microseconds to milliseconds, depending on what is
    /// included: do it once, and keep what comes of it.
    ///
    /// # Errors
    /// If there is no such device, an included file is missing or can't be read, or the options
    /// are not understood.
    pub fn describe(&self, device: usize, program: &ProgramSpec) -> Result<Descriptor, Error> {
        self.describe_with(device, program, "")
    }

    /// The same, with options of this call after those of the program. Those of a linked program are the
    /// linker's.
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub fn describe_with(
        &self,
        device: usize,
        program: &ProgramSpec,
        options: &str,
    ) -> Result<Descriptor, Error> {
        self.describing(device, options, false)?.describe(program)
    }

    /// A program that was built with its own options and no others.
    pub(crate) fn describe_built(
        &self,
        device: usize,
        program: &ProgramSpec,
    ) -> Result<Descriptor, Error> {
        self.describing(device, "", true)?.describe(program)
    }

    fn describing<'a>(
        &'a self,
        device: usize,
        options: &'a str,
        is_built: bool,
    ) -> Result<Describe<'a>, Error> {
        Ok(Describe {
            device: self.identity(device)?,
            environment: &self.0.environment,
            options,
            is_built,
            bits: self.0.bits,
        })
    }

    /// A live program: remembered, waited for, made from a kept binary, or built.
    ///
    /// `sde` is the engine, or the handle of an app that needs the program. If a resource is
    /// lacking, what nobody holds is let go and the build tried once more.
    ///
    /// A program that is [not cacheable](Descriptor::is_cacheable) is built each time.
    ///
    /// # Errors
    /// If it does not build: the same error for all, until the app's cache is cleaned. If it would have to be
    /// built, and what it includes was changed since it was described. If the driver refuses, or
    /// resources are lacking still.
    pub fn program(
        &self,
        sde: &Handle,
        device: usize,
        program: &Descriptor,
    ) -> Result<Value<Program>, Error> {
        self.with_room(sde, || self.program_once(sde, device, program))
    }

    /// The same, but for the second try.
    pub(crate) fn program_once(
        &self,
        sde: &Handle,
        device: usize,
        program: &Descriptor,
    ) -> Result<Value<Program>, Error> {
        if program.is_cacheable().is_ok() {
            let outcome = apps::program_build.call(sde, self, device, program);
            if let Some(outcome) = given(outcome, program, |found| found.descriptor()) {
                return outcome;
            }
        }
        self.program_anew(sde, device, program)
    }

    /// A kernel of a program, which is had as [`program`](Self::program) has it.
    ///
    /// # Errors
    /// As [`program`](Self::program), and if the program has no such kernel.
    pub fn kernel(
        &self,
        sde: &Handle,
        device: usize,
        program: &Descriptor,
        name: &str,
    ) -> Result<Value<Kernel>, Error> {
        self.with_room(sde, || {
            if program.is_cacheable().is_ok() {
                let outcome = apps::kernel.call(sde, self, device, program, name);
                let own = given(outcome, program, |found| found.program().descriptor());
                if let Some(outcome) = own {
                    return outcome;
                }
            }
            let program = self.program_once(sde, device, program)?;
            Ok(Value::new(Kernel::of(&program, name)?))
        })
    }

    /// Has it by an app of its own, beside the cache: nothing is looked up or remembered.
    fn program_anew(
        &self,
        sde: &Handle,
        device: usize,
        program: &Descriptor,
    ) -> Result<Value<Program>, Error> {
        let inputs = inputs! { context: self.clone(), device: device, program: program.clone() };
        let request = sde.request(&apps::program_anew, &inputs);
        let made = request.policy(Policy::Bypass).names(&["result"]).run()?;
        Ok(made.results.get::<Program>("result")?)
    }

    fn with_room<T>(&self, sde: &Handle, have: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        keep::giving(|| match have() {
            Err(error) if error.is_out_of_resources() => {
                let why = error.to_string();
                self.0.notes.note(&Event::OutOfResources { why });
                self.release_unused(sde);
                have()
            }
            outcome => outcome,
        })
    }

    /// Lets go what an engine remembers of programs and kernels and nobody holds, and kernels that wait for
    /// their next launch: for who lacks a resource elsewhere, as for a buffer. What is let go so is not captured once
    /// more; call [`keep_launched`](Self::keep_launched) before for that.
    pub fn release_unused(&self, sde: &Handle) {
        keep::let_go(|| {
            self.release_idle();
            for app in apps::NAMES {
                sde.make_room(app, 0);
            }
        });
    }

    /// Releases kernels that wait for their next launch. They are made again when they are needed.
    pub fn release_idle(&self) {
        let idle = std::mem::take(&mut *lock(&self.0.idle));
        for kernels in idle.into_iter().filter_map(|weak| weak.upgrade()) {
            kernels.release();
            lock(&self.0.idle).push(Arc::downgrade(&kernels));
        }
    }

    /// Keeps the binaries of programs whose kernels were launched since they were last kept, as they
    /// are now: many drivers finish code at the first launch. Call it when queues have finished, which
    /// it relies on. It is done too when a program is dropped, for those of its kernels of whose launches the
    /// driver has let go. Gives how many were kept.
    ///
    /// It also notes what was used of the store, and tries again to keep what could not be kept. It may take as long as a build: some drivers make
    /// the program once more for that. What another process is just building or capturing is left to it.
    pub fn keep_launched(&self) -> usize {
        let live: Vec<_> = lock(&self.0.live)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let keep = |program: &&Arc<Live>| {
            let kept = program.keep_if_better(Ended::All);
            kept.unwrap_or_else(|error| {
                tracing::warn!("a binary could not be captured after a launch: {error}");
                false
            })
        };
        let count = live.iter().filter(keep).count();
        if let Some(store) = &self.0.store {
            store.note_uses();
        }
        count
    }

    /// What happened so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.notes.stats()
    }

    pub(crate) fn identity(&self, device: usize) -> Result<&DeviceIdentity, Error> {
        self.0.identities.get(device).ok_or(Error::NoDevice {
            device,
            devices: self.0.identities.len(),
        })
    }

    /// The first device with the same identity.
    pub(crate) fn first_like(&self, device: usize) -> usize {
        let identities = &self.0.identities;
        let same = |identity: &DeviceIdentity| Some(identity) == identities.get(device);
        identities.iter().position(same).unwrap_or(device)
    }

    pub(crate) fn note_live(&self, program: &Arc<Live>) {
        let mut live = lock(&self.0.live);
        live.retain(|weak| weak.strong_count() > 0);
        live.push(Arc::downgrade(program));
    }

    pub(crate) fn note_idle(&self, kernels: &Arc<Idle>) {
        let mut idle = lock(&self.0.idle);
        idle.retain(|weak| weak.strong_count() > 0);
        idle.push(Arc::downgrade(kernels));
    }
}

/// By its number: what is live in one context is of no use in another.
impl Fingerprint for Context {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Context", |fields| fields.field("number", &self.0.number))
    }

    fn describe(&self, out: &mut Short) {
        out.show(format_args!("context {}", self.0.number));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("number", &self.0.number)
            .field("devices", &self.0.identities)
            .finish_non_exhaustive()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
