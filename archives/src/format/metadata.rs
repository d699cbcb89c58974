//! The bodies of frames, in CBOR.
//!
//! Thousands of entries share most of their metadata: the app, its code and settings, the machine, the names of
//! inputs and results. That is their [`Provenance`]. The body of an entry is an array; see `docs/store-format.md`,
//! section "An entry".
//!
//! Default elements at the end are left out, and readers skip unknown ones. The short values follow the array, up
//! to the end of the body.

use std::borrow::Cow;
use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ciborium::Value;
use sde::key::Scalar;
use sde::key::{Bare, Digest};
use sde::record::{
    AppId, AppSetup, Callee, CodeId, FailureRecord, Record, RecordHead, RunId, ValueSummary,
};
use sde::{Key, Tags};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cbor::metadata::{from_bytes, from_reader, push, to_bytes};

/// The metadata that many entries share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Provenance {
    pub(crate) app: Arc<str>,
    pub(crate) code: CodeId,
    pub(crate) id: AppId,
    #[serde(default)]
    pub(crate) setup: Arc<AppSetup>,
    #[serde(default, rename = "beneath", skip_serializing_if = "Vec::is_empty")]
    pub(crate) dependencies: Vec<Callee>,
    /// The first half of each entry's [`RunId`].
    pub(crate) process: u64,
    #[serde(default)]
    pub(crate) host: Arc<str>,
    #[serde(default)]
    pub(crate) target: Arc<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(crate) job: Arc<str>,
    #[serde(default)]
    pub(crate) inputs: Vec<InputKind>,
    #[serde(default)]
    pub(crate) results: Vec<ResultKind>,
    #[serde(skip)]
    pub(crate) shared: OnceLock<Arc<sde::record::Provenance>>,
}

/// An input's metadata, without its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputKind {
    pub(crate) name: Cow<'static, str>,
    /// The scalar type's [`Scalar::type_name`]; `None` for other types.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) scalar: Option<String>,
    /// The fields of a structure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<InputKind>,
}

/// A result's metadata, without its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultKind {
    pub(crate) name: Arc<str>,
    pub(crate) tags: Tags,
    /// `None` if it had no value to save.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<TypeInfo>,
}

/// The type of a stored value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TypeInfo {
    /// The Rust type's [`stored_name`](super::stored_name): values are not decoded as a type of another name.
    pub(crate) name: Arc<str>,
    /// The digest of the type's serde schema: values are not decoded as a type with another.
    pub(crate) schema: Digest,
}

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ValuePlace {
    /// In the body; with its length.
    Body(u64),
    /// In the payload; with its length and the digest of its bytes.
    Payload(u64, Digest),
}

impl ValuePlace {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Body(length) | Self::Payload(length, _) => *length,
        }
    }
}

/// The digest of a provenance.
pub(crate) type ProvenanceId = [u8; 16];

/// The provenance in an entry's body: its digest, or its bytes.
pub(crate) type ProvenanceRef<'a> = Result<ProvenanceId, &'a [u8]>;

/// The body of an entry after its provenance: an array whose last elements may be missing.
#[derive(Deserialize)]
pub(crate) struct EntryBody {
    number: u64,
    made: i64,
    took: u64,
    pub(crate) values: Vec<Option<ValuePlace>>,
    #[serde(default)]
    inputs: Vec<InputBody>,
    #[serde(default)]
    calls: Vec<(Arc<str>, Key)>,
    #[serde(default)]
    flags: u64,
    #[serde(default)]
    contents: Contents,
    #[serde(default)]
    thread: u32,
    #[serde(default)]
    pub(crate) failure: Option<Arc<FailureRecord>>,
}

/// For each result, the digests of its output files; empty if there are none.
pub(crate) type Contents = Vec<Vec<Digest>>;

