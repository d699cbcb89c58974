//! Records and values as the JSON of `--json`.

use sde::Tags;
use sde::record::Record;
pub use sde_table::json::{name, number, value};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

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
