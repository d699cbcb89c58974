//! When and where a computation is made, as records say it.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// The time of day, not before 1970: a machine whose clock was never set is in some year before that. Such
/// a time has no form that records can be saved in, and a result must not be lost for want of a date.
pub(super) fn now() -> SystemTime {
    writable(SystemTime::now())
}

fn writable(time: SystemTime) -> SystemTime {
    time.max(SystemTime::UNIX_EPOCH)
}

/// The machine's name; empty if it has none.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn before_1970_is_1970() {
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(writable(early), SystemTime::UNIX_EPOCH);
        let late = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        assert_eq!(writable(late), late);
    }
}
