//! Values as JSON.

use sde::bulk::AxisOrder;
use sde_archives::inspect::Decoded;
use serde_json::{Map, Value as Json, json};

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
        Decoded::Map(pairs) => pairs
            .iter()
            .map(|(key, item)| (name(key), self::value(item)))
            .collect::<Map<_, _>>()
            .into(),
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
