//! `sde export`: results as files that others read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sde_archives::inspect::{Payload, Saved, Value};
use serde_json::{Map, Value as Json};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::raw::Raw;
use crate::args::Arguments;
use crate::failure::Failure;
use crate::npy::{Array, Members, arrays};
use crate::output::{Output, warn};
use crate::store::{self, Prefix, Store, find_marked};
use crate::{json, text, time};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Cbor,
    Json,
    Npy,
    Npz,
    Raw,
}

/// A value that is taken apart has to fit into memory, several times over.
const IN_MEMORY: u64 = 1 << 30;

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    let (mut format, mut to, mut force, mut file) = (None, None, false, None);
    while let Some(option) = arguments.option()? {
        match &*option {
            "format" => {
                format = Some(
                    arguments.read("a format: cbor, json, npy, npz or raw", |text| match text {
                        "cbor" => Some(Format::Cbor),
                        "json" => Some(Format::Json),
                        "npy" => Some(Format::Npy),
                        "npz" => Some(Format::Npz),
                        "raw" => Some(Format::Raw),
                        _ => None,
                    })?,
                );
            }
            "file" => file = Some(arguments.read("a number", |text| text.parse().ok())?),
            "to" => to = Some(arguments.path()?),
            "force" => force = true,
            other => return Err(arguments.unknown(other)),
        }
    }
    if arguments.json {
        return Err(Failure::told(
            "`sde export` writes JSON with `--format json`",
        ));
    }
    let (Some(format), Some(to)) = (format, to) else {
        return Err(Failure::told(
            "`sde export` needs --format and --to; `sde export --help` says more",
        ));
    };
    let [path, key, name] = arguments.values(["STORE", "KEY", "[NAME]"], 1)?;
    let prefix = Prefix::read(&key.unwrap_or_default().to_string_lossy())?;
    let name = name.map(|name| name.to_string_lossy().into_owned());
    let path = path.unwrap_or_default();
    let (store, (job, is_all)) = store::read(path, |store| {
        let (results, is_all) = results(store, &prefix, name.as_deref())?;
        let mut raw = None;
        let mut values = Vec::new();
        match format {
            Format::Raw => raw = Some(Raw::of(store, results, file, IN_MEMORY)?),
            _ => {
                let results = results.into_iter();
                values.extend(results.filter_map(|saved| Some((saved.name, saved.payload?))));
            }
        }
        let job = Job {
            results: values,
            raw,
            format,
            single: name.is_some(),
        };
        Ok((job, is_all))
    })?;
    match to == Path::new("-") {
        true => job.write(out.raw())?,
        false => to_file(&job, &to, force)?,
    }
    out.flush()?;
    store.tell_damage();
    out.found |= !is_all || !store.is_whole();
    Ok(())
}

