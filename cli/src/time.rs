//! Times as texts, in UTC, and back. Time zones are ignored: a store may be read elsewhere than it was written. Only
//! times to come are those of a clock on the wall.

use std::time::Duration;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SpanRelativeTo, Timestamp, ZonedDateTime};
pub use sde_table::time::{minute, of, of_nanos, text};

/// Parses a user's time: an age (`90s`, `15m`, `2h`, `3d`, `1w`), a day, or a day and
/// a time (UTC).
pub fn when(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = duration(text) {
        let now = Timestamp::now();
        return now.checked_sub(ago).map_err(|error| error.to_string());
    }
    let time = text.parse::<Timestamp>().or_else(|_| {
        let day = text.parse::<DateTime>()?;
        TimeZone::UTC.to_timestamp(day)
    });
    time.map_err(|_| {
        "it is no time: 2h ago is 2h; a day 2026-11-21; with a time in UTC 2026-11-21T16:00"
            .to_owned()
    })
}

/// Parses a time to come: `2h`, or a time of day (`18:00`) of today, or of tomorrow if it is over, in the local time zone.
pub fn ahead(text: &str) -> Result<Timestamp, String> {
    ahead_of(&ZonedDateTime::now(), text)
}

fn ahead_of(now: &ZonedDateTime, text: &str) -> Result<Timestamp, String> {
    // 18:00:00 is a duration too, and no person means that.
    if !text.contains(':')
        && let Ok(wait) = limit(text)
    {
        let at = now.timestamp().checked_add(wait);
        return at.map_err(|error| error.to_string());
    }
    let time = Time::strptime("%H:%M", text).map_err(|_| NO_TIME_AHEAD.to_owned())?;
    let on = |day: &ZonedDateTime| day.with().time(time).build();
    let at = on(now).and_then(|at| match at > *now {
        true => Ok(at),
        false => on(&now.tomorrow()?),
    });
    at.map(|at| at.timestamp())
        .map_err(|error| error.to_string())
}

const NO_TIME_AHEAD: &str =
    "it is no time: 18:00 is today, or tomorrow if it is over; 2h is in two hours";

/// A time to come, as a clock here will show it, with the day if it is not today: `18:00`.
pub fn local(at: Timestamp) -> String {
    let (at, now) = (
        at.to_zoned_datetime(TimeZone::system()),
        ZonedDateTime::now(),
    );
    let shown = match at.date() == now.date() {
        true => "%H:%M",
        false => "%F %H:%M",
    };
    at.strftime(shown).to_string()
}

/// `2h` as a duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let days = SpanRelativeTo::days_are_24_hours();
    let span = text.parse::<jiff::Span>();
    let duration = span.and_then(|span| span.to_duration(days)?.try_into());
    duration.map_err(|_| NO_TIME.to_owned())
}

/// A time after which something ends.
pub fn limit(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|limit| match limit.is_zero() {
        true => Err(NO_TIME.to_owned()),
        false => Ok(limit),
    })
}

const NO_TIME: &str = "it is no time: 30s, 10m, 2h, 3d or 1w";

/// The time in the middle; `None` of none.
pub fn median(times: &[Duration]) -> Option<Duration> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        let second = |text| when(text).map(|time| time.as_second());
        assert_eq!(second("1970-01-02"), Ok(86_400));
        for text in ["1970-01-02 01:30", "1970-01-02T01:30Z"] {
            assert_eq!(second(text), Ok(91_800), "{text}");
        }
        let ago = Timestamp::now().as_second() - second("2h").unwrap();
        assert!((7200..7300).contains(&ago), "{ago}");
        assert_eq!(duration("1w"), Ok(Duration::from_secs(7 * 86_400)));
        for wrong in [
            "",
            "h",
            "2x",
            "-2h",
            "2026-13-01",
            "2026-02-30",
            "1970-01-02 25:00",
        ] {
            assert!(when(wrong).is_err(), "{wrong}");
        }
        assert_eq!(limit("1ms"), Ok(Duration::from_millis(1)));
        assert!(limit("0s").is_err() && limit("0").is_err());
    }

    #[test]
    fn times_to_come() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now: ZonedDateTime = jiff::civil::date(2026, 2, 28)
            .at(17, 30, 0, 0)
            .to_zoned_datetime(zone)
            .unwrap();
        let second = |said| ahead_of(&now, said).map(text);
        let cases = [
            ("18:00", "2026-02-28 16:00:00"),
            ("17:30", "2026-03-01 15:30:00"),
            ("00:10", "2026-02-28 22:10:00"),
            ("90m", "2026-02-28 17:00:00"),
        ];
        for (said, at) in cases {
            assert_eq!(second(said), Ok(at.to_owned()), "{said}");
        }
        for wrong in ["", "25:00", "18", "0s", "18:00:00", "-1h", "tomorrow"] {
            assert!(ahead_of(&now, wrong).is_err(), "{wrong}");
        }
    }
}
