//! Shows a value in one line, from its first bytes.

use std::fmt::Write;

use ciborium_ll::{Decoder, Header, simple};
use sde::key::Short;

use super::numbers::{self, Numbers};
use crate::cbor::tags;

/// The greatest depth shown: deeper items would not fit anyway.
const DEPTH: usize = 40;

/// The line for a value with these first bytes.
pub(super) fn of(bytes: &[u8], length: u64) -> String {
    let mut writer = Writer {
        rest: bytes,
        cut: length > bytes.len() as u64,
        out: Short::new(),
        depth: 0,
    };
    if writer.value().is_none() && !writer.out.is_full() {
        writer.out.show(match writer.cut && writer.rest.len() < 64 {
            true => "…",
            false => "(is no value)",
        });
    }
    writer.out.into_text()
}

struct Writer<'a> {
    rest: &'a [u8],
    /// Whether the value has more bytes.
    cut: bool,
    out: Short,
    depth: usize,
}

impl Writer<'_> {
    /// Shows one item; `None` at the end of the line or of the bytes.
    fn value(&mut self) -> Option<()> {
        if self.out.is_full() || self.depth > DEPTH {
            return None;
        }
        if let Some((numbers, rest, size)) = numbers::take(self.rest) {
            self.rest = rest;
            let size = usize::try_from(size).ok()?;
            let here = self.rest.get(..size.min(self.rest.len()))?;
            show_numbers(&mut self.out, &numbers, here);
            self.rest = self.rest.get(size..)?;
            return Some(());
        }
        let head = Decoder::from(&mut self.rest).pull().ok()?;
        match head {
            Header::Positive(value) => self.out.show(value),
            Header::Negative(inverted) => self.out.show(!i128::from(inverted)),
            Header::Float(value) => self.out.show(format_args!("{value:?}")),
            Header::Simple(simple::FALSE) => self.out.show(false),
            Header::Simple(simple::TRUE) => self.out.show(true),
            Header::Simple(simple::NULL) => self.out.show("null"),
            Header::Simple(_) | Header::Break => return None,
            Header::Bytes(length) => {
                let length = length?;
                self.out.show(format_args!("[{length} bytes]"));
                self.rest = self.rest.get(length..)?;
            }
            Header::Text(length) => return self.text(length?),
            Header::Array(count) => return self.items(["[", "]"], count?, Self::value),
            Header::Map(count) => return self.items(["{", "}"], count?, Self::pair),
            Header::Tag(tag @ (tags::BIG | tags::BIG_NEGATIVE)) => return self.big(tag),
            Header::Tag(tag) => {
                self.out.show(format_args!("tag {tag}: "));
                return self.deeper(Self::value);
            }
        }
        Some(())
    }

    fn deeper(&mut self, job: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        let done = job(self);
        self.depth -= 1;
        done
    }

    fn text(&mut self, length: usize) -> Option<()> {
        let here = self.rest.get(..length.min(self.rest.len()))?;
        // The bytes may end within a character.
        self.out
            .quoted(String::from_utf8_lossy(here).trim_end_matches('\u{fffd}'));
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    fn big(&mut self, tag: u64) -> Option<()> {
        let Header::Bytes(Some(length)) = Decoder::from(&mut self.rest).pull().ok()? else {
            return None;
        };
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        let magnitude = tags::big(bytes)?;
        match i128::try_from(magnitude) {
            Ok(inverted) if tag == tags::BIG_NEGATIVE => self.out.show(!inverted),
            _ => self.out.show(magnitude),
        }
        self.rest = rest;
        Some(())
    }

    fn items(
        &mut self,
        [open, close]: [&str; 2],
        count: usize,
        item: impl Fn(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.out.show(open);
        for at in 0..count {
            if at > 0 {
                self.out.show(", ");
            }
            self.deeper(&item)?;
        }
        self.out.show(close);
        Some(())
    }

    fn pair(&mut self) -> Option<()> {
        self.key()?;
        self.out.show(": ");
        self.value()
    }

    /// Shows a key; names of fields are shown without quotation marks.
    fn key(&mut self) -> Option<()> {
        let mut rest = self.rest;
        if let Ok(Header::Text(Some(length))) = Decoder::from(&mut rest).pull() {
            let (name, rest) = rest.split_at_checked(length)?;
            self.out.show(std::str::from_utf8(name).ok()?);
            self.rest = rest;
            return Some(());
        }
        self.value()
    }
}

/// `[f64; 3] 1.0, 2.0, 3.0`.
fn show_numbers(out: &mut Short, numbers: &Numbers, bytes: &[u8]) {
    let mut lengths = String::new();
    for (at, length) in numbers.lengths.iter().enumerate() {
        let times = if at > 0 { " x " } else { "" };
        let _ = write!(lengths, "{times}{length}");
    }
    out.show(format_args!("[{}; {lengths}] ", numbers.kind.rust_name()));
    let size = numbers.kind.size();
    for (at, number) in bytes.chunks_exact(size).enumerate() {
        if out.is_full() {
            return;
        }
        if at > 0 {
            out.show(", ");
        }
        out.show(numbers.text(number));
    }
}
