//! What identifies a program: its file, its interpreters, and the shared libraries that they load.
//!
//! Not seen: what a script imports or calls, what is loaded by `dlopen`, and the processor's type.

mod digests;
mod error;
mod find;
mod libraries;
mod script;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sde_engine::key::Digest;

pub(crate) use digests::{Digests, hash_unchanged};
pub(crate) use error::ProgramError;
pub(crate) use find::find;

use find::{find_absolute, read_error};

/// Interpreters of interpreters: the kernel follows a few more.
const DEEPEST: usize = 4;

/// A program that was found, and all that counts as its code.
#[derive(Debug)]
pub(crate) struct Program {
    /// Absolute, as found: links are not resolved.
    pub(crate) path: PathBuf,
    /// The program's file first, the rest in an order that does not change while they do not.
    pub(crate) parts: Vec<Part>,
    /// The interpreters of a script, the outermost first, without `env`.
    pub(crate) interpreters: Vec<PathBuf>,
}

impl Program {
    /// A program of which nothing is known.
    pub(crate) fn untold(path: PathBuf) -> Self {
        Self {
            path,
            parts: Vec::new(),
            interpreters: Vec::new(),
        }
    }
}

/// One file of a program's code.
#[derive(Debug)]
pub(crate) struct Part {
    /// For people: `xtb`, `interpreter python3.11`, `libgfortran.so.5`.
    pub(crate) name: String,
    pub(crate) digest: Digest,
    pub(crate) path: PathBuf,
}

impl Part {
    /// The part as one of something that a command uses.
    pub(crate) fn of(self, used: &str) -> Self {
        let name = match self.name.is_empty() {
            true => format!("uses {used}"),
            false => format!("uses {used}: {}", self.name),
        };
        Self { name, ..self }
    }
}

/// Reads what counts as the code of the program at the absolute `path`, under the environment that it will have.
///
/// A script's `#!/usr/bin/env NAME` is looked for in the PATH of `environment`, else in `search`, the caller's; in both
/// cases that is what runs under [`search_path`]. Costs one process (the dynamic loader) for each ELF file of the chain, and
/// the reading of files whose digests are not kept.
pub(crate) fn read(
    path: &Path,
    search: &OsStr,
    environment: &[(OsString, OsString)],
    digests: &Digests,
) -> Result<Program, ProgramError> {
    let mut reader = Reader {
        search,
        environment,
        digests,
        by_env: Vec::new(),
        program: Program::untold(path.to_owned()),
    };
    reader.read(path, 0)?;
    reader.relative_libraries();
    reader.check_env()?;
    Ok(reader.program)
}

/// The PATH of a run: what `environment` declares, else the folders of interpreters, then the program's, then the system's.
pub(crate) fn search_path(
    program: &Program,
    environment: &[(OsString, OsString)],
) -> Result<OsString, ProgramError> {
    if let Some(declared) = value(environment, "PATH") {
        return Ok(declared.to_owned());
    }
    let mut search = OsString::new();
    for path in program.interpreters.iter().chain([&program.path]) {
        let folder = path.parent().unwrap_or(Path::new("/")).as_os_str();
        if folder.as_bytes().contains(&b':') {
            return Err(ProgramError::Colon { path: path.clone() });
        }
        search.push(folder);
        search.push(":");
    }
    search.push("/usr/local/bin:/usr/bin:/bin");
    Ok(search)
}

/// The absolute path in the first line of a script, which the kernel runs in its place.
pub(crate) fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    let file = digests::open(path).ok()?;
    file.take(script::HEAD as u64).read_to_end(&mut head).ok()?;
    let script = head.starts_with(b"#!").then(|| script::parse(path, &head));
    Some(script?.ok()?.path)
}

fn value<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    // The last one is what a process that is started with them gets.
    let mut matching = environment.iter().rev().filter(|(key, _)| key == name);
    matching.next().map(|(_, value)| value.as_os_str())
}

struct Reader<'a> {
    search: &'a OsStr,
    environment: &'a [(OsString, OsString)],
    digests: &'a Digests,
    /// What `env` is asked for, and what that is.
    by_env: Vec<(OsString, PathBuf)>,
    program: Program,
}

