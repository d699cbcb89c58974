//! The options as a command.

use std::io::Read;
use std::path::{Path, PathBuf};

use sde_command::{Command, RuleError};

use super::Exec;
use crate::failure::Failure;

impl Exec {
    pub fn command(&self) -> Result<Command, Failure> {
        let (program, args) = self
            .line
            .split_first()
            .ok_or_else(|| Failure::told("which program?"))?;
        let mut command = Command::new(program).args(args);
        command = self.inputs(command)?;
        command = self.rules(command).map_err(Failure::told)?;
        for (name, _) in self.outputs() {
            command = command.output(name);
        }
        // Refused before anything runs.
        self.places()?;
        for name in &self.compare {
            command = command.compare(name);
        }
        if let Some(name) = &self.name {
            command = command.name(name);
        }
        if let Some(text) = &self.program_is {
            command = command.program_is(text);
        }
        if let Some(folder) = &self.scratch {
            command = command.scratch(folder);
        }
        if let Some(time) = self.timeout {
            command = command.timeout(time);
        }
        if let Some(time) = self.grace {
            command = command.grace(time);
        }
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
        Ok(command)
    }

    fn inputs(&self, mut command: Command) -> Result<Command, Failure> {
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
        command = self.text.iter().fold(command, Command::text);
        match &self.stdin {
            None => Ok(command),
            Some(file) if file == Path::new("-") => {
                let mut bytes = Vec::new();
                let read = std::io::stdin().read_to_end(&mut bytes);
                read.map_err(|error| {
                    Failure::told(format!("standard input can't be read: {error}"))
                })?;
                Ok(command.stdin_bytes(bytes))
            }
            Some(file) => Ok(command.stdin(file)),
        }
    }

    fn rules(&self, mut command: Command) -> Result<Command, RuleError> {
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
            // Without a name there is none before the `=`, which is refused.
            let (name, expression) = value.split_once('=').unwrap_or(("", value));
            command = command.get(name, expression);
        }
        Ok(command)
    }

    /// Names of outputs as they are declared, with the paths where they are to be put.
    fn outputs(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.output
            .iter()
            .map(|output| match output.split_once('=') {
                Some((name, path)) => (name, Some(path)),
                None => (&**output, None),
            })
    }

    /// The outputs that are not put below the current folder under their names, and where they are put.
    pub fn places(&self) -> Result<Vec<(&str, PathBuf)>, Failure> {
        let mut places = Vec::new();
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
