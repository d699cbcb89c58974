//! How binaries are kept: by a program, or by environment variables.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sde_archives::Order;
use sde_archives::vfs::{Disk, Vfs};

use crate::driver::DeviceType;

/// What is done with the kept binaries of a kind of device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is read or written.
    Off,
    /// What is there is used; nothing is added.
    Read,
    /// What is there is used, and what is built is added.
    #[default]
    ReadWrite,
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "off" | "0" => Ok(Self::Off),
            "read" => Ok(Self::Read),
            "read-write" | "1" => Ok(Self::ReadWrite),
            _ => Err(()),
        }
    }
}

/// An environment variable has a value that is not understood.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is `{value}`; it should be {wanted}")]
pub struct SettingsError {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What is understood.
    pub wanted: &'static str,
}

sde::debug_as_said!(SettingsError);

/// How binaries are kept.
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
pub struct Settings {
    pub(super) modes: [Mode; DeviceType::ALL.len()],
    pub(super) dir: Option<PathBuf>,
    pub(super) capacity: Option<u64>,
    pub(super) order: Order,
    pub(super) max_age: Option<Duration>,
    pub(super) min_binary: u64,
    pub(super) max_binary: u64,
    pub(super) patience: Duration,
    pub(super) medium: Option<Arc<dyn Vfs>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

impl Settings {
    /// Read and write for all kinds of devices, in the user's cache directory, with 8 GiB of room and
    /// no limit of age.
    #[must_use]
    pub fn new() -> Self {
        Self {
            modes: [Mode::ReadWrite; DeviceType::ALL.len()],
            dir: None,
            capacity: Some(8 << 30),
            order: Order::LeastRecentlyUsed,
            max_age: None,
            min_binary: 0,
            max_binary: 1 << 30,
            patience: Duration::from_secs(60),
            medium: None,
        }
    }

    /// What the environment variables `SDE_KERNEL_CACHE_*` say, and the defaults for the rest. The
    /// guide has a table of them.
    ///
    /// # Errors
    /// If one has a value that is not understood.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_os(|name: &str| env::var_os(name))
    }

