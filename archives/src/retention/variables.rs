//! Limits as a person writes them: in the environment, or as options of a program.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Limits, Removal, Retention};

/// A limit that can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitError {
    /// The variable; with [`Retention::limit`] the name given.
    pub name: String,
    /// The variable's value.
    pub value: String,
    /// The form it must have.
    pub wanted: &'static str,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            value,
            wanted,
        } = self;
        write!(
            f,
            "{name} is {value:?}, and has to be {wanted}; before it may stand the name of an app, as in `app=`"
        )
    }
}

impl std::error::Error for LimitError {}

/// A limit: its name, the form of its values, and how it is set.
type Variable = (&'static str, &'static str, fn(&mut Limits, &str) -> bool);

const SIZE: &str = "a size, as 500M or 20GiB";

const VARIABLES: &[Variable] = &[
    ("CAPACITY", SIZE, |to, text| {
        set(&mut to.capacity, bytes(text))
    }),
    ("MAX_AGE", "an age, as 12h, 30d or 8w", |to, text| {
        set(&mut to.max_age, age(text))
    }),
    ("ORDER", "lru or fifo", |to, text| {
        set(&mut to.order, order(text))
    }),
    ("MIN_ENTRY", SIZE, |to, text| {
        set(&mut to.min_entry, bytes(text))
    }),
    ("MAX_ENTRY", SIZE, |to, text| {
        set(&mut to.max_entry, bytes(text))
    }),
    ("LIMIT_RESULTS", "1 or 0", |to, text| {
        set(
            &mut to.results,
            matches!(text, "0" | "1").then_some(text == "1"),
        )
    }),
];

impl Retention {
    /// The limits that the environment sets.
    ///
    /// | variable | as | method |
    /// |---|---|---|
    /// | `SDE_STORE_CAPACITY` | `50GiB` | [`capacity`](Self::capacity) |
    /// | `SDE_STORE_MAX_AGE` | `30d` | [`max_age`](Self::max_age) |
    /// | `SDE_STORE_ORDER` | `lru`, `fifo` | [`order`](Self::order) |
    /// | `SDE_STORE_MIN_ENTRY` | `1K` | [`min_entry`](Self::min_entry) |
    /// | `SDE_STORE_MAX_ENTRY` | `2G` | [`max_entry`](Self::max_entry) |
    /// | `SDE_STORE_LIMIT_RESULTS` | `1`, `0` | [`results`](Self::results) |
    ///
    /// A limit of one app has the app's name before it: `50GiB,render=5GiB`. Empty variables set nothing.
    /// [`StoreOptions::open`](crate::StoreOptions::open) reads these variables.
    ///
    /// ```
    /// let said = sde_archives::Retention::from_env()?;
    /// # let _ = said;
    /// # Ok::<(), sde_archives::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// If a value can't be parsed.
    pub fn from_env() -> Result<Self, LimitError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, LimitError> {
        let mut said = Self::new();
        for (limit, ..) in VARIABLES {
            let name = format!("SDE_STORE_{limit}");
            if let Some(text) = variable(&name).filter(|text| !text.is_empty()) {
                said = said
                    .limit(limit, &text.to_string_lossy())
                    .map_err(|error| LimitError { name, ..error })?;
            }
        }
        Ok(said)
    }

