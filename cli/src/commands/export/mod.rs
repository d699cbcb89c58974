//! `sde export`: results as files that others read.

mod field;
mod raw;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use sde_archives::inspect::{Decoded, NamedValue, Snapshot, StoredValue};
use serde_json::Map;

use crate::args::Place;
use crate::failure::Failure;
use crate::npy::{self, Array, arrays};
use crate::output::{Output, warn};
use crate::{file, json, store, text, time};
use raw::{Raw, has_files, is_raw};
use sde_table::find::find;

/// Takes results out of a store, without the program that made them
#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    place: Place,
    /// The entry, by its key or the beginning of it
    key: Option<String>,
    /// The result, or a part of it as `sde table` names it (result.log); without it all, or the only one
    name: Option<String>,
    /// Where to; without it, or as `-`, standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// What to write; without it what FILE ends in says: .cbor, .json, .npy or .npz; else an output file as it is
    #[arg(long, conflicts_with = "json")]
    format: Option<Format>,
    /// Which of several output files to write, from 1 on; of a command's outputs also by name
    #[arg(long, value_name = "N|NAME")]
    file: Option<String>,
    /// FILE may be there already, and is replaced
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The bytes as they are stored; of several results a map by name
    Cbor,
    /// Text; NaN and infinities as strings
    Json,
    /// One array, for numpy.load
    Npy,
    /// Every array there is, also in fields of values, for numpy.load
    Npz,
    /// What an output file holds, an array of bytes or a text, as it is
    Raw,
}

/// The largest value to be decoded, since that takes several times its size of memory.
const IN_MEMORY: u64 = 1 << 30;

impl Export {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let asked = self.format(out)?;
        let (path, [key, name]) = self.place.with([&self.key, &self.name])?;
        let key = super::needed(key)?;
        let (store, (job, is_all)) = store::read(&path, |store| {
            let (results, part, is_all) = results(store, &key, name.as_deref())?;
            if let (Some(path), [of]) = (part, &results[..]) {
                let value = of.payload.as_ref().map(|payload| payload.value(IN_MEMORY));
                let value = field::part(value.transpose()?.unwrap_or(Decoded::Null), path)?;
                return Ok((self.part(store, value, asked)?, is_all));
            }
            let format = asked.map_or_else(|| default_format(&results), Ok)?;
            let job = match format {
                Format::Raw => Job::Raw(Raw::of(store, results, self.file.as_deref(), IN_MEMORY)?),
                _ => {
                    let saved = results.into_iter();
                    let values = saved.filter_map(|one| Some((one.name, one.payload?)));
                    Job::Values(values.collect(), format, name.is_some())
                }
            };
            Ok((job, is_all))
        })?;
        let path = self.output.as_deref().unwrap_or(Path::new("-"));
        file::write(path, self.force, out, |mut to| job.write(&mut to))?;
        out.found |= !is_all;
        store::conclude(&store, out)
    }

    /// A part of a result. What it is as bytes needs no format.
    fn part(
        &self,
        store: &mut Snapshot,
        value: Decoded,
        asked: Option<Format>,
    ) -> Result<Job, Failure> {
        if self.file.is_some() {
            let why =
                "--file is for a result with several output files; name the part that is the file";
            return Err(Failure::told(why));
        }
        match asked {
            None if is_raw(&value) => Ok(Job::Raw(Raw::of_part(store, value)?)),
            None => Err(Failure::told(WHICH_FORMAT)),
            Some(Format::Raw) => Ok(Job::Raw(Raw::of_part(store, value)?)),
            Some(Format::Cbor) => Err(Failure::told(
                "a part of a result is not stored by itself as CBOR; export the whole result, or take another format",
            )),
            Some(format) => Ok(Job::Part(value, format)),
        }
    }

    /// The format that is asked for, or that FILE ends in.
    fn format(&self, out: &Output) -> Result<Option<Format>, Failure> {
        let ending = self.output.as_ref().and_then(|path| path.extension());
        let by_ending = ending.and_then(|ending| Format::from_str(ending.to_str()?, true).ok());
        let asked = out.json.then_some(Format::Json);
        let format = match (self.format.or(asked), by_ending) {
            // Any file name suits an output file's content.
            (Some(Format::Raw), _) => Some(Format::Raw),
            (Some(asked), Some(ending)) if asked != ending => {
                return Err(Failure::told(
                    "FILE ends in another format than that which is asked for; give it the ending of that, or none",
                ));
            }
            (asked, by_ending) => asked.or(by_ending),
        };
        match (format, &self.file) {
            (None | Some(Format::Raw), _) | (_, None) => Ok(format),
            _ => Err(Failure::told("--file is for --format raw")),
        }
    }
}

/// The format where none is asked for: of one result that is an output file, or has such, what it holds.
fn default_format(results: &[NamedValue]) -> Result<Format, Failure> {
    match results {
        [only] if has_files(only) => Ok(Format::Raw),
        _ => Err(Failure::told(WHICH_FORMAT)),
    }
}

const WHICH_FORMAT: &str =
    "which format? Name a file that ends in .cbor, .json, .npy or .npz with -o, or say --format";

