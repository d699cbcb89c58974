//! Reading the rest of the command line, the same way for each command.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::failure::Failure;

/// An option as it was met.
pub enum Met {
    /// `--name`, or `-n`.
    Option(String),
    /// Anything else.
    Value(OsString),
}

/// The arguments of one command.
pub struct Arguments {
    parser: lexopt::Parser,
    command: &'static str,
    values: Vec<OsString>,
    pub json: bool,
}

impl Arguments {
    pub fn new(parser: lexopt::Parser, command: &'static str) -> Self {
        Self {
            parser,
            command,
            values: Vec::new(),
            json: false,
        }
    }

    /// The next option that is the command's own; values are kept.
    ///
    /// `None`: that was all. An error if it can't be read.
    pub fn option(&mut self) -> Result<Option<String>, Failure> {
        loop {
            let met = match self.parser.next()? {
                None => return Ok(None),
                Some(Long(name)) => Met::Option(name.to_owned()),
                Some(Short(name)) => Met::Option(name.to_string()),
                Some(Value(value)) => Met::Value(value),
            };
            match met {
                Met::Value(value) => self.values.push(value),
                Met::Option(name) if name == "json" => self.json = true,
                Met::Option(name) => return Ok(Some(name)),
            }
        }
    }

    /// The value of the option just met.
    pub fn text(&mut self) -> Result<String, Failure> {
        let value = self.parser.value()?;
        value
            .into_string()
            .map_err(|value| Failure::told(format!("{} is no text", value.to_string_lossy())))
    }

    pub fn path(&mut self) -> Result<PathBuf, Failure> {
        Ok(self.parser.value()?.into())
    }

    /// The value of the option just met, as `read` understands it; else an error that says what
    /// was expected.
    pub fn read<T>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Failure> {
        let text = self.text()?;
        read(&text).ok_or_else(|| Failure::told(format!("\"{text}\" is not {expected}")))
    }

    pub fn unknown(&self, option: &str) -> Failure {
        let dashes = if option.chars().count() == 1 {
            "-"
        } else {
            "--"
        };
        Failure::told(format!(
            "`sde {0}` has no option {dashes}{option}; `sde {0} --help` lists them",
            self.command
        ))
    }

    /// The values, which must be so many, named so.
    pub fn values<const N: usize>(
        self,
        names: [&str; N],
        optional: usize,
    ) -> Result<[Option<OsString>; N], Failure> {
        let given = self.values.len();
        let needed = N - optional;
        if given < needed || given > N {
            return Err(Failure::told(format!(
                "`sde {0}` takes {1}, {given} given; `sde {0} --help` says more",
                self.command,
                names.join(" ")
            )));
        }
        let mut values = self.values.into_iter();
        Ok(std::array::from_fn(|_| values.next()))
    }
}
