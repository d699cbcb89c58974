//! NumPy's files: `.npy` is a line that says what the array has, and the array.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use sde::bulk::{NumberType, Order};
use sde_archives::inspect::{Numbers, Payload, Value};

use crate::failure::Failure;
use crate::{json, text};

/// An array that NumPy can read.
pub enum Array {
    /// In the store: copied from there.
    Stored(Numbers, Payload, u64),
    /// In memory.
    Held(Numbers, Vec<u8>),
}

impl Array {
    fn numbers(&self) -> &Numbers {
        match self {
            Self::Stored(numbers, ..) | Self::Held(numbers, _) => numbers,
        }
    }

    /// Writes the file.
    pub fn write(&self, to: &mut impl Write) -> Result<(), Failure> {
        to.write_all(&header(self.numbers()))?;
        match self {
            Self::Held(_, bytes) => to.write_all(bytes)?,
            Self::Stored(_, payload, at) => {
                let mut from = payload.reader()?;
                io::copy(&mut (&mut from).take(*at), &mut io::sink())?;
                io::copy(&mut from, to)?;
            }
        }
        Ok(())
    }
}

/// `\x93NUMPY`, version, length, and a Python dictionary, so that the array begins at a multiple
/// of 64.
fn header(numbers: &Numbers) -> Vec<u8> {
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
    let fortran = match numbers.order {
        Order::Columns => "True",
        _ => "False",
    };
    let lengths: String = numbers
        .lengths
        .iter()
        .map(|length| format!("{length},"))
        .collect();
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

/// The names that arrays have in an archive.
#[derive(Default)]
pub struct Members {
    /// Each that was given, and up to where it was numbered.
    taken: HashMap<String, u64>,
}

/// No name in an archive is longer: file systems take 255 bytes.
const LONGEST_NAME: usize = 200;

impl Members {
    /// A name that no other has and that is safe to unpack: it leads to no other folder, hides
    /// nothing, and has nothing that a terminal obeys.
    pub fn name(&mut self, wanted: &str) -> String {
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
        // Some file systems know no capitals.
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

/// What is an array in a value, with its path: itself, or the fields that are.
pub fn arrays(name: &str, value: Value, to: &mut Vec<(String, Array)>) {
    match value {
        Value::Numbers(numbers, bytes) => to.push((name.to_owned(), Array::Held(numbers, bytes))),
        Value::Map(pairs) => {
            for (key, item) in pairs {
                arrays(&format!("{name}.{}", json::name(&key)), item, to);
            }
        }
        Value::List(items) => {
            if let Some((numbers, bytes)) = of_list(&items) {
                to.push((name.to_owned(), Array::Held(numbers, bytes)));
                return;
            }
            for (at, item) in items.into_iter().enumerate() {
                if matches!(item, Value::Numbers(..) | Value::Map(_) | Value::List(_)) {
                    arrays(&format!("{name}.{at}"), item, to);
                }
            }
        }
        single => {
            let lone = of_list(std::slice::from_ref(&single));
            if let Some((mut numbers, bytes)) = lone {
                numbers.lengths.clear();
                to.push((name.to_owned(), Array::Held(numbers, bytes)));
            }
        }
    }
}

/// A list of nothing but integers that fit 64 bits, or of floating-point numbers.
fn of_list(items: &[Value]) -> Option<(Numbers, Vec<u8>)> {
    let floats = items.iter().map(|item| match item {
        Value::Float(number) => Some(number.to_le_bytes()),
        _ => None,
    });
    let signed = items.iter().map(|item| match item {
        Value::Integer(integer) => Some(i64::try_from(*integer).ok()?.to_le_bytes()),
        _ => None,
    });
    let unsigned = items.iter().map(|item| match item {
        Value::Integer(integer) => Some(u64::try_from(*integer).ok()?.to_le_bytes()),
        _ => None,
    });
    let (kind, bytes) = if let Some(bytes) = floats.collect::<Option<Vec<_>>>() {
        (NumberType::F64, bytes)
    } else if let Some(bytes) = signed.collect::<Option<Vec<_>>>() {
        (NumberType::I64, bytes)
    } else {
        (NumberType::U64, unsigned.collect::<Option<Vec<_>>>()?)
    };
    let numbers = Numbers::line(kind, bytes.len() as u64);
    Some((numbers, bytes.concat()))
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