    /// As [`from_env`](Self::from_env), with variables from elsewhere.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        Self::from_os(|name| variable(name).map(OsString::from))
    }

    fn from_os(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        let from = Variables(&variable);
        let mut settings = Self::new();
        const MODE: &str = "`off`, `read` or `read-write`";
        if let Some(mode) = from.parsed::<Mode>("SDE_KERNEL_CACHE", MODE)? {
            settings.modes = [mode; DeviceType::ALL.len()];
        }
        for kind in DeviceType::ALL {
            let name = format!("SDE_KERNEL_CACHE_{}", kind.name().to_uppercase());
            if let Some(mode) = from.parsed::<Mode>(&name, MODE)? {
                settings = settings.mode(kind, mode);
            }
        }
        settings.dir = variable("SDE_KERNEL_CACHE_DIR")
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from);
        const BYTES: &str = "a number of bytes";
        if let Some(bytes) = from.parsed::<u64>("SDE_KERNEL_CACHE_MAX_SIZE", BYTES)? {
            // As in SYCL's: 0 is no limit.
            settings.capacity = (bytes > 0).then_some(bytes);
        }
        if let Some(bytes) = from.parsed("SDE_KERNEL_CACHE_MIN_BINARY", BYTES)? {
            settings.min_binary = bytes;
        }
        if let Some(bytes) = from.parsed("SDE_KERNEL_CACHE_MAX_BINARY", BYTES)? {
            settings.max_binary = bytes;
        }
        if let Some(days) = from.parsed::<u32>("SDE_KERNEL_CACHE_MAX_AGE", "a number of days")? {
            let age = Duration::from_secs(24 * 3600 * u64::from(days));
            settings.max_age = (days > 0).then_some(age);
        }
        if let Some(seconds) = from.parsed::<u32>("SDE_KERNEL_CACHE_WAIT", "a number of seconds")? {
            settings.patience = Duration::from_secs(seconds.into());
        }
        if let Some(InWords(order)) = from.parsed("SDE_KERNEL_CACHE_ORDER", "`lru` or `fifo`")? {
            settings.order = order;
        }
        Ok(settings)
    }

    /// What is done for one kind of device.
    #[must_use]
    pub fn mode(mut self, kind: DeviceType, mode: Mode) -> Self {
        self.modes[kind.index()] = mode;
        self
    }

    /// Where binaries are kept: a directory of its own, which is made if it is not there. By default
    /// `sde/kernels` in `$XDG_CACHE_HOME`, or in `~/.cache`.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// How many bytes may be kept (8 GiB); with 0 nothing is. For a while the files may have a quarter more, and, while room
    /// is made, what is copied too: never more than twice this, and a binary for each process. What
    /// is built when there is no room is not kept.
    #[must_use]
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// As many bytes may be kept as there are, which is what 0 says in the environment.
    #[must_use]
    pub fn unlimited(mut self) -> Self {
        self.capacity = None;
        self
    }

    /// What goes first if there is not room for all (the least recently used).
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// What was neither built nor used for so long goes, with zero all of it (there is no limit of age). It is looked for when a
    /// process keeps a binary for the first time, by [`KernelDir::tidy`](super::KernelDir::tidy), and whenever
    /// room is made. Until then it is used.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Nothing goes for its age, which is what 0 says in the environment.
    #[must_use]
    pub fn any_age(mut self) -> Self {
        self.max_age = None;
        self
    }

    /// Smaller binaries are not kept: they are as soon built as read (0).
    #[must_use]
    pub fn min_binary(mut self, bytes: u64) -> Self {
        self.min_binary = bytes;
        self
    }

    /// Larger binaries are not kept (1 GiB).
    #[must_use]
    pub fn max_binary(mut self, bytes: u64) -> Self {
        self.max_binary = bytes;
        self
    }

    /// How long to wait for another process that builds the same program, before building it too (a
    /// minute). Nobody waits for a process that has died.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same, where nothing can be written.
    pub(super) fn only_read(mut self) -> Self {
        for mode in &mut self.modes {
            if *mode == Mode::ReadWrite {
                *mode = Mode::Read;
            }
        }
        self
    }

    /// What it is on.
    pub(super) fn on(&self) -> Arc<dyn Vfs> {
        match &self.medium {
            Some(medium) => Arc::clone(medium),
            None => Arc::new(Disk),
        }
    }

    /// Another medium than the disk, for tests.
    #[must_use]
    pub fn medium(mut self, medium: Arc<dyn Vfs>) -> Self {
        self.medium = Some(medium);
        self
    }

    pub(super) fn of(&self, kind: DeviceType) -> Mode {
        self.modes[kind.index()]
    }

    pub(crate) fn is_off(&self) -> bool {
        self.modes.iter().all(|mode| *mode == Mode::Off)
    }

    /// The directory, or the default one; `None` if the user has no home.
    pub(super) fn directory(&self) -> Option<PathBuf> {
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

struct Variables<'a, F>(&'a F);

/// An order as a variable has it.
struct InWords(Order);

impl FromStr for InWords {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "lru" => Ok(Self(Order::LeastRecentlyUsed)),
            "fifo" => Ok(Self(Order::FirstIn)),
            _ => Err(()),
        }
    }
}

impl<F: Fn(&str) -> Option<OsString>> Variables<'_, F> {
    fn parsed<T: FromStr>(
        &self,
        name: &str,
        wanted: &'static str,
    ) -> Result<Option<T>, SettingsError> {
        match (self.0)(name) {
            None => Ok(None),
            Some(text) if text.is_empty() => Ok(None),
            Some(text) => match text.to_str().and_then(|text| text.parse().ok()) {
                Some(value) => Ok(Some(value)),
                None => Err(wrong(name, &text.to_string_lossy(), wanted)),
            },
        }
    }
}

