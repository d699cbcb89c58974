//! Showing text that came from outside.
//!
//! A message that quotes a file or a name from outside must not carry its
//! control characters to a terminal, nor all of a line that is a megabyte
//! long. Everything quoted in this crate's errors goes through here.

use std::path::Path;

/// The longest quotation, in characters.
const LONGEST: usize = 60;

/// Quotes `text` for a message: plain ASCII stays, the rest is escaped, a long text is cut.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", plain(text, LONGEST))
}

/// Like [`quoted`], for a path (which may be longer, and is not cut before 400 characters).
pub(crate) fn quoted_path(path: &Path) -> String {
    format!("\"{}\"", plain(&path.to_string_lossy(), 400))
}

/// Reads a finite number, also with Fortran's `D` exponent.
pub(crate) fn number(text: &str) -> Option<f64> {
    let value: f64 = match text.parse() {
        Ok(value) => value,
        Err(_) => text.replace(['d', 'D'], "e").parse().ok()?,
    };
    value.is_finite().then_some(value)
}

fn plain(text: &str, longest: usize) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == longest {
            shown.push_str("...");
            break;
        }
        if c == ' ' || c.is_ascii_graphic() {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(quoted("a\u{1b}[31m\nb"), "\"a\\u{1b}[31m\\nb\"");
        assert_eq!(quoted("\u{202e}"), "\"\\u{202e}\"");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(quoted(&"x".repeat(1000)).len(), 60 + 2 + 3);
    }
}
