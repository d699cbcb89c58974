//! Times as texts, in UTC, and back. Nobody's time zone is asked for: a store is read where it
//! was not written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;

/// `2026-11-21 16:42:07`.
pub fn text(time: SystemTime) -> String {
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
    };
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let second = second % 60;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// The same of nanoseconds since 1970.
pub fn of_nanos(nanos: u64) -> String {
    text(UNIX_EPOCH + Duration::from_nanos(nanos))
}

/// For JSON: `2026-11-21T16:42:07Z`.
pub fn iso(time: SystemTime) -> String {
    format!("{}Z", text(time).replace(' ', "T"))
}

/// The same of nanoseconds since 1970.
pub fn iso_of_nanos(nanos: u64) -> String {
    iso(UNIX_EPOCH + Duration::from_nanos(nanos))
}

/// Reads what a person writes: how long ago (`90s`, `15m`, `2h`, `3d`, `1w`), a day, or a day and
/// a time (UTC).
pub fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    if let Some(ago) = ago(text) {
        return now.checked_sub(ago);
    }
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, time.trim_end_matches('Z')),
        None => (text, "00:00:00"),
    };
    let [year, month, day] = numbers(day, '-')?;
    let time = if time.matches(':').count() == 1 {
        format!("{time}:00")
    } else {
        time.to_owned()
    };
    let [hour, minute, second] = numbers(&time, ':')?;
    let is_date =
        (1..=12).contains(&month) && (1..=31).contains(&day) && (1970..=9999).contains(&year);
    let is_time = hour < 24 && minute < 60 && second < 60;
    if !is_date || !is_time {
        return None;
    }
    let days = days(year, month, day);
    // A day that this month does not have.
    if date(days) != (year, month, day) {
        return None;
    }
    let seconds = days * DAY + hour * 3600 + minute * 60 + second;
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// `2h` as a duration.
pub fn ago(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let parts: Vec<i64> = text
        .split(between)
        .map(|part| part.parse::<u32>().ok().map(i64::from))
        .collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// The date of a day, counted from 1970-01-01, in the Gregorian calendar: years are counted from
/// March, so that the day that is sometimes there comes last.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let in_era = days.rem_euclid(146_097);
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let in_era = year.rem_euclid(400);
    let from_march = (month + 9) % 12;
    let in_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn known_times() {
        assert_eq!(text(at(0)), "1970-01-01 00:00:00");
        assert_eq!(text(at(951_782_400)), "2000-02-29 00:00:00");
        assert_eq!(text(at(1_795_279_327)), "2026-11-21 16:42:07");
        assert_eq!(iso(at(0)), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn each_day_comes_back() {
        for day in 0..100_000 {
            let time = at(day * 86_400 + 4000);
            assert_eq!(parse(&text(time), at(0)), Some(time));
            assert_eq!(parse(&iso(time), at(0)), Some(time));
        }
    }

    #[test]
    fn what_people_write() {
        let now = at(1_000_000);
        assert_eq!(parse("2h", now), Some(at(1_000_000 - 7200)));
        assert_eq!(parse("1970-01-02", now), Some(at(86_400)));
        assert_eq!(parse("1970-01-02 01:30", now), Some(at(91_800)));
        for wrong in [
            "",
            "h",
            "2x",
            "2026-13-01",
            "2026-02-30",
            "1970-01-02 25:00",
            "99999999999999999999d",
        ] {
            assert_eq!(parse(wrong, now), None, "{wrong}");
        }
    }
}
