//! Times as texts, in UTC: a store may be read elsewhere than it was written.

use std::time::SystemTime;

use jiff::Timestamp;

/// A time from a file; any value is accepted, since the file may be damaged.
pub fn of(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::MAX)
}

/// The time of nanoseconds since 1970.
pub fn of_nanos(nanos: u64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX)
}

/// `2026-11-21 16:42:07`.
pub fn text(time: Timestamp) -> String {
    time.strftime("%F %T").to_string()
}

/// `2026-11-21 16:42`, for tables.
pub fn minute(time: Timestamp) -> String {
    time.strftime("%F %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_is_shown() {
        assert_eq!(text(of_nanos(u64::MAX)), "2554-07-21 23:34:33");
        assert_eq!(minute(of(SystemTime::UNIX_EPOCH)), "1970-01-01 00:00");
    }
}
