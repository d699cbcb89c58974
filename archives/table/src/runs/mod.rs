//! Runs of commands, as they are stored: those of `sde exec` and of `sde_command::Command`.

mod contents;
mod judge;

use std::collections::BTreeMap;
use std::sync::Arc;

use sde::key::Digest;
use sde::record::ValueSummary;
use sde_archives::inspect::{Decoded, Entry};
use sde_command::{RuleError, Rules, Traced, results};

use crate::columns::{self, Cell, Cells, Columns, Kind};
use crate::error::Error;

pub use contents::Contents;
pub use judge::{failed, failing, judge, judge_all, kept_rules};

/// The largest list of outputs that is read.
const LONGEST: u64 = 64 << 20;

/// An entry that is a run of a command, or the failure of one that did not end by itself.
#[derive(Debug)]
pub enum Run {
    /// A run that ended by itself.
    Whole(RunResults),
    /// Its command line.
    Ended(String),
}

/// A run that ended by itself.
#[derive(Debug)]
pub struct RunResults {
    /// The exit status.
    pub status: i32,
    /// The command line.
    pub line: String,
    /// Standard output.
    pub stdout: FileContent,
    /// Standard error.
    pub stderr: FileContent,
    /// The output files, by name.
    pub files: BTreeMap<String, FileContent>,
    /// What its trace found, if it was traced.
    pub traced: Option<Box<Traced>>,
    /// The names and patterns of the declared outputs.
    declared: Vec<String>,
    /// Why attempts before it failed.
    pub attempts: Vec<String>,
    /// Whether it went on from what an attempt before it left.
    pub is_resumed: bool,
    /// Where it was made, and in which job.
    pub host: Arc<str>,
    /// The job it was made in; empty without one.
    pub job: Arc<str>,
    /// Whether what it wrote could not be read.
    pub is_not_judged: bool,
}

/// What a file holds.
#[derive(Debug, Clone, Copy)]
pub struct FileContent {
    /// The digest of its content.
    pub digest: Digest,
    /// Its length in bytes.
    pub length: u64,
}

impl Run {
    /// The run that an entry is; `None` if it is of another app.
    pub fn of(entry: &Entry) -> Option<Self> {
        let input = |name: &str| entry.record.inputs.iter().find(|one| one.name == name);
        let result = |name: &str| result(entry, name);
        // Read only if the names are those of a command.
        let command = input(results::COMMAND)?;
        if entry.record.failure.is_some() {
            return Some(Self::Ended(text(command)));
        }
        let Decoded::Text(line) = result(results::COMMAND)? else {
            return None;
        };
        let Decoded::Integer(status) = result(results::STATUS)? else {
            return None;
        };
        Some(Self::Whole(RunResults {
            status: i32::try_from(status).ok()?,
            line,
            stdout: FileContent::of(&result(results::STDOUT)?)?,
            stderr: FileContent::of(&result(results::STDERR)?)?,
            files: named_files(&result(results::FILES)?)?,
            traced: match result(results::TRACED) {
                Some(Decoded::Text(kept)) => Some(Box::new(Traced::read(&kept))),
                _ => None,
            },
            declared: texts(result(results::DECLARED)?)?,
            attempts: result(results::ATTEMPTS)
                .and_then(texts)
                .unwrap_or_default(),
            is_resumed: matches!(result(results::RESUMED), Some(Decoded::Bool(true))),
            host: Arc::clone(&entry.record.host),
            job: Arc::clone(&entry.record.job),
            is_not_judged: false,
        }))
    }

    /// The run, if it ended by itself.
    pub fn whole(&self) -> Option<&RunResults> {
        match self {
            Self::Whole(run) => Some(run),
            Self::Ended(..) => None,
        }
    }

    /// The run to be changed, if it ended by itself.
    pub fn whole_mut(&mut self) -> Option<&mut RunResults> {
        match self {
            Self::Whole(run) => Some(run),
            Self::Ended(..) => None,
        }
    }

    /// What a line of a list says of it, if it is worth saying. It may fail by rules.
    pub fn note(&self, fails: bool) -> String {
        match self {
            Self::Ended(..) => String::new(),
            Self::Whole(run) if run.status != 0 => format!("status {}", run.status),
            Self::Whole(run) if run.is_not_judged => "not judged".to_owned(),
            Self::Whole(_) if fails => "fails".to_owned(),
            Self::Whole(_) => String::new(),
        }
    }

    /// The command as it was typed, without the folder of the program.
    pub fn line(&self) -> &str {
        let (Self::Ended(line) | Self::Whole(RunResults { line, .. })) = self;
        let program = line.split(' ').next().unwrap_or_default();
        match program.contains('\'') {
            true => line,
            false => &line[program.rfind('/').map_or(0, |at| at + 1)..],
        }
    }

