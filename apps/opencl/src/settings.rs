//! How binaries are kept: by a program, or by environment variables.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sde_archives::Removal;
use sde_archives::vfs::{Disk, Vfs};

use crate::driver::DeviceType;

/// The use of kept binaries for a kind of device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing is read or written.
    Off,
    /// Kept binaries are used; none is added.
    Read,
    /// Kept binaries are used, and new builds are added.
    #[default]
    ReadWrite,
}

/// An environment variable has a value that is not understood.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is `{value}`; it should be {wanted}")]
#[non_exhaustive]
pub struct SettingsError {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The values that are understood.
    pub wanted: &'static str,
}

sde::debug_as_said!(SettingsError);

/// Configures how binaries are kept.
///
/// ```
/// use std::time::Duration;
/// use sde_opencl::{DeviceType, Mode, Settings};
///
/// let settings = Settings::new()
///     .dir("/scratch/kernels")
///     .mode(DeviceType::Cpu, Mode::Off)
///     .capacity(1 << 30)
///     .max_age(Duration::from_secs(30 * 24 * 3600));
/// # let _ = settings;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    modes: [Mode; DeviceType::ALL.len()],
    /// The directory, which is made if missing; `None` is `sde/kernels` in `$XDG_CACHE_HOME`, or in
    /// `~/.cache`.
    pub dir: Option<PathBuf>,
    /// The limit of kept bytes; `None` is no limit. The store may exceed it by an eighth, by the writes of
    /// processes, and by the copies made while entries are evicted.
    pub capacity: Option<u64>,
    /// The order of eviction.
    pub order: Removal,
    /// Entries that were neither built nor used for this long are evicted, when a process has kept something or ends.
    /// Until then they are used.
    pub max_age: Option<Duration>,
    /// Smaller binaries are not kept: they are as soon built as read.
    pub min_binary: u64,
    /// Larger binaries are not kept.
    pub max_binary: u64,
    /// The longest wait for another process that builds the same program, before building it too. A process that
    /// has died is not waited for.
    pub patience: Duration,
    /// Whether the group of a directory above may write to it: its members can then run code as this user.
    pub trusts_group: bool,
    vfs: Arc<dyn Vfs>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

impl Settings {
    /// Read and write for all kinds of devices, in the user's cache directory, with 8 GiB of room and eviction of
    /// the least recently used, no limit of age, binaries of up to 1 GiB, and a minute of patience.
    #[must_use]
    pub fn new() -> Self {
        Self {
            modes: [Mode::ReadWrite; DeviceType::ALL.len()],
            dir: None,
            capacity: Some(8 << 30),
            order: Removal::LeastRecentlyUsed,
            max_age: None,
            min_binary: 0,
            max_binary: 1 << 30,
            patience: Duration::from_secs(60),
            trusts_group: false,
            vfs: Arc::new(Disk),
        }
    }

