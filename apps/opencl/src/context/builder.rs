//! Setting up a context.

use std::fmt;
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

impl fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextBuilder")
            .field("memory_limit", &self.memory_limit)
            .finish_non_exhaustive()
    }
}

/// The default limit of the bytes of programs that a context has live.
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

    /// Keeps binaries in a directory with these settings; in none if the settings are off for all kinds of devices.
    /// If it can't be opened, nothing is kept, and [`Context::store_error`] and a warning say why.
    pub fn keep(mut self, settings: Settings) -> Self {
        if settings.is_off() {
            return self;
        }
        match KernelDir::open(settings) {
            Ok(dir) => self.keep_in_dir(&dir),
            Err(error) => {
                sde::warning!("{error:#}");
                self.keeping = Keeping::Nowhere(Some(error));
                self
            }
        }
    }

    /// Limits the bytes of live programs (1 GiB). Above it, an engine that has made another program evicts those
    /// that were used, or made, longest ago, except those that are held. They count as in a
    /// [budget](crate::memory_budget), which is checked at each use.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Which environment variables change what the driver makes.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Calls an observer for each event, on the thread where it happens.
    pub fn observer(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.notes.observer = Some(Box::new(observer));
        self
    }

    /// Makes calls of the driver fail, for a test; see [`Faults`].
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
    /// If a device can't be asked for its identity.
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
    /// A builder of a context on one of OpenCL, with its devices in their order. The context of OpenCL stays alive
    /// as long as anything built on it.
    pub fn on(context: Arc<opencl3::context::Context>) -> ContextBuilder {
        let driver = OpenCl::on(context);
        ContextBuilder::new(driver.map(|driver| Box::new(driver) as Box<dyn Driver>))
    }

    /// A builder of a context on a simulated driver.
    pub fn simulated(driver: &Simulated) -> ContextBuilder {
        ContextBuilder::new(Ok(Box::new(driver.clone())))
    }
}
