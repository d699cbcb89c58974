//! What is written to standard output.
//!
//! Names in a store come from whoever wrote it, and a terminal obeys control characters:
//! each line is cleaned here, in one place.

use std::io::{BufWriter, Stdout, Write};

use console::Term;
use serde::Serialize;

use crate::failure::Failure;
use crate::text;

/// Standard output, and what is known of the terminal behind it.
pub struct Output {
    to: BufWriter<Stdout>,
    /// How many columns there are; `None` if lines may be as long as they are.
    pub width: Option<usize>,
    /// JSON is asked for in place of text.
    pub json: bool,
    /// Something is damaged, or different: exit status 1.
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

    /// Writes a line that goes on below, indented, where it is longer than the terminal is wide.
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
        // Not cleaned: JSON escapes what a terminal would obey but for the few above ASCII.
        let json = text::escape_json(&serde_json::to_string(value)?);
        Ok(writeln!(self.to, "{json}")?)
    }

    /// Where to write what is neither.
    pub fn raw(&mut self) -> &mut impl Write {
        &mut self.to
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.to.flush()?)
    }
}

/// `COLUMNS`, if it is set; else the width of the terminal, if this is one.
fn width(of: &Term) -> Option<usize> {
    let set = std::env::var("COLUMNS").ok();
    let set = set.and_then(|columns| columns.parse().ok());
    let terminal = || of.size_checked().map(|(_, columns)| columns.into());
    set.or_else(terminal).filter(|width| *width > 0)
}

/// Says something beside the output: an error, or a warning that does not end the command.
pub fn warn(message: impl std::fmt::Display) {
    let line = format!("sde: {}", text::clean(&message.to_string()));
    let lines = match width(&Term::stderr()) {
        Some(width) => text::wrap(&line, width, 2).join("\n"),
        None => line,
    };
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr(), "{lines}");
}
