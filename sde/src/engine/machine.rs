//! On which machine this is.

use std::sync::{Arc, OnceLock};

/// Its name; empty if it has none.
pub(super) fn host() -> Arc<str> {
    static HOST: OnceLock<Arc<str>> = OnceLock::new();
    Arc::clone(HOST.get_or_init(|| name().into()))
}

#[cfg(unix)]
fn name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Its processor architecture and operating system.
pub(super) fn target() -> Arc<str> {
    static TARGET: OnceLock<Arc<str>> = OnceLock::new();
    let name = || format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS).into();
    Arc::clone(TARGET.get_or_init(name))
}
