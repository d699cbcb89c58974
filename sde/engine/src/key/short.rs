//! Short texts for people: each shows an input in one line.
//!
//! They explain a miss ("basis: \"STO-3G\" -> \"6-31G*\"") and are kept in the record of each run, so
//! they are bounded, whatever the value's size, and hold no control character, wherever the value
//! came from.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::commitment::commit;
use super::digest::Digest;
use super::fingerprint::Fingerprint;
use super::scalar::Scalar;

/// The longest short text, in characters.
const LIMIT: usize = 80;

/// How deep fields within fields are kept.
const DEPTH: u8 = 4;

/// The most fields of one structure that are kept.
const FIELDS: usize = 64;

/// Receives a short text, and cuts it off where it gets long.
///
/// Control characters come out as `\u{..}` escapes.
#[derive(Debug, Default)]
pub struct Short {
    text: String,
    /// At the limit nothing more fits.
    characters: usize,
    /// The fields of the value itself, if they are asked for.
    fields: Option<WantedFields>,
}

#[derive(Debug)]
struct WantedFields {
    found: Vec<ValueSummary>,
    /// How deep fields within them are wanted.
    depth: u8,
    /// Whether those that are no scalars get digests too: each is encoded for it.
    with_digests: bool,
}

/// An input of a run, or a field or parameter of its app, as the run's record keeps it to explain misses.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ValueSummary {
    /// The field's name.
    pub name: Cow<'static, str>,
    /// The value as text, of about eighty characters at most.
    pub short: String,
    /// The digest of its encoding; zeros if it could no longer be encoded, and of a field of an input that is no scalar.
    pub digest: Digest,
    /// The value itself, if it is a number, a boolean, a character or a short text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalar: Option<Scalar>,
    /// The fields, of a value that [describes](Fingerprint::describe) itself as a structure, to a depth of four: of an input
    /// those that are scalars, names of variants, or have such. If it is a variant of an enum, the first has no name: it is the variant's.
    #[serde(default, skip_serializing_if = "<[ValueSummary]>::is_empty")]
    pub fields: Box<[ValueSummary]>,
}

impl ValueSummary {
    /// A value that is no [`Scalar`], as text and by the digest of its encoding.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        short: impl Into<String>,
        digest: Digest,
    ) -> Self {
        Self {
            name: name.into(),
            short: short.into(),
            digest,
            scalar: None,
            fields: Box::default(),
        }
    }
}

impl Short {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The short text of a value, and its fields, if it describes itself as a structure.
    pub(crate) fn with_fields<T: Fingerprint + ?Sized>(
        value: &T,
        with_digests: bool,
    ) -> (String, Vec<ValueSummary>) {
        Self::to_depth(DEPTH, with_digests, |short| value.describe(short))
    }

    fn to_depth(
        depth: u8,
        with_digests: bool,
        describe: impl FnOnce(&mut Self),
    ) -> (String, Vec<ValueSummary>) {
        let wanted = WantedFields {
            found: Vec::new(),
            depth,
            with_digests,
        };
        let mut short = Self {
            fields: (depth > 0).then_some(wanted),
            ..Self::default()
        };
        describe(&mut short);
        (
            short.text,
            short.fields.map(|fields| fields.found).unwrap_or_default(),
        )
    }