/// One input of an entry: a scalar's short text and digest follow from its value.
enum InputBody {
    Scalar(Bare<'static>),
    /// With the fields of a structure.
    Summary(String, Digest, Vec<InputBody>),
}

const NONDETERMINISTIC: u64 = 1;
const ANEW: u64 = 2;
/// The most elements of the array.
const ELEMENTS: usize = 11;

/// Appends the body of an entry without its provenance; gives the number of elements.
pub(crate) fn entry_rest(
    to: &mut Vec<u8>,
    record: &Record,
    saved_at: u64,
    values: &[Option<ValuePlace>],
    contents: &Contents,
) -> Result<u8, String> {
    push(to, &record.run.number)?;
    push(to, &nanos_after(record.made_at, saved_at))?;
    push(to, &nanos(record.took))?;
    push(to, &values)?;
    let flags =
        u64::from(record.nondeterministic) * NONDETERMINISTIC + u64::from(record.anew) * ANEW;
    let left_out = match () {
        () if record.failure.is_some() => 0,
        () if record.thread != 0 => 1,
        () if !contents.is_empty() => 2,
        () if flags != 0 => 3,
        () if !record.calls.is_empty() => 4,
        () if !record.inputs.is_empty() => 5,
        () => 6,
    };
    if left_out < 6 {
        push(to, &InputsToWrite(&record.inputs))?;
    }
    if left_out < 5 {
        push(to, &record.calls)?;
    }
    if left_out < 4 {
        push(to, &flags)?;
    }
    if left_out < 3 {
        push(to, contents)?;
    }
    if left_out < 2 {
        push(to, &record.thread)?;
    }
    if left_out < 1 {
        push(to, &record.failure)?;
    }
    Ok((ELEMENTS - left_out) as u8)
}

/// Splits an entry's body: the number of its elements, its provenance, and the rest.
pub(crate) fn split_entry(content: &[u8]) -> Option<(u8, ProvenanceRef<'_>, &[u8])> {
    let (head, content) = content.split_first()?;
    let elements = head
        .checked_sub(array_head(0))
        .filter(|count| *count < 24)?;
    if let Some((id, rest)) = content.split_first_chunk::<17>()
        && id[0] == SHARED
    {
        let (_, id) = id.split_last_chunk()?;
        return Some((elements, Ok(*id), rest));
    }
    let (_, rest) = from_bytes::<de::IgnoredAny>(content).ok()?;
    let (provenance, rest) = content.split_at(content.len() - rest.len());
    Some((elements, Err(provenance), rest))
}

/// The provenance in an entry's own body.
pub(crate) fn inline_provenance(content: &[u8]) -> Option<&[u8]> {
    split_entry(content).and_then(|(_, provenance, _)| provenance.err())
}

/// The first byte of a CBOR byte string of 16 bytes.
const SHARED: u8 = 0x50;

/// The first byte of a CBOR array of `elements` elements.
pub(crate) fn array_head(elements: u8) -> u8 {
    0x80 | elements
}

/// A provenance's digest as a body has it.
pub(crate) fn reference(id: &ProvenanceId) -> [u8; 17] {
    let mut bytes = [SHARED; 17];
    bytes[1..].copy_from_slice(id);
    bytes
}

impl EntryBody {
    /// Reads a body without its values; gives its provenance as well.
    pub(crate) fn read(content: &[u8]) -> Result<(ProvenanceRef<'_>, Self), String> {
        let (elements, provenance, rest) = split_entry(content).ok_or("it is no array")?;
        let head = [array_head(elements.saturating_sub(1))];
        let InOrder(body) = from_reader(head.chain(rest))?;
        Ok((provenance, body))
    }

    /// The record of the entry, from the key and time of saving of its frame.
    pub(crate) fn record(&self, of: &Provenance, key: Key, saved_at: u64) -> Record {
        let summary = |(input, kind): (&InputBody, &InputKind)| input.summary(kind);
        let (made_at, took) = (self.made_at(saved_at), Duration::from_nanos(self.took));
        let provenance = Arc::clone(of.shared());
        let mut head = RecordHead::new(provenance, key, self.run(of), made_at, took);
        head.calls = self.calls.as_slice().into();
        head.nondeterministic = self.flags & NONDETERMINISTIC != 0;
        head.anew = self.flags & ANEW != 0;
        head.thread = self.thread;
        let inputs = self.inputs.iter().zip(&of.inputs).map(summary);
        let mut record = Record::new(head, inputs.collect::<Arc<_>>());
        record.failure = self.failure.clone();
        record
    }

    /// The digests of a result's output files.
    pub(crate) fn contents_of(&self, result: usize) -> &[Digest] {
        self.contents.get(result).map_or(&[], Vec::as_slice)
    }

    /// The keys of all contents that the entry's output files need.
    pub(crate) fn contents(&self) -> impl Iterator<Item = Key> {
        let all = self.contents.iter().flatten();
        all.map(|digest| Key::from_bytes(*digest.as_bytes()))
    }

    pub(crate) fn run(&self, of: &Provenance) -> RunId {
        RunId::new(of.process, self.number)
    }

    pub(crate) fn made_at(&self, saved_at: u64) -> SystemTime {
        let made = i128::from(saved_at) + i128::from(self.made);
        let nanos = |nanos: i128| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let made = match made < 0 {
            true => UNIX_EPOCH.checked_sub(nanos(-made)),
            false => UNIX_EPOCH.checked_add(nanos(made)),
        };
        made.unwrap_or(UNIX_EPOCH)
    }
}

impl InputBody {
    fn summary(&self, kind: &InputKind) -> ValueSummary {
        let name = kind.name.clone();
        match self {
            Self::Summary(short, digest, fields) => {
                let mut summary = ValueSummary::new(name, short.clone(), *digest);
                let fields = fields.iter().zip(&kind.fields);
                summary.fields = fields.map(|(field, kind)| field.summary(kind)).collect();
                summary
            }
            Self::Scalar(plain) => match self.scalar(kind) {
                Some(scalar) => scalar.summary(name),
                // A type that only later releases know.
                None => ValueSummary::new(name, format!("{plain:?}"), Digest::from_bytes([0; 32])),
            },
        }
    }

