//! Records and values as the JSON of `--json`.

use sde::Tags;
use sde::bulk::AxisOrder;
use sde::record::Record;
use sde_archives::inspect::Decoded;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::time;

pub fn tags(tags: Tags) -> Vec<&'static str> {
    tags.iter().map(sde::Tag::name).collect()
}

/// A whole record.
pub fn record(record: &Record) -> Json {
    let mut json = tidy(record);
    json["run"] = json!(record.run.to_string());
    json["made_at"] = json!(time::of(record.made_at));
    json
}

/// A part of a record as serde shows it, with lower-case names of variants, durations in seconds, and texts
/// in place of the scalars they are made of. It must have no maps: their keys would change.
pub fn tidy(part: &impl Serialize) -> Json {
    fn tidied(json: Json) -> Json {
        match json {
            Json::Array(items) => items.into_iter().map(tidied).collect(),
            Json::Object(members) => match (members.get("secs"), members.get("nanos")) {
                (Some(seconds), Some(nanos)) => {
                    let number = |of: &Json| of.as_f64().unwrap_or_default();
                    json!(number(seconds) + number(nanos) / 1e9)
                }
                _ => members
                    .into_iter()
                    .filter(|(name, _)| name != "scalar")
                    .map(|(name, member)| (name.to_lowercase(), tidied(member)))
                    .collect(),
            },
            plain => plain,
        }
    }
    tidied(serde_json::to_value(part).unwrap_or_default())
}

/// [`tidy`] as a field's serializer.
pub fn tidied<S: Serializer>(part: &impl Serialize, to: S) -> Result<S::Ok, S::Error> {
    tidy(part).serialize(to)
}

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
