//! The environment variables that change a driver's code for a source.
//!
//! PoCL's vectorizer and Intel's compiler passes depend on environment variables that no query
//! of OpenCL reports. SYCL's documents tell users to empty the cache when they change one.
//! Here the key has every variable with a known prefix, except the few that are known
//! to change no code. Too much in a key costs a build, too little gives wrong code.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cacheable::NotCacheable;

/// Prefixes of the variables that drivers read.
const PREFIXES: &[&str] = &[
    "AMD_",
    "CLOVER_",
    "CL_CONFIG_",
    "CL_KHR_",
    TOOLKIT,
    "GPU_",
    "IGC_",
    OPENS_ALL,
    "NEO_",
    "OPENCL_VERSION",
    "OverrideDefaultFP64Settings",
    "POCL_",
    "RUSTICL_",
];

/// The prefix of NVIDIA's variables. None holds options; many name the toolkit's directory, and a path in the key
/// is harmless.
const TOOLKIT: &str = "CUDA_";

/// Once this is set, Intel's driver reads hundreds of variables with names of all kinds.
const OPENS_ALL: &str = "NEOReadDebugKeys";

/// Variables that change no code: where the driver keeps its own cache or its notes, how many threads run
/// kernels and where, and which devices it shows (a device's identity is in the key by itself).
const WITHOUT_EFFECT: &[&str] = &[
    "AMD_COMGR_CACHE",
    "AMD_COMGR_CACHE_POLICY",
    "AMD_LOG_LEVEL",
    "AMD_LOG_LEVEL_FILE",
    "AMD_LOG_MASK",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "GPU_MAX_HW_QUEUES",
    "NEO_CACHE_MAX_SIZE",
    "NEO_CACHE_PERSISTENT",
    "POCL_AFFINITY",
    "POCL_DEBUG",
    "POCL_DEVICES",
    "POCL_KERNEL_CACHE",
    "POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES",
    "POCL_MAX_PTHREAD_COUNT",
    "POCL_TRACING",
    "POCL_TRACING_FILTER",
    "POCL_TRACING_OPT",
];

/// The variables that name the directories of the drivers' own caches: PoCL's, NVIDIA's, Intel's,
/// AMD's, Mesa's. With empty directories there, a process starts as on a new machine, as measurements and tests want.
pub const DRIVER_CACHES: &[&str] = &[
    "POCL_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "NEO_CACHE_DIR",
    "AMD_COMGR_CACHE_DIR",
    "MESA_SHADER_CACHE_DIR",
];

/// Options for every compilation, beside those of the program and of the call.
pub(super) const BUILD_OPTIONS: &str = "SDE_OPENCL_BUILD_OPTIONS";

/// Options for every link, beside those of the program: OpenCL lets a linker take few, and PoCL takes none.
pub(super) const LINK_OPTIONS: &str = "SDE_OPENCL_LINK_OPTIONS";

type Read = dyn Fn() -> Vec<(String, String)> + Send + Sync;

/// Where the switches of drivers are read, and which of them are in keys.
///
/// They are read each time a program is described: a change makes other keys.
///
/// ```
/// use sde_opencl::Environment;
///
/// let switches = Environment::default().prefix("NV_").without("NV_LOG_FILE");
/// # let _ = switches;
/// ```
#[derive(Clone)]
pub struct Environment {
    read: Arc<Read>,
    prefixes: BTreeSet<String>,
    without: BTreeSet<String>,
}

impl Default for Environment {
    /// The process's environment: the variables with prefixes of PoCL's, Intel's, AMD's, NVIDIA's and Mesa's drivers,
    /// except those known to change no code.
    fn default() -> Self {
        Self::reading(|| {
            let all = env::vars_os();
            all.map(|(name, value)| {
                // Values that are not UTF-8 are told apart too: they begin with a null byte, which no variable has.
                let text = |raw: std::ffi::OsString| {
                    let text = raw.into_string();
                    text.unwrap_or_else(|raw| {
                        format!("\0{}", raw.as_encoded_bytes().escape_ascii())
                    })
                };
                (text(name), text(value))
            })
            .collect()
        })
    }
}

impl Environment {
    /// Reads the variables from somewhere else, for tests and for programs that start drivers
    /// elsewhere.
    #[must_use]
    pub fn reading(variables: impl Fn() -> Vec<(String, String)> + Send + Sync + 'static) -> Self {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            read: Arc::new(variables),
            prefixes: owned(PREFIXES),
            without: owned(&[WITHOUT_EFFECT, DRIVER_CACHES].concat()),
        }
    }

    /// Variables with this prefix count too.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefixes.insert(prefix.into());
        self
    }

    /// This variable does not count: **a promise that it changes no code**.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>) -> Self {
        self.without.insert(name.into());
        self
    }

    /// The variables that count, by name.
    pub(super) fn switches(&self) -> Vec<(String, String)> {
        let mut found = (self.read)();
        found.retain(|(name, _)| self.counts(name));
        found.sort();
        found
    }

    /// The value of a variable; empty if it is not set.
    pub(super) fn value(&self, name: &str) -> String {
        let mut all = (self.read)().into_iter();
        all.find(|(there, _)| there == name)
            .map_or_else(String::new, |(_, value)| value)
    }

    /// Where a driver may look for included files first: PoCL writes a source to a file in its own cache, and looks
    /// beside it.
    pub(crate) fn looked_in_before(&self) -> Vec<PathBuf> {
        let below = |(name, value): (String, String)| match &*name {
            "POCL_CACHE_DIR" => Some(PathBuf::from(value)),
            "XDG_CACHE_HOME" => Some(Path::new(&value).join("pocl/kcache")),
            "HOME" => Some(Path::new(&value).join(".cache/pocl/kcache")),
            _ => None,
        };
        (self.read)().into_iter().filter_map(below).collect()
    }

    fn counts(&self, name: &str) -> bool {
        let mut prefixes = self.prefixes.iter();
        prefixes.any(|prefix| name.starts_with(&**prefix)) && !self.without.contains(name)
    }
}

/// Whether no switch can make a driver read a file or the time: none of them holds an option or a path.
pub(super) fn are_plain(switches: &[(String, String)]) -> Result<(), NotCacheable> {
    let is_option = |word: &str| {
        let behind = word.strip_prefix('-');
        behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_plain = |value: &str| {
        let mut words = value.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        !value.contains(['/', '\\', '@', '\0']) && !value.contains("__") && !words.any(is_option)
    };
    let is_safe = |name: &str, value: &str| match name {
        OPENS_ALL => value == "0",
        name => name.starts_with(TOOLKIT) || is_plain(value),
    };
    let found = switches.iter().find(|(name, value)| !is_safe(name, value));
    found.map_or(Ok(()), |(name, value)| {
        let name = name.clone();
        let value = value.clone();
        Err(NotCacheable::Switch { name, value })
    })
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("prefixes", &self.prefixes)
            .field("without", &self.without)
            .finish_non_exhaustive()
    }
}
