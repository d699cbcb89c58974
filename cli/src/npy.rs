//! NumPy's files: `.npy` is a header that describes an array, then the array; `.npz` is an archive of them.

use std::collections::HashMap;
use std::io::Write;

use sde::bulk::{AxisOrder, NumberType};
use sde_archives::inspect::{Decoded, Numbers, StoredValue};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use crate::failure::Failure;
use crate::{file, json, text};

/// An array that NumPy can read.
pub struct Array {
    /// The element type, as NumPy writes it.
    descr: String,
    order: AxisOrder,
    lengths: Vec<u64>,
    data: Data,
}

enum Data {
    /// A payload in the store, and an offset in it.
    Stored(StoredValue, u64),
    /// In memory.
    Held(Vec<u8>),
}

impl Array {
    /// The array of numbers in a payload, from an offset on.
    pub fn stored(numbers: Numbers, payload: StoredValue, at: u64) -> Self {
        Self::new(numbers, Data::Stored(payload, at))
    }

    /// A one-dimensional array of elements of this type.
    pub fn line(descr: impl Into<String>, length: usize, bytes: Vec<u8>) -> Self {
        Self {
            descr: descr.into(),
            order: AxisOrder::Rows,
            lengths: vec![length as u64],
            data: Data::Held(bytes),
        }
    }

    /// Texts, padded to one length.
    pub fn texts(texts: impl Iterator<Item = String> + Clone) -> Self {
        let longest = texts.clone().map(|text| text.chars().count()).max();
        let longest = longest.unwrap_or(0).max(1);
        let padded = |text: String| {
            let characters: Vec<char> = text.chars().collect();
            let padding = std::iter::repeat_n('\0', longest - characters.len());
            characters.into_iter().chain(padding)
        };
        let count = texts.clone().count();
        let characters = texts.flat_map(padded);
        let bytes = characters.flat_map(|character| u32::from(character).to_le_bytes());
        Self::line(format!("<U{longest}"), count, bytes.collect())
    }

    fn new(numbers: Numbers, data: Data) -> Self {
        let descr = match numbers.kind {
            NumberType::U8 => "|u1",
            NumberType::I8 => "|i1",
            NumberType::U16 => "<u2",
            NumberType::U32 => "<u4",
            NumberType::U64 => "<u8",
            NumberType::I16 => "<i2",
            NumberType::I32 => "<i4",
            NumberType::I64 => "<i8",
            NumberType::F32 => "<f4",
            _ => "<f8",
        };
        Self {
            descr: descr.to_owned(),
            order: numbers.order,
            lengths: numbers.lengths,
            data,
        }
    }

    /// Writes the file.
    pub fn write(&self, to: &mut impl Write) -> Result<(), Failure> {
        to.write_all(&self.header())?;
        match &self.data {
            Data::Held(bytes) => to.write_all(bytes)?,
            Data::Stored(payload, at) => file::copy(payload, *at, to)?,
        }
        Ok(())
    }

    /// `\x93NUMPY`, version, length, and a Python dictionary, so that the array begins at a multiple
    /// of 64.
    fn header(&self) -> Vec<u8> {
        let fortran = match self.order {
            AxisOrder::Columns => "True",
            _ => "False",
        };
        let lengths = self.lengths.iter().map(|length| format!("{length},"));
        let (descr, lengths) = (&self.descr, lengths.collect::<String>());
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({lengths}), }}");
        let unpadded = 10 + text.len() + 1;
        text.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
        text.push('\n');
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        // At most 64 lengths of 20 digits.
        header.extend_from_slice(&(text.len() as u16).to_le_bytes());
        header.extend_from_slice(text.as_bytes());
        header
    }
}

/// Writes an archive of arrays with these names.
pub fn write_npz(
    arrays: impl IntoIterator<Item = (String, Array)>,
    to: &mut impl Write,
) -> Result<(), Failure> {
    let mut zip = ZipWriter::new_stream(to);
    // Not compressed, as NumPy writes archives.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(true);
    let mut members = Members::default();
    for (name, array) in arrays {
        zip.start_file(format!("{}.npy", members.name(&name)), options)?;
        array.write(&mut zip)?;
    }
    zip.finish()?.into_inner().flush()?;
    Ok(())
}

