//! The `#!` line of a script, read as the kernel and `env` read it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::ProgramError;

/// The kernel reads so much of a file to tell what it is.
pub(super) const HEAD: usize = 256;

/// What runs a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interpreter {
    pub(super) path: PathBuf,
    /// The program that `env` is to run.
    pub(super) by_env: Option<OsString>,
}

/// Reads the `#!` line at the beginning of `head`, the first [`HEAD`] bytes of the script at `path`.
pub(super) fn parse(path: &Path, head: &[u8]) -> Result<Interpreter, ProgramError> {
    let error = |why| error(path, head, why);
    let (line, is_whole) = first_line(head);
    if !is_whole {
        return Err(error("is longer than all systems read"));
    }
    // The kernel splits at blanks only: the `\r` of a Windows text is a part of the name, which is then not found.
    let line = trim_blanks(line);
    let name_end = line.iter().position(is_blank).unwrap_or(line.len());
    let (name, argument) = line.split_at(name_end);
    let interpreter = Path::new(OsStr::from_bytes(name));
    if name.is_empty() {
        return Err(error("names no interpreter"));
    }
    if !interpreter.is_absolute() {
        return Err(error("is relative to the folder of the run"));
    }
    let by_env = match interpreter.file_name() {
        Some(name) if name == "env" => Some(of_env(trim_blanks(argument)).map_err(error)?),
        _ => None,
    };
    Ok(Interpreter {
        path: interpreter.to_owned(),
        by_env,
    })
}

/// Tells why the first line of a script is of no use.
pub(super) fn error(path: &Path, head: &[u8], why: &'static str) -> ProgramError {
    ProgramError::Interpreter {
        path: path.to_owned(),
        line: String::from_utf8_lossy(first_line(head).0)
            .escape_debug()
            .to_string(),
        why,
    }
}

/// What follows `#!`, and whether all of it was read.
fn first_line(head: &[u8]) -> (&[u8], bool) {
    let text = head.get(2..).unwrap_or_default();
    match text.iter().position(|&byte| byte == b'\n' || byte == 0) {
        Some(end) => (&text[..end], true),
        None => (text, head.len() < HEAD),
    }
}

/// The program in the arguments of `env`. Options but a leading `-S`, assignments and quotes are refused: they can
/// change where the program is looked for.
fn of_env(argument: &[u8]) -> Result<OsString, &'static str> {
    let name = match argument.strip_prefix(b"-S") {
        Some(words) => {
            let words = trim_blanks(words);
            &words[..words.iter().position(is_blank).unwrap_or(words.len())]
        }
        None => argument,
    };
    if name.is_empty() {
        return Err("names no program for env");
    }
    if name.starts_with(b"-") || name.iter().any(|byte| b"='\"\\$#".contains(byte)) {
        return Err("has options, assignments or quotes for env that are not followed");
    }
    if name.contains(&b'/') && !name.starts_with(b"/") {
        return Err("is relative to the folder of the run");
    }
    Ok(OsStr::from_bytes(name).to_owned())
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim_blanks(text: &[u8]) -> &[u8] {
    let from = text
        .iter()
        .position(|byte| !is_blank(byte))
        .unwrap_or(text.len());
    let to = text
        .iter()
        .rposition(|byte| !is_blank(byte))
        .map_or(from, |last| last + 1);
    &text[from..to]
}

#[cfg(test)]
mod tests;
