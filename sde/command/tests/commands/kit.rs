//! A folder with a script in it that counts its runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sde_command::{Command, CommandError, Ran};
use sde_engine::{Handle, Sde};
use tempfile::TempDir;

pub struct Lab {
    dir: TempDir,
    pub sde: Sde,
}

impl Lab {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            sde: Sde::new(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A script of `sh`, which first counts that it runs.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let count = self.path("count");
        let path = self.write(
            name,
            &format!("#!/bin/sh\necho >> {}\n{text}\n", count.display()),
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// How often scripts ran.
    pub fn runs(&self) -> usize {
        fs::read_to_string(self.path("count")).map_or(0, |text| text.lines().count())
    }

    /// A command whose relative paths are in this folder.
    pub fn command(&self, program: &Path) -> Command {
        Command::new(program.to_str().unwrap()).folder(self.dir.path())
    }

    pub fn run(&self, command: &Command) -> Ran {
        run(command, &self.sde)
    }

    pub fn error(&self, command: &Command) -> String {
        match command.run(&self.sde) {
            Ok(ran) => panic!("{command:?} gave {ran:?}"),
            Err(error) => Lines(error).to_string(),
        }
    }
}

pub fn run(command: &Command, sde: &Handle) -> Ran {
    command
        .run(sde)
        .unwrap_or_else(|error| panic!("{}", Lines(error)))
}

/// An error with its causes.
pub struct Lines(pub CommandError);

impl std::fmt::Display for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = std::error::Error::source(&self.0);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

pub fn text(bytes: std::io::Result<Vec<u8>>) -> String {
    String::from_utf8(bytes.unwrap()).unwrap()
}