/// The names of arrays in an archive.
#[derive(Default)]
struct Members {
    /// Each name given, with its last number.
    taken: HashMap<String, u64>,
}

/// The longest name in an archive, within the 255 bytes of file systems and with room for a number.
const LONGEST_NAME: usize = 200;

impl Members {
    /// A unique name that is safe to unpack: it leads to no other folder, hides
    /// nothing, and has no control characters.
    fn name(&mut self, wanted: &str) -> String {
        let is_unsafe =
            |character| matches!(character, '/' | '\\' | ':') || text::is_unprintable(character);
        let mut safe = String::new();
        for character in wanted.chars() {
            if safe.len() + character.len_utf8() > LONGEST_NAME {
                break;
            }
            safe.push(if is_unsafe(character) { '_' } else { character });
        }
        if safe.is_empty() || safe.starts_with('.') {
            safe.insert(0, '_');
        }
        // Some file systems ignore case.
        let folded = safe.to_lowercase();
        let mut name = safe.clone();
        let mut number = self.taken.get(&folded).copied().unwrap_or(0);
        while number > 0 && self.taken.contains_key(&name.to_lowercase()) {
            number += 1;
            name = format!("{safe}_{number}");
        }
        self.taken.insert(folded, number.max(1));
        self.taken.entry(name.to_lowercase()).or_insert(1);
        name
    }
}

/// The arrays in a value, with their paths: the value itself, or fields of it.
pub fn arrays(name: &str, value: Decoded, to: &mut Vec<(String, Array)>) {
    match value {
        Decoded::Numbers(numbers, bytes) => {
            to.push((name.to_owned(), Array::new(numbers, Data::Held(bytes))));
        }
        Decoded::Map(pairs) => {
            for (key, item) in pairs {
                arrays(&format!("{name}.{}", json::name(&key)), item, to);
            }
        }
        Decoded::List(items) => {
            if let Some(array) = of_list(&items) {
                to.push((name.to_owned(), array));
                return;
            }
            for (at, item) in items.into_iter().enumerate() {
                if matches!(
                    item,
                    Decoded::Numbers(..) | Decoded::Map(_) | Decoded::List(_)
                ) {
                    arrays(&format!("{name}.{at}"), item, to);
                }
            }
        }
        single => {
            if let Some(mut array) = of_list(&[single]) {
                array.lengths.clear();
                to.push((name.to_owned(), array));
            }
        }
    }
}

/// An array of a list that has only integers of at most 64 bits, or only floating-point numbers.
pub fn of_list(items: &[Decoded]) -> Option<Array> {
    let floats = items.iter().map(|item| match item {
        Decoded::Float(number) => Some(number.to_le_bytes()),
        _ => None,
    });
    let integers = || {
        items.iter().map(|item| match item {
            Decoded::Integer(integer) => Some(*integer),
            _ => None,
        })
    };
    let signed = integers().map(|integer| Some(i64::try_from(integer?).ok()?.to_le_bytes()));
    let unsigned = integers().map(|integer| Some(u64::try_from(integer?).ok()?.to_le_bytes()));
    let (descr, bytes) = if let Some(bytes) = floats.collect::<Option<Vec<_>>>() {
        ("<f8", bytes)
    } else if let Some(bytes) = signed.collect::<Option<Vec<_>>>() {
        ("<i8", bytes)
    } else {
        ("<u8", unsigned.collect::<Option<Vec<_>>>()?)
    };
    Some(Array::line(descr, bytes.len(), bytes.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_an_archive_are_safe_to_unpack() {
        let mut members = Members::default();
        for (wanted, name) in [
            ("report.weights", "report.weights"),
            ("Grüße", "Grüße"),
            ("../../etc/passwd", "_.._.._etc_passwd"),
            ("..", "_.."),
            ("", "_"),
            ("C:\\x", "C__x"),
            ("a\u{1b}[2J\u{202e}\n", "a_[2J__"),
            ("a/b", "a_b"),
            ("a_b", "a_b_2"),
            ("A:B", "A_B_3"),
        ] {
            assert_eq!(members.name(wanted), name);
        }
        let long = "水".repeat(1000);
        assert_eq!(members.name(&long).len(), 198);
    }
}
