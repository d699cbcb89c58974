//! Standard output.
//!
//! Names in a store come from whoever wrote it, and a terminal obeys control characters.
//! So each line is cleaned here, in one place.

use std::io::{BufWriter, Stdout, Write};

use console::Term;
use serde::Serialize;

use crate::failure::Failure;
use crate::text;

/// Standard output, and the properties of the terminal behind it.
pub struct Output {
    to: BufWriter<Stdout>,
    /// The columns of the terminal; `None` if lines may have any length.
    pub width: Option<usize>,
    /// Whether JSON is asked for in place of text.
    pub json: bool,
    /// Whether damage or a difference was found: exit status 1.
    pub found: bool,
}

impl Output {
    pub fn standard(json: bool) -> Self {
        Self {
            to: BufWriter::new(std::io::stdout()),
            width: width(&Term::stdout()),
            json,
            found: false,
        }
    }

    /// Writes a line, cut to the terminal's width.
    pub fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        let clean = text::clean(line.as_ref());
        let line = match self.width {
            Some(width) => console::truncate_str(&clean, width, "…"),
            None => clean.as_str().into(),
        };
        Ok(writeln!(self.to, "{}", line.trim_end())?)
    }

    /// Writes a line; one longer than the terminal is wide goes on below, indented.
    pub fn wrapped(&mut self, line: impl AsRef<str>, indent: usize) -> Result<(), Failure> {
        let clean = text::clean(line.as_ref());
        match self.width {
            Some(width) => text::wrap(&clean, width, indent)
                .iter()
                .try_for_each(|part| self.line(part)),
            None => self.line(clean),
        }
    }

    /// Writes a value on one line.
    pub fn object(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        // JSON escapes the ASCII control characters; this escapes the rest.
        let json = text::escape_json(&serde_json::to_string(value)?);
        Ok(writeln!(self.to, "{json}")?)
    }

    /// The writer itself, for bytes that are no lines.
    pub fn raw(&mut self) -> &mut impl Write {
        &mut self.to
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.to.flush()?)
    }
}

/// `COLUMNS`, if set; else the width of the terminal, if it is one.
fn width(of: &Term) -> Option<usize> {
    let set = std::env::var("COLUMNS").ok();
    let set = set.and_then(|columns| columns.parse().ok());
    let terminal = || of.size_checked().map(|(_, columns)| columns.into());
    set.or_else(terminal).filter(|width| *width > 0)
}

/// Prints to standard error: an error, or a warning that does not end the command.
pub fn warn(message: impl std::fmt::Display) {
    let line = format!("sde: {}", text::clean(&message.to_string()));
    let lines = match width(&Term::stderr()) {
        Some(width) => text::wrap(&line, width, 2).join("\n"),
        None => line,
    };
    // If this fails, there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "{lines}");
}
