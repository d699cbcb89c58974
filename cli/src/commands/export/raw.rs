//! A result as plain bytes: the content of an output file, an array of bytes, a text.

use std::io::Write;

use sde::bulk::NumberType;
use sde::key::Digest;
use sde_archives::inspect::{Decoded, NamedValue, Snapshot, StoredValue};

use crate::failure::Failure;
use crate::file;
use sde_table::runs::{Contents, FileContent, named_files};

/// The bytes to write.
pub enum Raw {
    /// The bytes of a payload, from an offset on.
    Stored(StoredValue, u64),
    Held(Vec<u8>),
}

impl Raw {
    /// The bytes of one result; of several output files the one with this number, from 1 on, or this name.
    pub fn of(
        store: &mut Snapshot,
        mut results: Vec<NamedValue>,
        file: Option<&str>,
        limit: u64,
    ) -> Result<Self, Failure> {
        if results.iter().any(|saved| !saved.contents.is_empty()) {
            results.retain(|saved| !saved.contents.is_empty());
        }
        let (Some(result), [] | [_]) = (results.first(), &results[..]) else {
            let names: Vec<&str> = results.iter().map(|saved| &*saved.name).collect();
            let names = names.join(", ");
            let why = format!("one result is written raw, there are several: {names}; name one");
            return Err(Failure::told(why));
        };
        let named = file.and_then(|name| {
            let files = named_files(&result.payload.as_ref()?.value(limit).ok()?)?;
            files.get(name).copied()
        });
        match named {
            Some(empty) if empty.length == 0 => return Ok(Self::Held(Vec::new())),
            Some(file) => return content(store, file.digest),
            None => {}
        }
        let number = file.map(|file| file.parse().unwrap_or(0));
        match (&result.payload, &result.contents[..], number) {
            (Some(payload), [], None) => Self::value(payload, limit),
            (_, [], _) => Err(Failure::told("it has no output files; leave out --file")),
            (_, [only], None | Some(1)) => content(store, *only),
            (_, files, Some(number)) if (1..=files.len()).contains(&number) => {
                content(store, files[number - 1])
            }
            (_, [_], _) => Err(Failure::told(
                "it has one output file, which is written without --file; where it has a name, by that too",
            )),
            (_, files, _) => {
                let files = files.len();
                Err(Failure::told(format!(
                    "it has {files} output files; say which with --file 1 to --file {files}, or by its name where they have names"
                )))
            }
        }
    }

    fn value(payload: &StoredValue, limit: u64) -> Result<Self, Failure> {
        match payload.numbers()? {
            Some((numbers, at)) if numbers.kind == NumberType::U8 => {
                return Ok(Self::Stored(payload.clone(), at));
            }
            Some(_) => {}
            None => {
                if let Some(bytes) = held(payload.value(limit)?) {
                    return Ok(Self::Held(bytes));
                }
            }
        }
        Err(Failure::told(NOT_RAW))
    }

    /// The bytes of a part of a result.
    pub fn of_part(store: &mut Snapshot, value: Decoded) -> Result<Self, Failure> {
        match FileContent::of(&value).filter(|file| file.length > 0) {
            Some(file) => content(store, file.digest),
            None => held(value)
                .map(Self::Held)
                .ok_or_else(|| Failure::told(NOT_RAW)),
        }
    }

    pub fn write(&self, to: &mut impl Write) -> Result<(), Failure> {
        match self {
            Self::Held(bytes) => Ok(to.write_all(bytes)?),
            Self::Stored(payload, at) => file::copy(payload, *at, to),
        }
    }
}

const NOT_RAW: &str = "it is no output file, text or array of bytes; try --format json";

/// The bytes of a value that is such, or a file without content.
fn held(value: Decoded) -> Option<Vec<u8>> {
    match value {
        Decoded::Text(text) => Some(text.into_bytes()),
        Decoded::Bytes(bytes) => Some(bytes),
        Decoded::Numbers(numbers, bytes) if numbers.kind == NumberType::U8 => Some(bytes),
        value => is_empty_file(&value).then(Vec::new),
    }
}

/// Whether a part of a result can be written as bytes.
pub fn is_raw(part: &Decoded) -> bool {
    FileContent::of(part).is_some() || held(part.clone()).is_some()
}

/// The largest value that is read to see whether it is an output file.
const SMALL: u64 = 64 << 10;

/// Whether a result is an output file, or has such.
pub fn has_files(saved: &NamedValue) -> bool {
    let value = || saved.payload.as_ref()?.value(SMALL).ok();
    !saved.contents.is_empty() || value().is_some_and(|value| is_empty_file(&value))
}

/// Whether it is an output file without content, or a map of such: for these there is no content in the store.
fn is_empty_file(value: &Decoded) -> bool {
    let files = named_files(value).filter(|files| !files.is_empty());
    let is_empty = |file: &FileContent| file.length == 0;
    FileContent::of(value).is_some_and(|file| is_empty(&file))
        || files.is_some_and(|files| files.values().all(is_empty))
}

/// The content of an output file: its first whole copy.
fn content(store: &mut Snapshot, digest: Digest) -> Result<Raw, Failure> {
    let contents = Contents::of(store, std::iter::once(digest));
    let whole = contents.whole(&digest);
    whole
        .map(|payload| Raw::Stored(payload.clone(), 0))
        .ok_or_else(|| Failure::told("the content of its output file is missing or damaged"))
}
