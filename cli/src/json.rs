//! What `--json` writes of records, damage and values.

use sde::bulk::{NumberType, Order};
use sde::{AppSetup, Callee, CodeId, Difference, Record, Tags, ValueSummary};
use sde_archives::Class;
use sde_archives::inspect::{Damage, Saved, Value};
use serde_json::{Map, Value as Json, json};

use crate::time;

pub fn class(class: Class) -> &'static str {
    match class {
        Class::Result => "result",
        Class::Intermediate => "intermediate",
        Class::Scratch => "scratch",
    }
}

pub fn tags(tags: Tags) -> Vec<&'static str> {
    tags.iter().map(sde::Tag::name).collect()
}

pub fn code(code: &CodeId) -> Json {
    match code {
        CodeId::Version(version) => json!({ "version": version }),
        CodeId::Source(digest) => json!({ "source": digest.to_string() }),
    }
}

fn values(values: &[ValueSummary]) -> Json {
    let one = |value: &ValueSummary| json!({ "name": value.name, "short": value.short, "digest": value.digest.to_string() });
    values.iter().map(one).collect()
}

fn setup(setup: &AppSetup) -> Json {
    let slots = setup.slots.iter().map(|slot| {
        json!({
            "slot": slot.slot,
            "app": slot.app,
            "code": code(&slot.code),
            "id": slot.id.to_string(),
            "setup": self::setup(&slot.setup),
        })
    });
    json!({
        "short": setup.short,
        "helpers": values(&setup.helpers),
        "source": setup.source.map(|digest| digest.to_string()),
        "fields": values(&setup.fields),
        "parameters": values(&setup.parameters),
        "transparent": values(&setup.transparent),
        "slots": slots.collect::<Vec<_>>(),
        "authors": setup.authors,
        "citations": setup.citations,
    })
}

pub fn record(record: &Record) -> Json {
    let calls = record.calls.iter();
    let calls = calls.map(|(app, key)| json!({ "app": app, "key": key.to_string() }));
    json!({
        "app": record.app,
        "code": code(&record.code),
        "id": record.id.to_string(),
        "key": record.key.to_string(),
        "run": record.run.to_string(),
        "inputs": values(&record.inputs),
        "setup": setup(&record.setup),
        "calls": calls.collect::<Vec<_>>(),
        "beneath": record.dependencies.iter().map(callee).collect::<Vec<_>>(),
        "nondeterministic": record.nondeterministic,
        "made_at": time::iso(record.made_at),
        "seconds": record.took.as_secs_f64(),
        "thread": record.thread,
        "host": record.host,
        "target": record.target,
    })
}

fn callee(callee: &Callee) -> Json {
    match callee {
        Callee::Code { app, code: of, .. } => json!({ "app": app, "code": code(of) }),
        Callee::Named { name, id } => json!({ "name": name, "id": id.to_string() }),
        Callee::Absent { name } => json!({ "absent": name }),
    }
}

pub fn saved(saved: &Saved) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(saved.name));
    object.insert("tags".to_owned(), json!(tags(saved.tags)));
    if let Some(payload) = &saved.payload {
        let place = payload.place();
        object.insert("type".to_owned(), json!(payload.type_name()));
        object.insert("bytes".to_owned(), json!(payload.length()));
        object.insert("checksum".to_owned(), json!(payload.checksum().to_string()));
        object.insert("file".to_owned(), json!(payload.path()));
        object.insert("from".to_owned(), json!(place.start));
        object.insert("to".to_owned(), json!(place.end));
    }
    object
}

pub fn damage(damage: &Damage) -> Json {
    json!({
        "file": damage.path,
        "from": damage.place.start,
        "to": damage.place.end,
        "why": damage.why,
        "key": damage.key.map(|key| key.to_string()),
    })
}

pub fn difference(difference: &Difference) -> Json {
    json!({
        "slots": difference.slots,
        "part": difference.part.kind(),
        "name": difference.part.name(),
        "earlier": difference.earlier,
        "later": difference.later,
    })
}

/// A value as JSON. What JSON has no number for is a text: `NaN`, `inf`, `-inf`, and integers of
/// more than 64 bits. Bytes are a list of numbers; an array of numbers with more than one dimension
/// is an object with `shape`, `order` and `data`.
pub fn value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => json!(truth),
        Value::Integer(integer) => self::integer(*integer),
        Value::Large(integer) => json!(integer.to_string()),
        Value::Float(number) => float(*number),
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!(bytes),
        Value::List(items) => items.iter().map(self::value).collect(),
        Value::Map(pairs) => pairs
            .iter()
            .map(|(key, item)| (name(key), self::value(item)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Numbers(numbers, bytes) => {
            let data: Json = bytes
                .chunks_exact(numbers.kind.size())
                .map(|bytes| number(numbers.kind, bytes))
                .collect();
            if numbers.lengths.len() == 1 {
                return data;
            }
            let order = match numbers.order {
                Order::Columns => "columns",
                _ => "rows",
            };
            json!({ "shape": numbers.lengths, "order": order, "data": data })
        }
        Value::Tagged(tag, inner) => json!({ "tag": tag, "value": self::value(inner) }),
        _ => Json::Null,
    }
}

/// The key of a map as JSON has it: a text.
pub fn name(key: &Value) -> String {
    match key {
        Value::Text(text) => text.clone(),
        other => value(other).to_string(),
    }
}

fn integer(integer: i128) -> Json {
    match (i64::try_from(integer), u64::try_from(integer)) {
        (Ok(small), _) => json!(small),
        (_, Ok(large)) => json!(large),
        _ => json!(integer.to_string()),
    }
}

fn float(number: f64) -> Json {
    match number.is_finite() {
        true => json!(number),
        false => json!(number.to_string()),
    }
}

fn number(kind: NumberType, bytes: &[u8]) -> Json {
    macro_rules! of {
        ($type:ty) => {
            bytes
                .try_into()
                .map(<$type>::from_le_bytes)
                .unwrap_or_default()
        };
    }
    match kind {
        NumberType::U8 => json!(of!(u8)),
        NumberType::U16 => json!(of!(u16)),
        NumberType::U32 => json!(of!(u32)),
        NumberType::U64 => json!(of!(u64)),
        NumberType::I8 => json!(of!(i8)),
        NumberType::I16 => json!(of!(i16)),
        NumberType::I32 => json!(of!(i32)),
        NumberType::I64 => json!(of!(i64)),
        NumberType::F32 => {
            // The shortest decimal that is this number, not the one of its 64 bits.
            let number = of!(f32);
            let text = number.to_string();
            text.parse().map_or_else(|_| json!(text), float)
        }
        NumberType::F64 => float(of!(f64)),
        _ => Json::Null,
    }
}
