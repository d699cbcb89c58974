//! The options as a command.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use sde_command::{Command, Trace};
use tempfile::NamedTempFile;

use super::Exec;
use crate::args;
use crate::failure::Failure;

impl Exec {
    /// The command, and the file that its standard input is read from, if that is this process's.
    pub fn command(&self) -> Result<(Command, Option<NamedTempFile>), Failure> {
        let (program, args) = self
            .line
            .split_first()
            .ok_or_else(|| Failure::told("which program?"))?;
        let mut command = Command::new(program).args(args);
        command = self.inputs(command);
        command = self.rules(command)?;
        for (name, _) in self.outputs() {
            command = command.output(name);
        }
        // Refused before anything runs.
        self.places()?;
        self.check_store()?;
        for name in &self.compare {
            command = command.compare(name);
        }
        if let Some(name) = &self.name {
            command = command.name(name);
        }
        if let Some(text) = &self.program_is {
            command = command.program_is(text);
        }
        if let Some(image) = &self.image {
            command = command.image(image);
        }
        command = match self.trace.as_deref() {
            None => command,
            Some("strict") => command.trace(Trace::Strict),
            Some(_) => command.trace(Trace::Warn),
        };
        if let Some(folder) = &self.scratch {
            command = command.scratch(folder);
        }
        if let Some(time) = self.timeout {
            command = command.timeout(time);
        }
        if let Some(time) = self.grace {
            command = command.grace(time);
        }
        if let Some(times) = self.retry {
            command = command.retry(times);
        }
        if let Some(time) = self.carry_every {
            command = command.carry_every(time);
        }
        command = self.carry.iter().fold(command, Command::carry);
        for (is_set, set) in [
            (self.link, Command::link as fn(Command) -> Command),
            (self.rehash, Command::rehash),
            (self.keep_failures, Command::keep_failures),
            (self.again, Command::again),
        ] {
            if is_set {
                command = set(command);
            }
        }
        // Read last: what is refused is refused before somebody types.
        Ok(match &self.stdin {
            None => (command, None),
            Some(file) if file == Path::new("-") => {
                let spooled = spooled(&self.scratch_folder());
                let (path, spooled) = spooled.map_err(|error| {
                    Failure::told(format!("keeping standard input for the program: {error}; --scratch names another folder"))
                })?;
                (command.stdin(path), Some(spooled))
            }
            Some(file) => (command.stdin(file), None),
        })
    }

    fn inputs(&self, mut command: Command) -> Command {
        for input in &self.input {
            command = match input
                .rsplit_once('=')
                .filter(|_| !Path::new(input).exists())
            {
                Some((file, name)) => command.input(name, file),
                None => command.input_file(input),
            };
        }
        for folder in &self.tree {
            command = command.tree(folder);
        }
        for variable in &self.env {
            command = match variable.split_once('=') {
                Some((name, value)) => command.env(name, value),
                None => command.env_inherited(variable),
            };
        }
        command = self.pass.iter().fold(command, Command::pass);
        command = self.uses.iter().fold(command, Command::uses);
        self.text.iter().fold(command, Command::text)
    }

    fn rules(&self, mut command: Command) -> Result<Command, Failure> {
        for status in &self.ok_status {
            command = command.ok_status((*status).into());
        }
        for expression in &self.require {
            command = command.require(expression);
        }
        for expression in &self.reject {
            command = command.reject(expression);
        }
        for value in &self.get {
            let (name, expression) = args::named_value(value)?;
            command = command.get(name, expression);
        }
        Ok(command)
    }

    /// Names of outputs as they are declared, with the paths where they are to be put.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.output
            .iter()
            .map(|output| match output.split_once('=') {
                Some((name, path)) => (name, Some(path)),
                None => (&**output, None),
            })
    }

    /// Each run writes to the store: a folder that holds it would be another input each time. Outputs are no files of it.
    fn check_store(&self) -> Result<(), Failure> {
        let real = |path: &Path| {
            std::path::absolute(path)
                .and_then(|path| path.canonicalize())
                .ok()
        };
        // It may not be there yet, but the folder that it will be in is.
        let store = self.store().and_then(|store| {
            let store = std::path::absolute(store).ok()?;
            Some(real(store.parent()?)?.join(store.file_name()?))
        });
        let mut folders = self
            .tree
            .iter()
            .cloned()
            .chain(self.uses.iter().map(PathBuf::from));
        let puts = |store: &PathBuf| {
            let mut written = self.written();
            written.find(|(place, _)| Path::new(place).starts_with(store))
        };
        if let Some((place, _)) = store.as_ref().and_then(puts) {
            return Err(Failure::told(format!(
                "{place} is refused as the place of an output: it is in the store; -o NAME=PATH names another"
            )));
        }
        let holds = |store: &PathBuf| {
            folders.find(|folder| {
                real(folder).is_some_and(|real| real.is_dir() && store.starts_with(real))
            })
        };
        match store.as_ref().and_then(holds) {
            None => Ok(()),
            Some(folder) => Err(Failure::told(format!(
                "{} is refused: the store lies in it, and is written by each run; name what the run needs of it, or another \
                 store (--store)",
                folder.display()
            ))),
        }
    }

    /// The outputs that are not put below the current folder under their names, and where they are put.
    pub fn places(&self) -> Result<Vec<(&str, PathBuf)>, Failure> {
        let mut places = Vec::new();
        let mut names: Vec<&str> = self.outputs().map(|(name, _)| name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::told(format!(
                "the output {:?} is refused: it is named twice, and has one place",
                pair[0]
            )));
        }
        for (name, path) in self.outputs() {
            let Some(path) = path else {
                continue;
            };
            let name = name.strip_prefix('?').unwrap_or(name).trim_end_matches('/');
            if name.contains(['*', '?', '[']) {
                return Err(Failure::told(format!(
                    "the output {name:?} is refused: a pattern can't be put at one path, {path:?}; leave `={path}` out, and \
                     its files are put below the current folder"
                )));
            }
            places.push((name, PathBuf::from(path)));
        }
        Ok(places)
    }
}

/// The whole standard input in a file, with a path to read it by. It has no name where a path by its number leads to it:
/// a kill leaves nothing then.
fn spooled(folder: &Path) -> io::Result<(PathBuf, NamedTempFile)> {
    let mut file = tempfile::Builder::new()
        .prefix("sde-stdin-")
        .tempfile_in(folder)?;
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match path.exists() {
        true => fs::remove_file(&file)?,
        false => path = file.path().to_owned(),
    }
    io::copy(&mut io::stdin().lock(), &mut file)?;
    Ok((path, file))
}

/// Where a file is put: at the path that was given for it or for the folder that it is in, else under its name.
pub fn place(places: &[(&str, PathBuf)], file: &str) -> PathBuf {
    let below = |(name, path): &(&str, PathBuf)| {
        let rest = Path::new(file).strip_prefix(name).ok()?;
        Some(match rest == Path::new("") {
            true => path.clone(),
            false => path.join(rest),
        })
    };
    places
        .iter()
        .find_map(below)
        .unwrap_or_else(|| PathBuf::from(file))
}