    /// The settings of the environment variables `SDE_KERNEL_CACHE_*`, with defaults for the rest. The
    /// guide has a table of them.
    ///
    /// # Errors
    /// If one has a value that is not understood.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_variables(|name: &str| env::var_os(name))
    }

    /// Reads the settings from variables that the caller gives, in place of the environment.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut settings = Self::new();
        let mode = |name: &str| {
            let said = variable(name);
            understood(
                name,
                said,
                "`off`, `read` or `read-write`",
                |text| match text {
                    "off" | "0" => Some(Mode::Off),
                    "read" => Some(Mode::Read),
                    "read-write" | "1" => Some(Mode::ReadWrite),
                    _ => None,
                },
            )
        };
        let number = |name: &str, wanted| {
            let name = format!("SDE_KERNEL_CACHE_{name}");
            understood(&name, variable(&name), wanted, |text| {
                text.parse::<u64>().ok()
            })
        };
        if let Some(mode) = mode("SDE_KERNEL_CACHE")? {
            settings.modes = [mode; DeviceType::ALL.len()];
        }
        for kind in DeviceType::ALL {
            let name = format!("SDE_KERNEL_CACHE_{}", kind.name().to_uppercase());
            settings.modes[kind as usize] = mode(&name)?.unwrap_or(settings.mode_of(kind));
        }
        settings.dir = variable("SDE_KERNEL_CACHE_DIR").map(PathBuf::from);
        const BYTES: &str = "a number of bytes";
        if let Some(bytes) = number("MAX_SIZE", BYTES)? {
            // As in SYCL's cache, 0 is no limit.
            settings.capacity = (bytes > 0).then_some(bytes);
        }
        if let Some(bytes) = number("MIN_BINARY", BYTES)? {
            settings.min_binary = bytes;
        }
        if let Some(bytes) = number("MAX_BINARY", BYTES)? {
            settings.max_binary = bytes;
        }
        if let Some(days) = number("MAX_AGE", "a number of days")? {
            let age = Duration::from_secs(days.saturating_mul(24 * 3600));
            settings.max_age = (days > 0).then_some(age);
        }
        if let Some(seconds) = number("WAIT", "a number of seconds")? {
            settings.patience = Duration::from_secs(seconds);
        }
        let name = "SDE_KERNEL_CACHE_TRUST";
        let group = |text: &str| (text == "group").then_some(true);
        let trusts_group = understood(name, variable(name), "`group`", group)?;
        settings.trusts_group = trusts_group.unwrap_or(false);
        let name = "SDE_KERNEL_CACHE_ORDER";
        let order = understood(name, variable(name), "`lru` or `fifo`", |text| match text {
            "lru" => Some(Removal::LeastRecentlyUsed),
            "fifo" => Some(Removal::FirstIn),
            _ => None,
        });
        settings.order = order?.unwrap_or(settings.order);
        Ok(settings)
    }

    /// Sets the mode for one kind of device.
    #[must_use]
    pub fn mode(mut self, kind: DeviceType, mode: Mode) -> Self {
        self.modes[kind as usize] = mode;
        self
    }

    /// The mode for one kind of device.
    #[must_use]
    pub fn mode_of(&self, kind: DeviceType) -> Mode {
        self.modes[kind as usize]
    }

    /// Sets the [directory](Self::dir).
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets the [capacity](Self::capacity), in bytes.
    #[must_use]
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Sets the [order](Self::order).
    #[must_use]
    pub fn order(mut self, order: Removal) -> Self {
        self.order = order;
        self
    }

    /// Sets the [maximum age](Self::max_age); with zero all entries are evicted.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Sets the smallest length of a [kept binary](Self::min_binary), in bytes.
    #[must_use]
    pub fn min_binary(mut self, bytes: u64) -> Self {
        self.min_binary = bytes;
        self
    }

    /// Sets the largest length of a [kept binary](Self::max_binary), in bytes.
    #[must_use]
    pub fn max_binary(mut self, bytes: u64) -> Self {
        self.max_binary = bytes;
        self
    }

    /// Sets the [patience](Self::patience).
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Accepts directories above the cache that their group can write to, as where the umask is 002: see
    /// [`trusts_group`](Self::trusts_group). The cache itself is the user's alone, or a group's, of
    /// which only binaries of [trusted](sde_archives::trusted) users are loaded.
    #[must_use]
    pub fn trust_group(mut self) -> Self {
        self.trusts_group = true;
        self
    }

    /// Another file system than that of the machine, for tests.
    #[must_use]
    pub fn vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// The settings for a place that can't be written to.
    pub(crate) fn only_read(mut self) -> Self {
        for mode in &mut self.modes {
            if *mode == Mode::ReadWrite {
                *mode = Mode::Read;
            }
        }
        self
    }

    pub(crate) fn on(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    pub(crate) fn is_off(&self) -> bool {
        self.modes.iter().all(|mode| *mode == Mode::Off)
    }

    pub(crate) fn writes(&self) -> bool {
        self.modes.contains(&Mode::ReadWrite)
    }

    /// The directory, or the default one; `None` if the user has no home.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        let absolute = |name: &str| {
            let path = PathBuf::from(env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        self.dir.clone().or_else(|| {
            let cache = absolute("XDG_CACHE_HOME");
            let cache = cache.or_else(|| Some(absolute("HOME")?.join(".cache")))?;
            Some(cache.join("sde").join("kernels"))
        })
    }
}

/// The value of a variable, if it is set.
fn understood<T>(
    name: &str,
    value: Option<OsString>,
    wanted: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, SettingsError> {
    let Some(value) = value else {
        return Ok(None);
    };
    match value.to_str().and_then(read) {
        Some(read) => Ok(Some(read)),
        None => Err(SettingsError {
            name: name.to_owned(),
            value: value.to_string_lossy().into_owned(),
            wanted,
        }),
    }
}
