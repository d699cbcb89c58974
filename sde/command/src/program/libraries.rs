//! The shared libraries of a program, as its dynamic loader resolves them; the program itself does not run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::elf::{FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};

use super::ProgramError;
use super::find::read_error;

/// One library, or the loader itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Library {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// The absolute path of the loader that an ELF program names; none if it is linked statically.
pub(super) fn loader(
    path: &Path,
    file: File,
    head: &[u8],
) -> Result<Option<PathBuf>, ProgramError> {
    let cache = ReadCache::new(file);
    // The byte after the magic number: 1 for 32 bits, 2 for 64.
    let found = match head.get(4) {
        Some(1) => interpreter::<FileHeader32<Endianness>>(&cache),
        Some(2) => interpreter::<FileHeader64<Endianness>>(&cache),
        _ => Err(()),
    };
    match found {
        Ok(Some(loader)) if !loader.is_absolute() => Err(()),
        found => found,
    }
    .map_err(|()| ProgramError::Format {
        path: path.to_owned(),
    })
}

fn interpreter<Header>(cache: &ReadCache<File>) -> Result<Option<PathBuf>, ()>
where
    Header: FileHeader<Endian = Endianness>,
{
    let header = Header::parse(cache).map_err(drop)?;
    let endian = header.endian().map_err(drop)?;
    for segment in header.program_headers(endian, cache).map_err(drop)? {
        // No system takes a longer path, and a damaged size would be allocated.
        if segment.p_type(endian) == PT_INTERP && segment.p_filesz(endian).into() > 4096 {
            return Err(());
        }
        if let Some(name) = segment.interpreter(endian, cache).map_err(drop)? {
            return Ok(Some(PathBuf::from(OsStr::from_bytes(name))));
        }
    }
    Ok(None)
}

/// Where a loader is asked: relative entries of LD_LIBRARY_PATH and of programs are relative to the folder of the
/// run, which has no library but inputs. Here are but numbers, and nothing need be made that a kill would leave.
const NOWHERE: &str = "/proc/self/task";

/// Asks `loader` which libraries `program` loads under exactly this environment, in the loader's order.
///
/// Costs the start of one process.
pub(super) fn list(
    loader: &Path,
    program: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Vec<Library>, ProgramError> {
    // In a run, `$ORIGIN` is the folder of the file that links lead to.
    let real = program
        .canonicalize()
        .map_err(|error| read_error(program, error))?;
    let output = Command::new(loader)
        .arg("--list")
        .arg(real)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(NOWHERE)
        .stdin(Stdio::null())
        .output();
    let failed = |said: &[u8]| ProgramError::Loader {
        loader: loader.to_owned(),
        program: program.to_owned(),
        said: String::from_utf8_lossy(said).trim().to_owned(),
    };
    let output = output.map_err(|error| match Path::new(NOWHERE).metadata() {
        Ok(_) => read_error(loader, error),
        Err(error) => failed(format!("no folder {NOWHERE} to ask it in: {error}").as_bytes()),
    })?;
    let missing = |library| ProgramError::Library {
        program: program.to_owned(),
        library,
    };
    if !output.status.success() {
        return Err(match absent(&output.stderr) {
            Some(library) => missing(library),
            None => failed(&[output.stderr, output.stdout].concat()),
        });
    }
    let mut libraries = Vec::new();
    for line in output.stdout.split(|&byte| byte == b'\n') {
        match parse(line) {
            Line::Library(library) => libraries.push(library),
            Line::Skip => {}
            Line::Missing(library) => return Err(missing(library)),
            Line::Unknown => return Err(failed(line)),
        }
    }
    Ok(libraries)
}

/// The library that a loader (first glibc's, then musl's) did not find, if that is why it failed.
fn absent(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().find(|line| line.contains("No such file"))?;
    let begins = ["loading shared libraries: ", "loading shared library "];
    let (_, rest) = begins.iter().find_map(|begin| line.split_once(begin))?;
    Some(rest.split_once(": ")?.0.to_owned())
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Library(Library),
    Missing(String),
    /// The kernel's own library, or nothing.
    Skip,
    Unknown,
}

/// Reads `name => /path (0x..)`, `/path (0x..)`, `name => not found`.
pub(super) fn parse(line: &[u8]) -> Line {
    let line = line.trim_ascii();
    let arrow = b" => ";
    let (name, target) = match line.windows(arrow.len()).position(|part| part == arrow) {
        Some(at) => (&line[..at], &line[at + arrow.len()..]),
        None => (line, line),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if target == b"not found" {
        return Line::Missing(text(name));
    }
    if line.is_empty() || line == b"statically linked" {
        return Line::Skip;
    }
    let Some(address) = target.windows(4).rposition(|part| part == b" (0x") else {
        return Line::Unknown;
    };
    let path = Path::new(OsStr::from_bytes(&target[..address]));
    match path.file_name() {
        Some(file) if path.is_absolute() => Line::Library(Library {
            name: text(if name == target {
                file.as_bytes()
            } else {
                name
            }),
            path: path.to_owned(),
        }),
        // Mapped by the kernel, so it has no path.
        Some(_) if name == target && !target.contains(&b'/') => Line::Skip,
        _ => Line::Unknown,
    }
}

#[cfg(test)]
mod tests;