impl Reader<'_> {
    fn read(&mut self, path: &Path, depth: usize) -> Result<(), ProgramError> {
        let real = path
            .canonicalize()
            .map_err(|error| read_error(path, error))?;
        let name = real.file_name().unwrap_or_default().to_string_lossy();
        let name = match depth {
            0 => path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            _ => format!("interpreter {name}"),
        };
        self.part(name, path)?;
        self.virtual_environment(path)?;
        self.virtual_environment(&real)?;

        let mut file = digests::open(path).map_err(|error| read_error(path, error))?;
        let mut head = Vec::new();
        let limit = script::HEAD as u64;
        let reading = (&mut file).take(limit).read_to_end(&mut head);
        reading.map_err(|error| read_error(path, error))?;
        if head.starts_with(b"#!") {
            self.script(path, &head, depth)
        } else if head.starts_with(b"\x7fELF") {
            self.libraries(path, file, &head)
        } else {
            let path = path.to_owned();
            Err(ProgramError::Format { path })
        }
    }

    fn script(&mut self, path: &Path, head: &[u8], depth: usize) -> Result<(), ProgramError> {
        if depth == DEEPEST {
            let path = path.to_owned();
            let most = DEEPEST;
            return Err(ProgramError::Deep { path, most });
        }
        let interpreter = script::parse(path, head)?;
        let absent = |error| match error {
            ProgramError::NotFound { .. } => {
                script::error(path, head, "names a program that is not there")
            }
            other => other,
        };
        let runs = find_absolute(interpreter.path.as_os_str(), self.search).map_err(absent)?;
        let Some(name) = interpreter.by_env else {
            self.program.interpreters.push(runs.clone());
            return self.read(&runs, depth + 1);
        };
        self.read(&runs, depth + 1)?;
        let declared = value(self.environment, "PATH");
        let found = find_absolute(&name, declared.unwrap_or(self.search)).map_err(absent)?;
        self.program.interpreters.push(found.clone());
        if !name.as_bytes().contains(&b'/') {
            self.by_env.push((name, found.clone()));
        }
        self.read(&found, depth + 1)
    }

    fn libraries(
        &mut self,
        path: &Path,
        file: std::fs::File,
        head: &[u8],
    ) -> Result<(), ProgramError> {
        if is_privileged(path, &file).map_err(|error| read_error(path, error))? {
            let path = path.to_owned();
            return Err(ProgramError::Privileged { path });
        }
        let Some(loader) = libraries::loader(path, file, head)? else {
            return Ok(());
        };
        let name = loader.file_name().unwrap_or_default().to_string_lossy();
        self.part(name.into_owned(), &loader)?;
        for library in libraries::list(&loader, path, self.environment)? {
            self.part(library.name, &library.path)?;
        }
        Ok(())
    }

    /// Relative entries find libraries among the inputs of a run. The inputs count; that they are looked at must too.
    fn relative_libraries(&mut self) {
        for name in ["LD_LIBRARY_PATH", "LD_PRELOAD"] {
            let value = value(self.environment, name).unwrap_or_default();
            if value.is_empty() {
                continue;
            }
            let mut entries = value.as_bytes().split(|byte| b":; ".contains(byte));
            if entries.any(|entry| !entry.starts_with(b"/")) {
                self.program.parts.push(Part {
                    name: format!("relative {name}"),
                    digest: Digest::from(*blake3::hash(value.as_bytes()).as_bytes()),
                    path: PathBuf::from(value),
                });
            }
        }
    }

    /// In a virtual environment of Python, a file beside the program or above it decides what is imported.
    fn virtual_environment(&mut self, path: &Path) -> Result<(), ProgramError> {
        for folder in path.ancestors().skip(1).take(2) {
            let settings = folder.join("pyvenv.cfg");
            if settings.is_file() {
                // Two environments may have one text, and other packages.
                self.part(settings.display().to_string(), &settings)?;
            }
        }
        Ok(())
    }

    fn part(&mut self, name: String, path: &Path) -> Result<(), ProgramError> {
        if self.program.parts.iter().any(|part| part.path == path) {
            return Ok(());
        }
        let digest = self
            .digests
            .of(path)
            .map_err(|error| read_error(path, error))?;
        let path = path.to_owned();
        self.program.parts.push(Part { name, digest, path });
        Ok(())
    }

    /// Refuses a script for which `env` would find another program in the run than was read.
    fn check_env(&self) -> Result<(), ProgramError> {
        if self.by_env.is_empty() {
            return Ok(());
        }
        let search = search_path(&self.program, self.environment)?;
        for (name, found) in &self.by_env {
            let relative = std::env::split_paths(&search)
                .take_while(|entry| Some(entry.as_path()) != found.parent())
                .any(|entry| !entry.is_absolute());
            let other = match find_absolute(name, &search) {
                Ok(_) if relative => "looked for first in the folder of the run".to_owned(),
                Ok(other) if other == *found => continue,
                Ok(other) => format!("{other:?}"),
                Err(_) => "nothing".to_owned(),
            };
            return Err(ProgramError::Hidden {
                name: name.clone(),
                found: found.clone(),
                other,
                search,
            });
        }
        Ok(())
    }
}

/// Whether the loader would pass over LD_LIBRARY_PATH in a run, and not when it is asked.
fn is_privileged(path: &Path, file: &std::fs::File) -> io::Result<bool> {
    if file.metadata()?.mode() & 0o6000 != 0 {
        return Ok(true);
    }
    let mut attribute = [0_u8; 64];
    Ok(rustix::fs::getxattr(path, "security.capability", &mut attribute).is_ok())
}

#[cfg(test)]
mod tests;
