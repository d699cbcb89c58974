//! What is written to standard output.
//!
//! Names in a store come from whoever wrote it, and a terminal obeys control characters:
//! each line is cleaned here, in one place.

use std::io::{BufWriter, Stdout, Write};
#[cfg(unix)]
use std::os::fd::AsFd as Stream;

#[cfg(not(unix))]
use std::io::Write as Stream;

use serde_json::Value;

use crate::failure::Failure;
use crate::text;

/// Standard output, and what is known of the terminal behind it.
pub struct Output {
    to: BufWriter<Stdout>,
    width: Option<usize>,
    /// Something is damaged, or different: exit status 1.
    pub found: bool,
}

impl Output {
    pub fn standard() -> Self {
        Self {
            to: BufWriter::new(std::io::stdout()),
            width: width(std::io::stdout()),
            found: false,
        }
    }

    /// How many columns there are; `None` if lines may be as long as they are.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Writes a line, cut to the terminal's width.
    pub fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        let clean = text::clean(line.as_ref());
        let line = match self.width {
            Some(width) => text::cut(&clean, width),
            None => clean,
        };
        Ok(writeln!(self.to, "{}", line.trim_end())?)
    }

    /// Writes a line that goes on below, indented, where it is longer than the terminal is wide.
    pub fn wrapped(&mut self, line: impl AsRef<str>, indent: usize) -> Result<(), Failure> {
        let clean = text::clean(line.as_ref());
        let Some(width) = self.width else {
            return self.line(clean);
        };
        for part in text::wrap(&clean, width, indent) {
            self.line(part)?;
        }
        Ok(())
    }

    /// Writes a value on one line.
    pub fn json(&mut self, value: &Value) -> Result<(), Failure> {
        // Not cleaned: JSON escapes what a terminal would obey but for the few above ASCII.
        Ok(writeln!(
            self.to,
            "{}",
            text::escape_json(&value.to_string())
        )?)
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
fn width(of: impl Stream) -> Option<usize> {
    let set = std::env::var("COLUMNS").ok();
    let set = set.and_then(|columns| columns.parse().ok());
    set.or_else(|| of_terminal(of)).filter(|width| *width > 0)
}

#[cfg(unix)]
fn of_terminal(of: impl Stream) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    Some(size.ws_col.into())
}

#[cfg(not(unix))]
fn of_terminal(_: impl Stream) -> Option<usize> {
    None
}

/// Says something beside the output: an error, or a warning that does not end the command.
pub fn warn(message: impl std::fmt::Display) {
    let mut to = std::io::stderr();
    let line = format!("sde: {}", text::clean(&message.to_string()));
    let lines = match width(&to) {
        Some(width) => text::wrap(&line, width, 2).join("\n"),
        None => line,
    };
    // Nobody is left to tell if this fails.
    let _ = writeln!(to, "{lines}");
}