    /// The cells of what it was given: the command as one text, its files and folders as one, with the first digits
    /// of their digests, and variables. A column for each file would be one for each run where they are inputs by name.
    pub fn given(&self, entry: &Entry, columns: &mut Columns) -> Cells {
        let inputs = &entry.record.inputs;
        let digits = |input| {
            text(input)
                .chars()
                .take(columns::DIGITS)
                .collect::<String>()
        };
        let files = inputs.iter().filter_map(|input| {
            let name = input.name.strip_prefix("./")?;
            Some(format!("{name} {}", digits(input)))
        });
        let files = files.collect::<Vec<_>>().join(", ");
        let mut cells = Cells::new();
        let mut add = |name: &str, given: String| {
            let cell = Cell::Text(given.into());
            cells.push((columns.column(Kind::Input, name), cell));
        };
        add(results::COMMAND, self.line().to_owned());
        if !files.is_empty() {
            add("inputs", files);
        }
        for input in inputs.iter() {
            match &*input.name {
                results::COMMAND | "outputs" => {}
                name if name.starts_with("./") => {}
                "stdin" => add("stdin", digits(input)),
                name => add(name, text(input)),
            }
        }
        let parts = &entry.record.setup.helpers;
        if !parts.is_empty() {
            let mut hasher = blake3::Hasher::new();
            for part in parts {
                hasher.update(part.name.as_bytes());
                hasher.update(part.digest.as_bytes());
            }
            let digest = Digest::from_bytes(*hasher.finalize().as_bytes());
            // Shown where runs differ in it.
            let column = columns.column(Kind::Digest, "libraries");
            cells.push((column, Cell::Text(columns::short(&digest).into())));
        }
        cells
    }
}

impl RunResults {
    /// The digests of all that it wrote.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        let printed = [&self.stdout, &self.stderr].into_iter();
        printed.chain(self.files.values()).map(|file| file.digest)
    }
}

impl FileContent {
    /// `None` if it is no output file.
    pub fn of(file: &Decoded) -> Option<Self> {
        let Decoded::Map(fields) = file else {
            return None;
        };
        let field = |name: &str| {
            let is_it = |key: &Decoded| matches!(key, Decoded::Text(key) if key == name);
            fields
                .iter()
                .find(|(key, _)| is_it(key))
                .map(|(_, value)| value)
        };
        let Decoded::Integer(length) = field("length")? else {
            return None;
        };
        let byte = |byte: &Decoded| match byte {
            Decoded::Integer(byte) => u8::try_from(*byte).ok(),
            _ => None,
        };
        let digest = match field("digest")? {
            Decoded::Bytes(bytes) => bytes.clone(),
            Decoded::Numbers(_, bytes) => bytes.clone(),
            Decoded::List(bytes) => bytes.iter().map(byte).collect::<Option<_>>()?,
            _ => return None,
        };
        Some(Self {
            digest: Digest::from_bytes(digest.try_into().ok()?),
            length: u64::try_from(*length).ok()?,
        })
    }
}

/// The rules of the call that made a run.
pub fn rules_then(entry: &Entry) -> Result<Rules, Error> {
    let unread = |why: &str| {
        Error::told(format!(
            "the rules that it was made with can't be read: {why}"
        ))
    };
    match result(entry, results::RULES) {
        Some(Decoded::Text(rules)) => rules
            .parse()
            .map_err(|error: RuleError| unread(&error.to_string())),
        _ => Err(unread("the store does not have them")),
    }
}

fn result(entry: &Entry, name: &str) -> Option<Decoded> {
    let saved = entry.results.iter().find(|saved| saved.name == name)?;
    saved.payload.as_ref()?.value(LONGEST).ok()
}

fn texts(list: Decoded) -> Option<Vec<String>> {
    let Decoded::List(items) = list else {
        return None;
    };
    let text = |item| match item {
        Decoded::Text(text) => Some(text),
        _ => None,
    };
    items.into_iter().map(text).collect()
}

/// The files of a map of such by name.
pub fn named_files(value: &Decoded) -> Option<BTreeMap<String, FileContent>> {
    let Decoded::Map(files) = value else {
        return None;
    };
    let file = |(name, file): &(Decoded, Decoded)| match name {
        Decoded::Text(name) => Some((name.clone(), FileContent::of(file)?)),
        _ => None,
    };
    files.iter().map(file).collect()
}

/// A text among inputs, cut off if it is long.
fn text(input: &ValueSummary) -> String {
    let short = || input.short.trim_matches('"').to_owned();
    input.scalar.as_ref().map_or_else(short, columns::text)
}
