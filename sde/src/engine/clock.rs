//! The time of day, as it is written down.
//!
//! A machine whose clock was never set is in some year before 1970. Such a time has no form
//! that records can be saved in, and a result must not be lost for want of a date.

use std::time::SystemTime;

/// The time of day, not before 1970.
pub(super) fn now() -> SystemTime {
    writable(SystemTime::now())
}

fn writable(time: SystemTime) -> SystemTime {
    time.max(SystemTime::UNIX_EPOCH)
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
