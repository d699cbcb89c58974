//! Why a program can't be identified.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Tells why a program was not found, or why it can't be told what its code is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// No file of that name.
    #[error(
        "there is no program {name:?} (looked for in {searched:?}); give its path, or add its folder to PATH"
    )]
    NotFound { name: OsString, searched: OsString },
    /// A file is there, and may not be executed.
    #[error("{path:?} is not executable; `chmod +x` it, or run it by its interpreter")]
    NotExecutable { path: PathBuf },
    /// A folder, a device or a pipe.
    #[error("{path:?} is not a regular file, so it is no program; name the program itself")]
    NotAFile { path: PathBuf },
    /// The operating system refused.
    #[error("can't read {path:?}, a part of the program's code: {source}; make it readable")]
    Read { path: PathBuf, source: io::Error },
    /// Neither ELF nor `#!`.
    #[error(
        "{path:?} is neither an ELF program nor a script that begins with `#!` and an interpreter; add that line, or name its identity by `--program-is`"
    )]
    Format { path: PathBuf },
    /// A `#!` line whose interpreter is not known before the run.
    #[error(
        "can't tell which interpreter runs {path:?}: its first line, `#!{line}`, {why}; name the interpreter by its absolute path there, or the identity by `--program-is`"
    )]
    Interpreter {
        path: PathBuf,
        line: String,
        why: &'static str,
    },
    /// Interpreters that are scripts themselves, more than the system follows.
    #[error(
        "{path:?} is an interpreter of an interpreter, more than {most} deep; shorten the chain of `#!` lines"
    )]
    Deep { path: PathBuf, most: usize },
    /// `env` would find another program in the run than was identified.
    #[error(
        "{name:?} is {found:?} here, but {other:?} in the run's PATH ({search:?}); declare the PATH by `--env PATH`"
    )]
    Hidden {
        name: OsString,
        found: PathBuf,
        other: String,
        search: OsString,
    },
    /// A folder that PATH can't hold.
    #[error(
        "the folder of {path:?} has a `:` in its name, which PATH can't hold; rename the folder, or declare the PATH by `--env PATH`"
    )]
    Colon { path: PathBuf },
    /// A program that runs with other rights than the user's.
    #[error(
        "{path:?} runs with more rights than its user (setuid, setgid or capabilities), so it may load other libraries than can be told; name its identity by `--program-is`"
    )]
    Privileged { path: PathBuf },
    /// The dynamic loader finds no such library.
    #[error(
        "{program:?} needs the library {library}, which is not found; declare the LD_LIBRARY_PATH that has it"
    )]
    Library { program: PathBuf, library: String },
    /// The dynamic loader fails, or prints what isn't understood.
    #[error("can't tell the libraries of {program:?}: `{loader} --list` said: {said}; see that the program starts on this machine, or name its identity by `--program-is`",
        loader = loader.display())]
    Loader {
        loader: PathBuf,
        program: PathBuf,
        said: String,
    },
}
