//! What counts as the code of a command: its program, and what it uses.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sde_engine::AppInfo;
use sde_engine::record::CodeId;

use crate::builder::Command;
use crate::error::CommandError;
use crate::given::Given;
use crate::program::{self, Digests, Part, Program};
use crate::results;
use crate::tree;
use crate::uses::{self, ABSENT, is_name, read_only, started};

/// The program, and all else that counts as code.
pub(crate) struct Code {
    pub(crate) program: Program,
    /// Programs that it starts.
    pub(crate) starts: Vec<Part>,
    /// Files and folders that it reads.
    pub(crate) reads: Vec<Part>,
    /// Programs that it starts and that are looked for by name.
    pub(crate) names: Vec<String>,
    pub(crate) search: OsString,
    pub(crate) environment: Vec<(OsString, OsString)>,
    digests: Digests,
}

impl Code {
    pub(crate) fn new(
        command: &Command,
        base: &Path,
        digests: Digests,
    ) -> Result<Self, CommandError> {
        if let Some(image) = &command.image {
            return Self::in_image(command, &base.join(image), digests);
        }
        let callers = std::env::var_os("PATH").unwrap_or_default();
        let failed = |error| CommandError::program(format!("running {}", command.program), error);
        let path = program::find(command.program.as_ref(), base, &callers).map_err(failed)?;
        uses::check_names(command, base, &callers)?;
        let mut environment = environment(command);
        let program = match program::read(&path, &callers, &environment, &digests) {
            // Its text takes the place of what can't be told of it.
            Err(_) if command.program_is.is_some() => Program::untold(path),
            program => program.map_err(failed)?,
        };
        let search = search(command, base, &callers, &program, &mut environment)?;
        let (mut starts, mut reads) = (Vec::new(), Vec::new());
        for used in &command.uses {
            match read_only(used, base, &digests)? {
                Some(part) => reads.push(part),
                // Its text takes the place of these, but a trace knows them.
                None if command.program_is.is_some() => {
                    if command.trace.is_some() {
                        let parts = started(used, base, &search, &environment, &digests);
                        starts.extend(parts.unwrap_or_default());
                    }
                }
                None => starts.extend(started(used, base, &search, &environment, &digests)?),
            }
        }
        let names = command.uses.iter().filter(|used| is_name(used, base));
        Ok(Self {
            program,
            starts,
            reads,
            names: names.cloned().collect(),
            search,
            environment,
            digests,
        })
    }

    /// The code of a run in an image: the image.
    fn in_image(command: &Command, image: &Path, digests: Digests) -> Result<Self, CommandError> {
        let failed = |error| CommandError::file("reading the image", image, error);
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        let part = Part {
            name: format!("image {name}"),
            digest: digests.of(image).map_err(failed)?,
            path: image.to_owned(),
        };
        let mut program = Program::untold(PathBuf::from(&command.program));
        program.parts.push(part);
        Ok(Self {
            program,
            starts: Vec::new(),
            reads: Vec::new(),
            names: Vec::new(),
            search: OsString::new(),
            environment: environment(command),
            digests,
        })
    }

    /// Counts inputs that are programs: with their libraries and interpreters. What is none is a file.
    pub(crate) fn add_inputs(&mut self, files: &BTreeMap<String, Given>) {
        for (name, given) in files {
            let read = given
                .executable()
                .map(|path| program::read(path, &self.search, &self.environment, &self.digests));
            let parts = read
                .and_then(Result::ok)
                .map(|read| read.parts)
                .unwrap_or_default();
            // The file itself is an input.
            self.starts
                .extend(parts.into_iter().skip(1).map(|part| part.of(name)));
        }
    }

    /// Whether all that counts where it lies is as it was when the key was made.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.digests.check()?;
        let folders = self.reads.iter().filter(|part| part.path.is_dir());
        let folders = folders.filter(|part| part.digest != ABSENT);
        for part in folders {
            if tree::digest(&part.path).map_err(io::Error::other)? != part.digest {
                return Err(io::Error::other(format!(
                    "{} was changed while the program ran",
                    part.name
                )));
            }
        }
        let mut absent = self.reads.iter().filter(|part| part.digest == ABSENT);
        match absent.find(|part| part.path.symlink_metadata().is_ok()) {
            Some(part) => Err(io::Error::other(format!(
                "{} came to be while the program ran",
                part.path.display()
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn info(&self, command: &Command, app: &str) -> AppInfo {
        let app = app.to_owned();
        let info = match (&command.program_is, &self.program.parts[..]) {
            (None, [own, parts @ ..]) => {
                let info = AppInfo::with_code(app, CodeId::Source(own.digest));
                with(info, parts.iter().chain(&self.starts).chain(&self.reads))
            }
            (text, _) => {
                let info = AppInfo::new(app, text.clone().unwrap_or_default());
                with(info, self.reads.iter())
            }
        };
        results::of_run(info, command.trace.is_some())
    }
}

/// The `PATH` of the run, which goes into its environment. A program of `--uses` is the one that the caller finds.
fn search(
    command: &Command,
    base: &Path,
    callers: &OsString,
    program: &Program,
    environment: &mut Vec<(OsString, OsString)>,
) -> Result<OsString, CommandError> {
    let failed = |error| CommandError::program(format!("running {}", command.program), error);
    let mut search = program::search_path(program, environment).map_err(failed)?;
    let named = command.uses.iter().filter(|used| is_name(used, base));
    let missing = |used: &String| {
        let why = "neither a file or folder here nor a program in PATH has that name";
        CommandError::refused(format!("--uses {used}"), why)
    };
    let found = |used: &String, path: &OsString| program::find(used.as_ref(), base, path);
    if !environment.iter().any(|(name, _)| name == "PATH") {
        for used in named.clone() {
            let path = found(used, callers).map_err(|_| missing(used))?;
            search.push(":");
            search.push(path.parent().unwrap_or(base));
        }
        environment.push(("PATH".into(), search.clone()));
    }
    for used in named {
        let real = |path: &OsString| found(used, path).ok()?.canonicalize().ok();
        if real(&search) != real(callers) {
            return Err(CommandError::refused(
                format!("--uses {used}"),
                format!(
                    "the run would find another {used} in its PATH, or none: declare PATH (--env PATH)"
                ),
            ));
        }
    }
    Ok(search)
}

fn with<'a>(info: AppInfo, mut parts: impl Iterator<Item = &'a Part>) -> AppInfo {
    // Two libraries of one name may lie in two folders.
    let mut seen = BTreeMap::new();
    parts.by_ref().fold(info, |info, part| {
        let count = seen.entry(part.name.clone()).or_insert(0);
        *count += 1;
        let name = match count {
            1 => part.name.clone(),
            count => format!("{} ({count})", part.name),
        };
        info.helper(name, part.digest)
    })
}

pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// The environment of the program, but for its PATH and folders where these are not declared.
fn environment(command: &Command) -> Vec<(OsString, OsString)> {
    let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
    // The libraries of an image are its own.
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH").filter(|_| command.image.is_none()) {
        environment.insert("LD_LIBRARY_PATH".into(), path);
    }
    for variable in &command.variables {
        let value = variable.value.as_ref().map(OsString::from);
        match value.or_else(|| std::env::var_os(&variable.name)) {
            Some(value) => environment.insert(variable.name.clone().into(), value),
            None => environment.remove(std::ffi::OsStr::new(&variable.name)),
        };
    }
    environment.into_iter().collect()
}