    /// Whether nothing more fits: a long value can stop describing itself.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.characters == LIMIT
    }

    /// Writes anything that can be shown, as `write!` would.
    pub fn show(&mut self, value: impl fmt::Display) {
        // An error says only that the text is full.
        let _ = write!(self, "{value}");
    }

    /// Writes a text in quotation marks.
    pub fn quoted(&mut self, text: &str) {
        self.show('"');
        self.show(text);
        self.show('"');
    }

    /// Writes the name of a type without its path: for people, never part of a key.
    pub fn type_name<T: ?Sized>(&mut self) {
        let mut rest = std::any::type_name::<T>();
        // Each path loses its modules: the words that end in `::`.
        while let Some(at) = rest.find("::") {
            let path = rest[..at]
                .rfind(|c: char| !c.is_alphanumeric() && c != '_')
                .map_or(0, |i| i + 1);
            self.show(&rest[..path]);
            rest = &rest[at + 2..];
        }
        self.show(rest);
    }

    /// Writes elements with commas between, as far as they fit.
    pub fn list<'x, T: Fingerprint + ?Sized + 'x>(
        &mut self,
        items: impl IntoIterator<Item = &'x T>,
    ) {
        for (index, value) in items.into_iter().enumerate() {
            if self.is_full() {
                return;
            }
            if index > 0 {
                self.show(", ");
            }
            value.describe(self);
        }
    }

    /// Writes a variant of an enum, as [`structure`](Self::structure) does a structure. The variants of one enum may have
    /// equal fields, so its name is kept beside them.
    pub fn variant(&mut self, name: &str, fields: &[(&str, &dyn Fingerprint)]) {
        // Not of a nested value. Without fields the text is the name.
        if let Some(wanted) = self.fields.as_mut().filter(|_| self.text.is_empty())
            && !fields.is_empty()
        {
            wanted.found.push(field("", &name));
        }
        self.structure(name, fields);
    }

    /// Writes a structure: `Name { field: value, .. }`, as far as it fits.
    pub fn structure(&mut self, name: &str, fields: &[(&str, &dyn Fingerprint)]) {
        // Not the fields of a nested value.
        if let Some(wanted) = self.fields.as_mut().filter(|_| self.text.is_empty()) {
            let (depth, with_digests) = (wanted.depth - 1, wanted.with_digests);
            let fields = fields.iter().take(FIELDS);
            let fields =
                fields.map(|(name, value)| nested((*name).to_owned(), *value, depth, with_digests));
            // A long value is seen in the text of the whole: a record stays in memory as long as its entry. A variant without
            // fields is a name.
            let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
            let tells = |one: &ValueSummary| {
                one.scalar.is_some() || !one.fields.is_empty() || is_name(&one.short)
            };
            wanted
                .found
                .extend(fields.filter(|one| with_digests || tells(one)));
        }
        self.show(name);
        if fields.is_empty() {
            return;
        }
        self.show(" { ");
        for (index, (field, value)) in fields.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if index > 0 {
                self.show(", ");
            }
            self.show(field);
            self.show(": ");
            value.describe(self);
        }
        self.show(" }");
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, character: char) -> fmt::Result {
        if self.is_full() {
            return Err(fmt::Error);
        }
        self.characters += 1;
        if self.is_full() {
            self.text.push('…');
            return Err(fmt::Error);
        }
        self.text.push(character);
        Ok(())
    }
}

pub(crate) fn field(name: impl Into<Cow<'static, str>>, value: &dyn Fingerprint) -> ValueSummary {
    let digest = commit(value).map(|commitment| commitment.digest());
    ValueSummary {
        name: name.into(),
        short: describe(value),
        digest: digest.unwrap_or(Digest::from_bytes([0; 32])),
        scalar: value.to_scalar(),
        fields: Box::default(),
    }
}

/// A field that may have fields. Large values are not encoded once more, unless their digests are asked for.
fn nested(name: String, value: &dyn Fingerprint, depth: u8, with_digests: bool) -> ValueSummary {
    let scalar = value.to_scalar();
    if scalar.is_some() {
        return field(name, value);
    }
    let (short, fields) = Short::to_depth(depth, with_digests, |short| value.describe(short));
    let digest = with_digests.then(|| commit(value)).and_then(Result::ok);
    let digest = digest.map(|commitment| commitment.digest());
    ValueSummary {
        name: name.into(),
        short,
        digest: digest.unwrap_or(Digest::from_bytes([0; 32])),
        scalar,
        fields: fields.into(),
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if is_unprintable(character) {
                for escaped in character.escape_unicode() {
                    self.push(escaped)?;
                }
            } else {
                self.push(character)?;
            }
        }
        Ok(())
    }
}

/// Control characters, and the marks that reorder or hide the text around them.
fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The short text of a value: at most 80 characters, one line, no control characters.
///
/// ```
/// use sde::key::describe;
/// assert_eq!(describe(&2.5), "2.5");
/// assert_eq!(describe("6-31G*"), "\"6-31G*\"");
/// assert_eq!(describe(&vec![1.0, 2.0]), "[f64; 2] 1.0, 2.0");
/// ```
#[must_use]
pub fn describe<T: Fingerprint + ?Sized>(value: &T) -> String {
    let mut out = Short::new();
    value.describe(&mut out);
    out.into_text()
}