    fn scalar(&self, kind: &InputKind) -> Option<Scalar> {
        let Self::Scalar(plain) = self else {
            return None;
        };
        match (kind.scalar.as_deref()?, plain) {
            // An `f32` is written as the `f64` of equal value.
            ("f32", Bare::F64(value)) => Some(Scalar::F32(*value as f32)),
            (name, plain) => Scalar::of(name, plain.clone()),
        }
    }
}

/// A duration as it is stored; one of more than 584 years is cut.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time from `saved_at` to `time`, in nanoseconds; negative if it was before.
fn nanos_after(time: SystemTime, saved_at: u64) -> i64 {
    let nanos = |since: Duration| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
    let time = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    };
    let after = time.saturating_sub(i128::from(saved_at));
    i64::try_from(after).unwrap_or(if after < 0 { i64::MIN } else { i64::MAX })
}

/// The body of a scratch state: app, type, and place of the value. A short value follows.
#[derive(Serialize, Deserialize)]
pub(crate) struct ScratchBody {
    pub(crate) app: Arc<str>,
    #[serde(rename = "type")]
    pub(crate) stored: TypeInfo,
    pub(crate) value: ValuePlace,
    /// Nanoseconds that the run had taken; earlier releases left it out.
    #[serde(default)]
    pub(crate) took: u64,
}

impl ScratchBody {
    pub(crate) fn read(content: &[u8]) -> Result<Self, String> {
        from_bytes(content).map(|(body, _)| body)
    }
}

impl Provenance {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        from_bytes(bytes).map(|(provenance, _)| provenance)
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        to_bytes(self)
    }

    /// The provenance that its entries' records share in memory.
    pub(crate) fn shared(&self) -> &Arc<sde::record::Provenance> {
        self.shared.get_or_init(|| {
            let (app, setup) = (Arc::clone(&self.app), Arc::clone(&self.setup));
            let mut made = sde::record::Provenance::new(app, self.code.clone(), self.id, setup);
            made.dependencies = self.dependencies.clone();
            made.host = Arc::clone(&self.host);
            made.target = Arc::clone(&self.target);
            made.job = Arc::clone(&self.job);
            Arc::new(made)
        })
    }
}

/// The key of a provenance's frame.
pub(crate) fn provenance_key(id: &ProvenanceId) -> Key {
    let mut key = [0; 32];
    key[..16].copy_from_slice(id);
    Key::from_bytes(key)
}

struct InputsToWrite<'a>(&'a [ValueSummary]);

impl Serialize for InputsToWrite<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(InputToWrite))
    }
}

struct InputToWrite<'a>(&'a ValueSummary);

impl Serialize for InputToWrite<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.scalar.as_ref().map(Scalar::bare) {
            None if self.0.fields.is_empty() => (&self.0.short, &self.0.digest).serialize(to),
            None => {
                let fields = InputsToWrite(&self.0.fields);
                (&self.0.short, &self.0.digest, fields).serialize(to)
            }
            // Converting a NaN to `f64` may lose bits.
            Some(Bare::F32(value)) if value.is_nan() => {
                to.serialize_bytes(&value.to_bits().to_be_bytes())
            }
            Some(plain) => plain.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for InputBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = || de::Error::custom("an input is no scalar, and no short text and digest");
        Ok(Self::Scalar(match Value::deserialize(from)? {
            Value::Bool(value) => Bare::Bool(value),
            Value::Integer(value) => match (value.try_into(), value.try_into()) {
                (Ok(value), _) => Bare::Unsigned(value),
                (_, Ok(value)) => Bare::Signed(value),
                _ => return Err(wrong()),
            },
            Value::Float(value) => Bare::F64(value),
            Value::Text(text) => Bare::Text(text.into()),
            Value::Bytes(bits) => {
                let bits = bits.try_into().map_err(|_| wrong())?;
                Bare::F32(f32::from_bits(u32::from_be_bytes(bits)))
            }
            other => {
                let Value::Array(mut parts) = other else {
                    return Err(wrong());
                };
                let fields = parts.drain(parts.len().min(2)..).next();
                let (short, digest) = Value::Array(parts).deserialized().map_err(|_| wrong())?;
                let fields = fields.map(|fields| fields.deserialized());
                let fields = fields.transpose().map_err(|_| wrong())?;
                return Ok(Self::Summary(short, digest, fields.unwrap_or_default()));
            }
        }))
    }
}

/// A body read from an array of elements in the order of its fields.
struct InOrder(EntryBody);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = InOrder;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the elements of an entry")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<InOrder, A::Error> {
                EntryBody::deserialize(SeqAccessDeserializer::new(seq)).map(InOrder)
            }
        }
        from.deserialize_seq(Elements)
    }
}