/// The results of the latest computation: the named one, or all that are saved; and whether they
/// are all that there should be, and may be used. If not, that is told. With the path of a part of the named one.
fn results<'a>(
    store: &mut Snapshot,
    key: &str,
    name: Option<&'a str>,
) -> Result<(Vec<NamedValue>, Option<&'a str>, bool), Failure> {
    let found = find(store, key)?.swap_remove(0);
    let all = found.entry.results;
    let (name, part) = name.map(|name| field::split(&all, name)).unzip();
    let part = part.flatten();
    let is_complete = name.is_some() || tell_missing(&all);
    let names: Vec<String> = all.iter().map(|saved| saved.name.clone()).collect();
    let wanted = |saved: &NamedValue| name.is_none_or(|name| saved.name == name);
    let chosen = all.into_iter().filter(wanted);
    let saved: Vec<_> = chosen.filter(|saved| saved.payload.is_some()).collect();
    match (saved.is_empty(), name) {
        (false, _) => {
            if let Some(mark) = &found.mark {
                let (when, reason) = (time::text(time::of(mark.at)), &mark.reason);
                warn(format!(
                    "this entry is not to be used, it was invalidated at {when} UTC: {reason}"
                ));
            }
            Ok((saved, part, is_complete && found.mark.is_none()))
        }
        (true, Some(name)) if names.iter().any(|known| known == name) => Err(Failure::told(
            format!("result \"{name}\" is not saved in this store, or damaged"),
        )),
        (true, Some(name)) => Err(Failure::told(format!(
            "there is no result \"{name}\"; the entry has: {}",
            names.join(", ")
        ))),
        (true, None) => Err(Failure::told("none of its results is saved in this store")),
    }
}

/// Tells of the results that have no value here; gives whether none of them should have one.
fn tell_missing(all: &[NamedValue]) -> bool {
    let missing = |is_lost: bool| {
        let missing = all.iter().filter(|saved| saved.payload.is_none());
        let names = missing.filter(|saved| saved.tags.is_checkpointed() == is_lost);
        let names: Vec<&str> = names.map(|saved| &*saved.name).collect();
        names.join(", ")
    };
    let (never, lost) = (missing(false), missing(true));
    if !never.is_empty() {
        warn(format!(
            "left out, as their tags say that they are not saved: {never}"
        ));
    }
    if !lost.is_empty() {
        warn(format!(
            "left out, as this store does not have them: {lost}; they were given up, are damaged or in another store"
        ));
    }
    lost.is_empty()
}

/// What is to be written.
enum Job {
    Raw(Raw),
    /// Values with their names, in a format, and whether one was asked for by name.
    Values(Vec<(String, StoredValue)>, Format, bool),
    /// A part of a result.
    Part(Decoded, Format),
}

impl Job {
    fn write(&self, to: &mut impl Write) -> Result<(), Failure> {
        match self {
            Self::Raw(raw) => raw.write(to),
            Self::Values(results, Format::Cbor, single) => cbor(results, *single, to),
            Self::Values(results, Format::Npy, _) => one_array(all_arrays(results)?, to),
            Self::Values(results, Format::Npz, _) => npy::write_npz(all_arrays(results)?, to),
            Self::Values(results, _, single) => json(results, *single, to),
            Self::Part(value, format @ (Format::Npy | Format::Npz)) => {
                let mut found = Vec::new();
                arrays("part", value.clone(), &mut found);
                let found = some_array(found)?;
                match format {
                    Format::Npy => one_array(found, to),
                    _ => npy::write_npz(found, to),
                }
            }
            Self::Part(value, _) => write_json(&json::value(value), to),
        }
    }
}

fn cbor(
    results: &[(String, StoredValue)],
    single: bool,
    to: &mut impl Write,
) -> Result<(), Failure> {
    if !single {
        to.write_all(&cbor_head(5, results.len() as u64))?;
    }
    for (name, payload) in results {
        if !single {
            to.write_all(&cbor_head(3, name.len() as u64))?;
            to.write_all(name.as_bytes())?;
        }
        io::copy(&mut payload.reader()?, to)?;
    }
    Ok(())
}

fn json(
    results: &[(String, StoredValue)],
    single: bool,
    to: &mut impl Write,
) -> Result<(), Failure> {
    let mut object = Map::new();
    for (name, payload) in results {
        object.insert(name.clone(), json::value(&payload.value(IN_MEMORY)?));
    }
    let json = match single {
        true => object
            .into_iter()
            .next()
            .map(|(_, only)| only)
            .unwrap_or_default(),
        false => object.into(),
    };
    write_json(&json, to)
}

fn write_json(json: &serde_json::Value, to: &mut impl Write) -> Result<(), Failure> {
    Ok(writeln!(to, "{}", text::escape_json(&json.to_string()))?)
}

fn one_array(found: Vec<(String, Array)>, to: &mut impl Write) -> Result<(), Failure> {
    if let [(_, array)] = &found[..] {
        return array.write(to);
    }
    let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
    let names = names.join(", ");
    Err(Failure::told(format!(
        "an .npy file holds one array, there are several: {names}; name a result, or use .npz"
    )))
}

/// Every array there is, with a name: one at least.
fn all_arrays(results: &[(String, StoredValue)]) -> Result<Vec<(String, Array)>, Failure> {
    let mut found = Vec::new();
    for (name, payload) in results {
        match payload.numbers()? {
            Some((numbers, at)) => {
                found.push((name.clone(), Array::stored(numbers, payload.clone(), at)));
            }
            None => arrays(name, payload.value(IN_MEMORY)?, &mut found),
        }
    }
    some_array(found)
}

fn some_array(found: Vec<(String, Array)>) -> Result<Vec<(String, Array)>, Failure> {
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::told(
            "there is no array of numbers among the results; try --format json",
        )),
    }
}

/// The first bytes of a map (5) or a text (3).
fn cbor_head(kind: u8, length: u64) -> Vec<u8> {
    let kind = kind << 5;
    match length {
        0..=23 => vec![kind | length as u8],
        24..=0xff => vec![kind | 24, length as u8],
        0x100..=0xffff => [&[kind | 25][..], &(length as u16).to_be_bytes()].concat(),
        0x1_0000..=0xffff_ffff => [&[kind | 26][..], &(length as u32).to_be_bytes()].concat(),
        _ => [&[kind | 27][..], &length.to_be_bytes()].concat(),
    }
}