    /// Sets one limit from text, by the name of its [variable](Self::from_env) without `SDE_STORE_`: `CAPACITY`,
    /// `MAX_AGE`, `ORDER`, `MIN_ENTRY`, `MAX_ENTRY` or `LIMIT_RESULTS`. Sizes are in bytes, with K, M, G, T or P for
    /// powers of 1024; ages in s, m, h, d or w.
    ///
    /// ```
    /// use sde_archives::Retention;
    ///
    /// let retention = Retention::new().limit("CAPACITY", "50GiB,render=5GiB")?;
    /// let wrong = retention.limit("MAX_AGE", "perhaps").unwrap_err();
    /// assert_eq!(wrong.wanted, "an age, as 12h, 30d or 8w");
    /// # Ok::<(), sde_archives::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such limit, or the text can't be parsed.
    pub fn limit(mut self, name: &str, text: &str) -> Result<Self, LimitError> {
        let error = |wanted| LimitError {
            name: name.to_owned(),
            value: text.to_owned(),
            wanted,
        };
        let known = VARIABLES.iter().find(|(limit, ..)| *limit == name);
        let (_, wanted, set) = known.ok_or_else(|| error("a limit that there is"))?;
        for item in text.split(',').map(str::trim) {
            let (to, value) = match item.rsplit_once('=') {
                Some((app, value)) => (self.apps.entry(Arc::from(app.trim())).or_default(), value),
                None => (&mut self.all, item),
            };
            if !set(to, value.trim()) {
                return Err(error(wanted));
            }
        }
        Ok(self)
    }
}

fn set<T>(to: &mut Option<T>, value: Option<T>) -> bool {
    let is_known = value.is_some();
    *to = value;
    is_known
}

/// `20G` in bytes: units are powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let without_unit = text.strip_suffix("iB").or(text.strip_suffix('B'));
    let text = without_unit.unwrap_or(text).trim();
    let (number, unit) = match text.chars().last()? {
        digit if digit.is_ascii_digit() => (text, 1),
        letter => {
            let power = "KMGTP".find(letter.to_ascii_uppercase())? as u32 + 1;
            (text.strip_suffix(letter)?, 1024_u64.checked_pow(power)?)
        }
    };
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}

/// `30d` as a duration.
fn age(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
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

fn order(text: &str) -> Option<Removal> {
    match text {
        "lru" => Some(Removal::LeastRecentlyUsed),
        "fifo" => Some(Removal::FirstIn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(variables: &[(&str, &str)]) -> Result<Retention, LimitError> {
        Retention::from_variables(|name| {
            let mut all = variables.iter();
            let found = all.find(|(known, _)| name.strip_prefix("SDE_STORE_") == Some(*known));
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn variables_say_what_the_methods_say() {
        let variables = said(&[
            ("CAPACITY", "50GiB, render=5G"),
            ("MAX_AGE", "30d"),
            ("ORDER", "fifo,render=lru"),
            ("MIN_ENTRY", "1k"),
            ("MAX_ENTRY", ""),
            ("LIMIT_RESULTS", "render=1"),
        ]);
        let render = Retention::new()
            .capacity(5 << 30)
            .order(Removal::LeastRecentlyUsed);
        let methods = Retention::new()
            .capacity(50 << 30)
            .max_age(Duration::from_secs(30 * 86_400))
            .order(Removal::FirstIn)
            .min_entry(1024)
            .app("render", render.results());
        let variables = variables.unwrap();
        assert_eq!((variables.all, variables.apps), (methods.all, methods.apps));
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_the_name() {
        for (limit, ..) in VARIABLES {
            let error = said(&[(limit, "app=perhaps")]).unwrap_err();
            assert_eq!(error.name, format!("SDE_STORE_{limit}"));
        }
    }

    #[test]
    fn the_program_comes_before_the_environment() {
        let program = Retention::new()
            .capacity(1)
            .app("a", Retention::new().capacity(2));
        let both = program.or(said(&[("CAPACITY", "3,a=4,b=5"), ("MAX_AGE", "1s")]).unwrap());
        let of = |app| both.apps[app].capacity;
        assert_eq!(
            (both.all.capacity, of("a"), of("b")),
            (Some(1), Some(2), Some(5))
        );
        assert_eq!(both.all.max_age, Some(Duration::from_secs(1)));
    }

    #[test]
    fn sizes_as_people_write_them() {
        for (text, size) in [
            ("0", 0),
            ("17", 17),
            ("2k", 2048),
            ("3MiB", 3 << 20),
            ("20G", 20 << 30),
            ("5 B", 5),
        ] {
            assert_eq!(bytes(text), Some(size), "{text}");
        }
        for wrong in ["", "G", "-1", "1.5G", "99999999P", "3X"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
