//! A part of a result: `result.log` is the field `log` of `result`.

use sde_archives::inspect::{Decoded, NamedValue};

use crate::failure::Failure;
use crate::json;

/// The result that a name begins with, and the path of the field in it: a result that is called so has none.
pub fn split<'a>(results: &[NamedValue], name: &'a str) -> (&'a str, Option<&'a str>) {
    let is_result = |name: &str| results.iter().any(|one| one.name == name);
    let dots = name.rmatch_indices('.');
    let mut parts = dots.map(|(at, _)| (&name[..at], Some(&name[at + 1..])));
    match is_result(name) {
        true => (name, None),
        false => parts
            .find(|(result, _)| is_result(result))
            .unwrap_or((name, None)),
    }
}

/// The part at a path of names and numbers, as the columns of `sde table` have it.
pub fn part(value: Decoded, path: &str) -> Result<Decoded, Failure> {
    let named: Vec<(String, Decoded)> = match value {
        Decoded::Map(fields) => {
            let named = fields.into_iter();
            named
                .map(|(key, value)| (json::name(&key), value))
                .collect()
        }
        Decoded::List(items) => {
            let numbered = items.into_iter().enumerate();
            numbered.map(|(at, item)| (at.to_string(), item)).collect()
        }
        _ => {
            let why = format!("there is no part {path:?} in it: it is no struct, map or list");
            return Err(Failure::told(why));
        }
    };
    let rest_of = |name: &str| match path.strip_prefix(name)? {
        "" => Some(""),
        rest => rest.strip_prefix('.'),
    };
    let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
    for (name, value) in named {
        match rest_of(&name) {
            Some("") => return Ok(value),
            Some(rest) => return part(value, rest),
            None => {}
        }
    }
    let some: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
    Err(Failure::told(format!(
        "there is no part {path:?} in it; it has: {}",
        some.join(", ")
    )))
}
