//! Setting up a context.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::Brought;
use super::living::Living;
use super::{Context, Inner, Keeping};
use crate::Error;
use crate::driver::Driver;
use crate::driver::faults::{Faults, Faulty};
use crate::driver::opencl::OpenCl;
use crate::driver::simulated::Simulated;
use crate::identity::Environment;
use crate::kept::{KernelDir, KernelStore};
use crate::settings::Settings;
use crate::stats::{Event, Notes};

static CONTEXTS: AtomicU64 = AtomicU64::new(1);

/// Sets up a [`Context`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct ContextBuilder {
    driver: Result<Box<dyn Driver>, Error>,
    environment: Environment,
    keeping: Keeping,
    notes: Notes,
    memory_limit: usize,
    bits: Option<usize>,
}

/// How many bytes of programs a context has live by itself.
const MEMORY_LIMIT: usize = 1 << 30;

impl ContextBuilder {
    fn new(driver: Result<Box<dyn Driver>, Error>) -> Self {
        Self {
            driver,
            environment: Environment::default(),
            keeping: Keeping::Nowhere(None),
            notes: Notes::default(),
            memory_limit: MEMORY_LIMIT,
            bits: None,
        }
    }

    /// Keeps binaries in a store of the user's own. Without this or [`keep`](Self::keep) nothing outlives the process.
    pub fn keep_in(mut self, store: impl KernelStore + 'static) -> Self {
        self.keeping = Keeping::Store(Arc::new(store));
        self
    }

    /// Keeps binaries in a directory that was opened.
    pub fn keep_in_dir(mut self, dir: &KernelDir) -> Self {
        self.keeping = Keeping::Dir(dir.clone());
        self
    }

    /// Keeps binaries in a directory with these settings. Where that can't be
    /// opened, nothing is kept, and [`Context::store_error`] and a warning say why; nor if it is off for all kinds of devices.
    pub fn keep(mut self, settings: Settings) -> Self {
        if settings.is_off() {
            return self;
        }
        match KernelDir::open(settings) {
            Ok(dir) => self.keep_in_dir(&dir),
            Err(error) => {
                sde::warning!("{error}");
                self.keeping = Keeping::Nowhere(Some(error));
                self
            }
        }
    }

    /// How many bytes of programs may be live before an engine that has another one made lets go of those that were used, or made, longest
    /// ago, but for what somebody holds (1 GiB). They count as in a [budget](crate::memory_budget), which looks at each use.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
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

    /// Has calls of the driver fail, for a test; see [`Faults`].
    pub fn faults(mut self, faults: &Faults) -> Self {
        let faults = faults.clone();
        self.driver = self
            .driver
            .map(|driver| Box::new(Faulty { driver, faults }) as Box<dyn Driver>);
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
            driver,
            environment: self.environment,
            keeping: self.keeping,
            notes: self.notes,
            memory_limit: self.memory_limit,
            bits: self.bits,
            living: Living::default(),
            brought: Brought::default(),
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
}