fn wrong(name: &str, value: &str, wanted: &'static str) -> SettingsError {
    SettingsError {
        name: name.to_owned(),
        value: value.to_owned(),
        wanted,
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let find = |name: &str| variables.iter().find(|(there, _)| *there == name);
        Settings::from_variables(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_say_what_calls_say() {
        let said = settings(&[
            ("SDE_KERNEL_CACHE", "read"),
            ("SDE_KERNEL_CACHE_GPU", "read-write"),
            ("SDE_KERNEL_CACHE_CPU", "off"),
            ("SDE_KERNEL_CACHE_DIR", "/there"),
            ("SDE_KERNEL_CACHE_MAX_SIZE", "1000"),
            ("SDE_KERNEL_CACHE_ORDER", "fifo"),
            ("SDE_KERNEL_CACHE_MAX_AGE", "2"),
            ("SDE_KERNEL_CACHE_MIN_BINARY", "3"),
            ("SDE_KERNEL_CACHE_MAX_BINARY", "4"),
            ("SDE_KERNEL_CACHE_WAIT", "5"),
        ]);
        let called = Settings::new()
            .mode(DeviceType::Cpu, Mode::Off)
            .mode(DeviceType::Gpu, Mode::ReadWrite)
            .mode(DeviceType::Accelerator, Mode::Read)
            .dir("/there")
            .capacity(1000)
            .order(Order::FirstIn)
            .max_age(Duration::from_secs(2 * 24 * 3600))
            .min_binary(3)
            .max_binary(4)
            .patience(Duration::from_secs(5));
        assert_eq!(format!("{:?}", said.unwrap()), format!("{called:?}"));
    }

    #[test]
    fn nothing_said_is_the_default_and_zero_is_no_limit() {
        let empty = settings(&[
            ("SDE_KERNEL_CACHE_DIR", ""),
            ("SDE_KERNEL_CACHE_ORDER", "lru"),
        ]);
        assert_eq!(
            format!("{:?}", empty.unwrap()),
            format!("{:?}", Settings::new())
        );
        let unlimited = settings(&[
            ("SDE_KERNEL_CACHE_MAX_SIZE", "0"),
            ("SDE_KERNEL_CACHE_MAX_AGE", "0"),
        ]);
        let unlimited = unlimited.unwrap();
        assert_eq!((unlimited.capacity, unlimited.max_age), (None, None));
        let called = Settings::new().max_age(Duration::ZERO).any_age();
        let called = called.capacity(0).unlimited();
        assert_eq!(format!("{unlimited:?}"), format!("{called:?}"));
    }

    /// A directory may have any name; nothing else has a value that is no text.
    #[cfg(unix)]
    #[test]
    fn a_value_that_is_no_text_is_an_error_but_for_the_directory() {
        use std::os::unix::ffi::OsStringExt;

        let settings = |there: &'static str| {
            Settings::from_os(move |name| {
                let value = OsString::from_vec(b"/no\xfftext".to_vec());
                (name == there).then_some(value)
            })
        };
        let dir = settings("SDE_KERNEL_CACHE_DIR").unwrap().dir.unwrap();
        assert_eq!(dir.as_os_str().as_encoded_bytes(), b"/no\xfftext");
        for name in [
            "SDE_KERNEL_CACHE",
            "SDE_KERNEL_CACHE_MAX_SIZE",
            "SDE_KERNEL_CACHE_ORDER",
        ] {
            assert_eq!(settings(name).unwrap_err().name, name);
        }
    }

    #[test]
    fn a_value_that_is_not_understood_is_an_error_with_the_name() {
        for name in [
            "",
            "_CPU",
            "_MAX_SIZE",
            "_MAX_AGE",
            "_ORDER",
            "_WAIT",
            "_MIN_BINARY",
        ] {
            let name = format!("SDE_KERNEL_CACHE{name}");
            let error = settings(&[(&name, "perhaps")]).unwrap_err();
            assert_eq!((error.name, &*error.value), (name, "perhaps"));
        }
    }
}
