//! Lines of strace, as its options `-f -y -xx -s 0` make them: `PID name(arguments) = result`.
//!
//! All text of paths is in hexadecimal digits, so whatever else a line has is strace's own.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A line without its process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// The whole of a call.
    Call(&'a str),
    /// The beginning of a call, up to where another process came between.
    Begun(&'a str),
    /// The rest of that call.
    Resumed(&'a str),
    /// The process, or thread, has ended.
    Ended,
    /// A thread of this number runs another program, and has the number of the line from now on.
    Superseded(u32),
    /// A signal, or a call in whose midst strace came.
    Nothing,
}

/// The process that a line is of, and what it says; nothing if it is no line of a trace.
pub(super) fn line(text: &str) -> Option<(u32, Line<'_>)> {
    let (process, rest) = text.split_once(' ')?;
    let (process, rest) = (process.parse().ok()?, rest.trim());
    let line = if let Some(said) = rest.strip_prefix("+++ ") {
        match said.strip_prefix("superseded by execve in pid ") {
            Some(by) => Line::Superseded(by.trim_end_matches(" +++").parse().ok()?),
            None if said.starts_with("exited") || said.starts_with("killed") => Line::Ended,
            None => return None,
        }
    } else if let Some(resumed) = rest.strip_prefix("<... ") {
        let (name, rest) = resumed.split_once(" resumed>")?;
        match name.starts_with('?') {
            true => Line::Nothing,
            false => Line::Resumed(rest),
        }
    } else if rest.starts_with("---") || rest.starts_with('?') {
        Line::Nothing
    } else if let Some(begun) = begun(rest) {
        Line::Begun(begun.trim_end())
    } else {
        Line::Call(rest)
    };
    Some((process, line))
}

/// The beginning of a call that goes on in another line: also one by which a thread takes the number of its process.
fn begun(line: &str) -> Option<&str> {
    let (begun, why) = line.strip_suffix(" ...>")?.rsplit_once('<')?;
    (why == "unfinished" || why.starts_with("pid changed to ")).then_some(begun)
}

/// A call of the system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    arguments: &'a str,
    result: &'a str,
}

/// A path that a call names, and the folder that it is relative to: none is that of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: PathBuf,
    pub(super) folder: Option<PathBuf>,
}

impl<'a> Call<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (call, result) = text.rsplit_once(" = ")?;
        let (name, arguments) = call.trim_end().strip_suffix(')')?.split_once('(')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_call = !name.is_empty() && name.chars().all(is_name);
        is_call.then_some(Self {
            name,
            arguments,
            result,
        })
    }

    /// The number that it gives, if it did not fail.
    pub(super) fn number(&self) -> Option<u32> {
        let digits = self.result.split(|c: char| !c.is_ascii_digit()).next();
        digits?.parse().ok()
    }

    pub(super) fn is_done(&self) -> bool {
        self.result.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether it failed since there is nothing of that name.
    pub(super) fn is_absent(&self) -> bool {
        ["-1 ENOENT", "-1 ENOTDIR"]
            .iter()
            .any(|failed| self.result.starts_with(failed))
    }

    /// Whether the arguments have a flag.
    pub(super) fn has(&self, flag: &str) -> bool {
        let mut words = self
            .arguments
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == flag)
    }

    /// The file that was opened: where it lies, whatever it was called.
    pub(super) fn opened(&self) -> Option<PathBuf> {
        decorated(self.result).filter(|path| path.is_absolute())
    }

    /// The file that the first argument stands for: the current folder for `AT_FDCWD`.
    pub(super) fn of_number(&self) -> Option<PathBuf> {
        decorated(self.arguments).filter(|path| path.is_absolute())
    }

    /// The current folder, if an argument tells it.
    pub(super) fn current(&self) -> Option<PathBuf> {
        let (_, rest) = self.arguments.split_once("AT_FDCWD<")?;
        let (digits, _) = rest.split_once('>')?;
        bytes(digits).filter(|path| path.is_absolute())
    }

    /// The texts among its arguments, each with the folder before it. One that is cut off is none.
    pub(super) fn paths(&self) -> Vec<Named> {
        let (mut paths, mut rest) = (Vec::new(), self.arguments);
        while let Some((left, right)) = rest.split_once('"') {
            let Some((digits, after)) = right.split_once('"') else {
                break;
            };
            if let Some(path) = bytes(digits).filter(|_| !after.starts_with("...")) {
                let number = left.rsplit(", ").find(|part| !part.is_empty());
                let folder = number.and_then(decorated).filter(|path| path.is_absolute());
                paths.push(Named { path, folder });
            }
            rest = after;
        }
        paths
    }
}

/// The path of `3</x>`, where the whole text is that of an argument or a result.
fn decorated(text: &str) -> Option<PathBuf> {
    let (number, rest) = text.split_once('<')?;
    let is_number = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (digits, _) = rest.split_once('>')?;
    match !number.is_empty() && number.chars().all(is_number) {
        true => bytes(digits),
        false => None,
    }
}

/// What `\x2f\x61` stands for.
fn bytes(digits: &str) -> Option<PathBuf> {
    let byte = |digits: &str| u8::from_str_radix(digits, 16).ok();
    let mut parts = digits.split("\\x");
    let is_empty = parts.next() == Some("");
    let bytes: Option<Vec<u8>> = parts.map(byte).collect();
    Some(OsString::from_vec(bytes.filter(|_| is_empty)?).into())
}
