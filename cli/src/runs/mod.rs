//! Runs of commands, as they are stored: those of `sde exec` and of `sde_command::Command`.

mod contents;
mod judge;

use std::collections::BTreeMap;

use sde::key::Digest;
use sde::record::ValueSummary;
use sde_archives::inspect::{Decoded, Entry};

use crate::columns::{self, Cell, Cells, Columns, Kind};

pub use contents::Contents;
pub use judge::{judge, kept_rules};

/// The app that keeps which rules were asked for last, of each app of commands.
pub const RULES: &str = "sde.rules";

/// The largest list of outputs that is read.
const LONGEST: u64 = 64 << 20;

/// The digits of a digest that are shown.
const DIGITS: usize = 12;

/// An entry that is a run of a command, or the record of one that did not end by itself.
pub enum Run {
    Whole(Whole),
    /// Its command line.
    Ended(String),
}

/// A run that ended by itself.
pub struct Whole {
    pub status: i32,
    pub line: String,
    pub stdout: Held,
    pub stderr: Held,
    pub files: BTreeMap<String, Held>,
    /// The names of the declared outputs, as a record has them: cut off if they are many.
    declared: String,
}

/// What a file holds.
#[derive(Clone, Copy)]
pub struct Held {
    pub digest: Digest,
    pub length: u64,
}

impl Run {
    pub fn of(entry: &Entry) -> Option<Self> {
        let input = |name: &str| entry.record.inputs.iter().find(|one| one.name == name);
        let result = |name: &str| {
            let saved = entry.results.iter().find(|saved| saved.name == name)?;
            saved.payload.as_ref()?.value(LONGEST).ok()
        };
        // Read only if the names are those of a command.
        input("command")?;
        let Decoded::Text(line) = result("command")? else {
            return None;
        };
        if input("ended").is_some() {
            return Some(Self::Ended(line));
        }
        let Decoded::Integer(status) = result("status")? else {
            return None;
        };
        Some(Self::Whole(Whole {
            status: i32::try_from(status).ok()?,
            line,
            stdout: Held::of(&result("stdout")?)?,
            stderr: Held::of(&result("stderr")?)?,
            files: named_files(&result("files")?)?,
            declared: input("outputs").map(text).unwrap_or_default(),
        }))
    }

    pub fn whole(&self) -> Option<&Whole> {
        match self {
            Self::Whole(run) => Some(run),
            Self::Ended(..) => None,
        }
    }

    /// What a line of a list says of it, if it is worth saying.
    pub fn note(&self) -> String {
        match self {
            Self::Ended(..) => "ended".to_owned(),
            Self::Whole(run) if run.status != 0 => format!("status {}", run.status),
            Self::Whole(_) => String::new(),
        }
    }

    /// The command as it was typed, without the folder of the program.
    pub fn line(&self) -> &str {
        let (Self::Ended(line) | Self::Whole(Whole { line, .. })) = self;
        let program = line.split(' ').next().unwrap_or_default();
        match program.contains('\'') {
            true => line,
            false => &line[program.rfind('/').map_or(0, |at| at + 1)..],
        }
    }

    /// The cells of what it was given: the command as one text, inputs by the first digits of their digests, variables.
    pub fn given(&self, entry: &Entry, columns: &mut Columns) -> Cells {
        let inputs = entry.record.inputs.iter();
        let cells = inputs.filter_map(|input| {
            let given = match &*input.name {
                "command" => self.line().to_owned(),
                "outputs" | "ended" => return None,
                name if name.starts_with("./") || name == "stdin" => {
                    text(input).chars().take(DIGITS).collect()
                }
                _ => text(input),
            };
            let cell = Cell::Text(given.into());
            Some((columns.column(Kind::Input, &input.name), cell))
        });
        cells.collect()
    }
}

impl Whole {
    /// The digests of all that it wrote.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        let printed = [&self.stdout, &self.stderr].into_iter();
        printed.chain(self.files.values()).map(|file| file.digest)
    }

    /// Whether this was declared as an output.
    fn is_declared(&self, output: &str) -> bool {
        self.files.contains_key(output) || self.declared.contains(&format!("{output:?}"))
    }
}

impl Held {
    fn of(file: &Decoded) -> Option<Self> {
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

/// The files of a map of such by name.
pub fn named_files(value: &Decoded) -> Option<BTreeMap<String, Held>> {
    let Decoded::Map(files) = value else {
        return None;
    };
    let file = |(name, file): &(Decoded, Decoded)| match name {
        Decoded::Text(name) => Some((name.clone(), Held::of(file)?)),
        _ => None,
    };
    files.iter().map(file).collect()
}

/// A text among inputs, cut off if it is long.
fn text(input: &ValueSummary) -> String {
    let short = || input.short.trim_matches('"').to_owned();
    input.scalar.as_ref().map_or_else(short, columns::text)
}
