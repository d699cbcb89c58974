//! What goes wrong with a command.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sde_engine::{Error, Key};
use thiserror::Error as ThisError;

use crate::program::ProgramError;
use crate::ran::Ran;
use crate::rules::RuleError;
use crate::tree::TreeError;

/// The error of a command.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum CommandError {
    /// The command makes no sense, or is a trap: its result would depend on something that nobody declared.
    #[error("{what} is refused: {why}")]
    #[non_exhaustive]
    Refused {
        /// What is refused.
        what: String,
        /// Why, and what to write instead.
        why: String,
    },
    /// The program, one that it uses, or a library can't be found or read.
    #[error("{what}")]
    #[non_exhaustive]
    Program {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A rule makes no sense.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A file can't be read or written.
    #[error("{doing} {}", path.display())]
    #[non_exhaustive]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The run ended by itself, and fails by its rules.
    #[error("{0}")]
    Failed(Box<Failed>),
    /// The run passes, and is not remembered, since it read what nobody declared, or could not be traced: see [`Trace::Strict`](crate::Trace::Strict).
    #[error("{0}")]
    Untraced(Box<Untraced>),
    /// The run did not end by itself: a signal, a time limit, a full disk.
    #[error("{app}{} did not end by itself: {ended}{}", shown(*key), said(&ended.tail))]
    #[non_exhaustive]
    Ended {
        /// The app.
        app: String,
        /// The key of the run. A store has its failure, with the end of what it printed.
        key: Option<Key>,
        /// How it ended.
        ended: Box<Ended>,
    },
    /// The engine failed, or the run could not be made.
    #[error(transparent)]
    Engine(#[from] Error),
}

/// A run that fails by its rules.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failed {
    /// What it gave.
    pub ran: Ran,
    /// The rules by which it fails, and what was found.
    pub rules: Vec<String>,
    /// What to do next.
    pub(crate) advice: String,
    /// The end of what it printed.
    pub(crate) tail: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (app, key) = (self.ran.app(), self.ran.key());
        write!(
            f,
            "{app} [{}] failed: {}",
            key.short(),
            self.rules.join("; ")
        )?;
        if !self.advice.is_empty() {
            let mark = if self.advice.starts_with(['\n', ';']) {
                ""
            } else {
                "; "
            };
            write!(f, "{mark}{}", self.advice)?;
        }
        match self.tail.is_empty() {
            true => Ok(()),
            false => write!(f, "\nthe end of what it printed:\n{}", self.tail.trim_end()),
        }
    }
}

/// A run that passes, and is not remembered.
#[derive(Debug)]
#[non_exhaustive]
pub struct Untraced {
    /// What it gave, and what its trace found.
    pub ran: Ran,
}

impl fmt::Display for Untraced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (app, key) = (self.ran.app(), self.ran.key());
        write!(
            f,
            "{app} [{}] is not remembered, since --trace=strict",
            key.short()
        )?;
        match self.ran.traced() {
            Some(traced) => write!(f, "\n{traced}"),
            None => Ok(()),
        }
    }
}

impl CommandError {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        let (what, why) = (what.into(), why.into());
        Self::Refused { what, why }
    }

    pub(crate) fn program(what: impl Into<String>, source: ProgramError) -> Self {
        let (what, source) = (what.into(), Box::new(source));
        Self::Program { what, source }
    }

    pub(crate) fn tree(what: impl Into<String>, source: TreeError) -> Self {
        let (what, source) = (what.into(), Box::new(source));
        Self::Program { what, source }
    }

    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        Self::File {
            doing,
            path,
            source,
        }
    }

    /// The key of the run, if it came so far.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        match self {
            Self::Failed(failed) => Some(failed.ran.key()),
            Self::Untraced(untraced) => Some(untraced.ran.key()),
            Self::Ended { key, .. } => *key,
            Self::Engine(error) => error.key().copied(),
            _ => None,
        }
    }

    /// The exit status for a program that runs commands for its user, as that of shells and of `timeout`: the program's own, or 1 if
    /// that is 0 and the run fails by other rules; 124 after the time limit; 128 + n after signal n; 126 if the program
    /// can't be executed; 127 if there is none; 125 for all else.
    #[must_use]
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Failed(failed) => failing(&failed.ran),
            Self::Untraced(untraced) => failing(&untraced.ran),
            Self::Ended { ended, .. } => ended.status,
            Self::Program { source, .. } => match source.downcast_ref::<ProgramError>() {
                Some(ProgramError::NotFound { .. }) => 127,
                Some(
                    ProgramError::NotExecutable { .. }
                    | ProgramError::NotAFile { .. }
                    | ProgramError::Format { .. },
                ) => 126,
                _ => 125,
            },
            _ => 125,
        }
    }
}

/// The status of a run that is no success.
fn failing(ran: &Ran) -> i32 {
    match ran.status() {
        0 => 1,
        status => status,
    }
}

/// A run that its trace keeps from being remembered.
#[derive(Debug, ThisError)]
#[error("the run read what nobody declared, or could not be traced")]
pub(crate) struct NotClean;

/// How a run ended that did not end by itself.
#[derive(Clone, Debug, ThisError)]
#[error("{how}{}", attempted(attempts))]
pub struct Ended {
    pub(crate) how: String,
    /// The end of what it printed.
    pub(crate) tail: String,
    /// As shells tell of such ends.
    pub(crate) status: i32,
    pub(crate) by: EndedBy,
    /// Why attempts before it failed.
    pub(crate) attempts: Vec<String>,
}

/// What ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// A signal for what the program did, such as a wrong address.
    Crash,
    /// A signal that others sent: a batch system, or the kernel for want of memory.
    Outside,
    Limit,
    /// A signal through this process, or a full disk: another attempt would end so too.
    Caller,
}

/// Tells of attempts that failed before.
pub(crate) fn attempted(before: &[String]) -> String {
    match before {
        [] => String::new(),
        before => format!(
            "; {} before it failed ({})",
            match before.len() {
                1 => "an attempt".to_owned(),
                many => format!("{many} attempts"),
            },
            distinct(before).join("; ")
        ),
    }
}

/// Each text once: attempts mostly fail alike.
fn distinct(texts: &[String]) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for text in texts {
        if !all.contains(&&**text) {
            all.push(text);
        }
    }
    all
}

fn shown(key: Option<Key>) -> String {
    key.map(|key| format!(" [{}]", key.short()))
        .unwrap_or_default()
}

fn said(tail: &str) -> String {
    match tail.trim_end() {
        "" => String::new(),
        tail => format!("\nthe end of what it printed:\n{tail}"),
    }
}