/// The results of the latest computation: the named one, or all that are saved; and whether they
/// are all that there should be, and may be used. If not, that is told.
fn results(
    store: &mut Store,
    prefix: &Prefix,
    name: Option<&str>,
) -> Result<(Vec<Saved>, bool), Failure> {
    let (mut found, marks) = find_marked(store, prefix)?;
    let whole = found.swap_remove(0);
    let all = whole.entry.results;
    let mark = marks.of(&(whole.entry.record.key, whole.entry.record.run));
    let is_complete = name.is_some() || tell_missing(&all);
    let names: Vec<String> = all.iter().map(|saved| saved.name.clone()).collect();
    let wanted = |saved: &Saved| name.is_none_or(|name| saved.name == name);
    let chosen = all.into_iter().filter(wanted);
    let saved: Vec<_> = chosen.filter(|saved| saved.payload.is_some()).collect();
    match (saved.is_empty(), name) {
        (false, _) => {
            if let Some(mark) = mark {
                let when = time::text(mark.at);
                let reason = &mark.reason;
                warn(format!(
                    "this entry is not to be used, it was invalidated at {when} UTC: {reason}"
                ));
            }
            Ok((saved, is_complete && mark.is_none()))
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
fn tell_missing(all: &[Saved]) -> bool {
    let missing = || all.iter().filter(|saved| saved.payload.is_none());
    let names = |these: &[&Saved]| {
        let names: Vec<&str> = these.iter().map(|saved| &*saved.name).collect();
        names.join(", ")
    };
    let (lost, never): (Vec<_>, Vec<_>) = missing().partition(|saved| saved.tags.is_checkpointed());
    if !never.is_empty() {
        let names = names(&never);
        warn(format!(
            "left out, as their tags say that they are not saved: {names}"
        ));
    }
    if !lost.is_empty() {
        let names = names(&lost);
        warn(format!(
            "left out, as this store does not have them: {names}; they were given up, are damaged or \
             in another store"
        ));
    }
    lost.is_empty()
}

/// What is to be written.
struct Job {
    results: Vec<(String, Payload)>,
    raw: Option<Raw>,
    format: Format,
    /// One result was asked for by name.
    single: bool,
}

impl Job {
    fn write(&self, to: &mut impl Write) -> Result<(), Failure> {
        match self.format {
            Format::Cbor => self.cbor(to),
            Format::Json => self.json(to),
            Format::Npy => self.npy(to),
            Format::Npz => self.npz(to),
            Format::Raw => self.raw.as_ref().map_or(Ok(()), |raw| raw.write(to)),
        }
    }

    fn cbor(&self, to: &mut impl Write) -> Result<(), Failure> {
        if !self.single {
            to.write_all(&cbor_head(5, self.results.len() as u64))?;
        }
        for (name, payload) in &self.results {
            if !self.single {
                to.write_all(&cbor_head(3, name.len() as u64))?;
                to.write_all(name.as_bytes())?;
            }
            io::copy(&mut payload.reader()?, to)?;
        }
        Ok(())
    }

    fn json(&self, to: &mut impl Write) -> Result<(), Failure> {
        let mut object = Map::new();
        for (name, payload) in &self.results {
            object.insert(name.clone(), json::value(&payload.value(IN_MEMORY)?));
        }
        let json = match self.single {
            true => object
                .into_iter()
                .next()
                .map(|(_, only)| only)
                .unwrap_or_default(),
            false => Json::from(object),
        };
        Ok(writeln!(to, "{}", text::escape_json(&json.to_string()))?)
    }

    fn npy(&self, to: &mut impl Write) -> Result<(), Failure> {
        let mut found = self.arrays()?;
        match found.len() {
            1 => found.swap_remove(0).1.write(to),
            0 => Err(Failure::told(
                "there is no array of numbers among the results; try --format json",
            )),
            _ => {
                let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
                Err(Failure::told(format!(
                    "an .npy file holds one array, there are several: {}; name a result, or use --format npz",
                    names.join(", ")
                )))
            }
        }
    }

    fn npz(&self, to: &mut impl Write) -> Result<(), Failure> {
        let found = self.arrays()?;
        if found.is_empty() {
            return Err(Failure::told(
                "there is no array of numbers among the results; try --format json",
            ));
        }
        let failed = |error: zip::result::ZipError| Failure::from(io::Error::from(error));
        let mut zip = ZipWriter::new_stream(to);
        // As NumPy writes them: not compressed.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(true);
        let mut members = Members::default();
        for (name, array) in found {
            zip.start_file(format!("{}.npy", members.name(&name)), options)
                .map_err(failed)?;
            array.write(&mut zip)?;
        }
        zip.finish().map_err(failed)?.into_inner().flush()?;
        Ok(())
    }

    /// Every array there is, with a name.
    fn arrays(&self) -> Result<Vec<(String, Array)>, Failure> {
        let mut found = Vec::new();
        for (name, payload) in &self.results {
            match payload.numbers()? {
                Some((numbers, at)) => {
                    found.push((name.clone(), Array::Stored(numbers, payload.clone(), at)));
                }
                None => {
                    let value: Value = payload.value(IN_MEMORY)?;
                    arrays(name, value, &mut found);
                }
            }
        }
        Ok(found)
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

/// Writes beside the file, then gives it its name: nobody finds half of it.
fn to_file(job: &Job, path: &Path, force: bool) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::told(format!("{} can't be written: {error}", path.display()));
    // A rename would put a file in the place of a device, for all who use it.
    let there = path.symlink_metadata();
    if there.as_ref().is_ok_and(|found| !found.is_file()) {
        return Err(Failure::told(format!(
            "{} is there already and is no regular file, which not even --force replaces; name another, or `-` for standard output",
            path.display()
        )));
    }
    if !force && there.is_ok() {
        return Err(Failure::told(format!(
            "{} is there already; --force replaces it",
            path.display()
        )));
    }
    let unfinished = beside(path);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&unfinished);
    let mut to = BufWriter::new(file.map_err(failed)?);
    let written = job.write(&mut to).and_then(|()| {
        let file: File = to
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&unfinished, path).map_err(failed)
    });
    if written.is_err() {
        // What is left if this fails too does no harm.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.unfinished", std::process::id()));
    path.with_file_name(name)
}
