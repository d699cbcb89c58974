//! Values as JSON.

use sde::bulk::AxisOrder;
use sde_archives::inspect::Decoded;
use serde_json::{Map, Value as Json, json};

use crate::python;

/// A value as JSON. Numbers without a JSON form are texts: `NaN`, `inf`, `-inf`, and integers of
/// more than 64 bits. Bytes are a list of numbers; an array of numbers with more than one dimension
/// is an object with `shape`, `order` and `data`.
pub fn value(value: &Decoded) -> Json {
    match value {
        Decoded::Null => Json::Null,
        Decoded::Bool(truth) => json!(truth),
        Decoded::Integer(integer) => number(integer.to_string()),
        Decoded::Large(integer) => json!(integer.to_string()),
        Decoded::Float(float) => number(format!("{float:?}")),
        Decoded::Text(text) => json!(text),
        Decoded::Bytes(bytes) => json!(bytes),
        Decoded::List(items) => items.iter().map(self::value).collect(),
        Decoded::Map(pairs) => of_python(pairs).unwrap_or_else(|| {
            let pairs = pairs.iter();
            object(pairs.map(|(key, item)| (key, item)))
        }),
        Decoded::Numbers(numbers, bytes) => {
            let data: Json = bytes
                .chunks_exact(numbers.kind.size())
                .map(|bytes| number(numbers.text(bytes)))
                .collect();
            if numbers.lengths.len() == 1 {
                return data;
            }
            let order = match numbers.order {
                AxisOrder::Columns => "columns",
                _ => "rows",
            };
            json!({ "shape": numbers.lengths, "order": order, "data": data })
        }
        Decoded::Tagged(tag, inner) => json!({ "tag": tag, "value": self::value(inner) }),
        _ => Json::Null,
    }
}

fn object<'a>(pairs: impl Iterator<Item = (&'a Decoded, &'a Decoded)>) -> Json {
    let members = pairs.map(|(key, item)| (name(key), value(item)));
    members.collect::<Map<_, _>>().into()
}

/// A container or a number of Python; `None` for what JSON has no form of.
fn of_python(fields: &[(Decoded, Decoded)]) -> Option<Json> {
    let (kind, of) = python::tagged(fields)?;
    if let Some(pairs) = python::pairs(kind, of) {
        // Two keys may have one text, as 1 and "1".
        let is_text = |(key, _): &(&Decoded, &Decoded)| matches!(key, Decoded::Text(_));
        return pairs.iter().all(is_text).then(|| object(pairs.into_iter()));
    }
    match python::items(kind, of) {
        Some(items) => Some(items.iter().map(value).collect()),
        None => python::scalar(kind, of).as_ref().map(value),
    }
}

/// The key of a map as text, as JSON needs it.
pub fn name(key: &Decoded) -> String {
    match key {
        Decoded::Text(text) => text.clone(),
        other => value(other).to_string(),
    }
}

/// A number as Rust writes it, as JSON; a text if JSON has no such number.
pub fn number(text: String) -> Json {
    let integer = || text.parse().map(|integer: u64| json!(integer));
    let integer = integer().or_else(|_| text.parse().map(|integer: i64| json!(integer)));
    // An integer of more than 64 bits would lose some as a float.
    let float = text.parse().ok().filter(|_| text.contains(['.', 'e']));
    match (integer, float) {
        (Ok(integer), _) => integer,
        (_, Some(float)) if f64::is_finite(float) => json!(float),
        _ => json!(text),
    }
}
