//! `sde verify`: reads everything, and says exactly what is damaged.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sde::key::Digest;
use sde_archives::inspect::{Damage, Entry, Item, Manifests, Payload, Saved, SegmentFile, Walked};
use serde_json::json;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::store::{self, Store, of_format};
use crate::{json, lost, text};

/// Of less nobody waits for the end.
const LARGE: u64 = 64 << 20;

/// What was looked at, and found.
#[derive(Default)]
struct Report {
    /// What is wrong, with a text of whose it is.
    found: Vec<(Damage, String)>,
    /// What writers left that were killed in the middle of a write: nothing that is missed.
    unfinished: Vec<Damage>,
    /// What a later release has written, and was not verified: paths and versions.
    other_format: Vec<(String, u32)>,
    /// What is no damage either, and may be wondered at.
    notes: Vec<String>,
    entries: usize,
    results: usize,
    scratch: usize,
    bytes: u64,
    /// The contents of output files that entries need, by digest, and of which.
    needed: HashMap<Digest, String>,
    contents: HashSet<Digest>,
    /// How far each segment can be read, by its path.
    ends: HashMap<String, u64>,
}

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    let mut quiet = false;
    while let Some(option) = arguments.option()? {
        match &*option {
            "quiet" | "q" => quiet = true,
            other => return Err(arguments.unknown(other)),
        }
    }
    let as_json = arguments.json;
    let [path] = arguments.values(["STORE"], 0)?;
    let (store, report) = store::read(path.unwrap_or_default(), |store| Ok(Report::of(store)))?;
    out.found |= !report.is_whole();
    if as_json {
        out.json(&object(&store, &report))?;
    } else if !quiet {
        print(&store, &report, out)?;
    }
    Ok(())
}

fn bar(bytes: u64) -> ProgressBar {
    if bytes < LARGE || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
    );
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

impl Report {
    fn of(store: &mut Store) -> Self {
        let mut report = Self {
            other_format: store.other_formats().collect(),
            ..Self::default()
        };
        let found = &mut report.found;
        if let Some(why) = store.inspection.format_damage() {
            found.push((Damage::new("FORMAT", 0..0, why), String::new()));
        }
        // What is known from the outset is found anew.
        store.damages.clear();
        let misplaced = store.inspection.misplaced();
        let misplaced = misplaced.unwrap_or_default().into_iter();
        found.extend(misplaced.map(|one| (one, String::new())));
        let bar = bar(store.segments.iter().map(SegmentFile::length).sum());
        for segment in &store.segments {
            store.gone |= report.segment(segment, &store.manifests, &bar);
        }
        bar.finish_and_clear();
        report.contents();
        report.manifests(store);
        store
            .damages
            .extend(report.found.iter().map(|(damage, _)| damage.clone()));
        report
    }

    fn is_whole(&self) -> bool {
        self.found.is_empty() && self.other_format.is_empty()
    }

    /// Gives whether the file was removed meanwhile.
    fn segment(&mut self, segment: &SegmentFile, manifests: &Manifests, bar: &ProgressBar) -> bool {
        let replaced = manifests.replaced(segment);
        self.bytes += segment.length();
        let mut checks: Vec<(Payload, String)> = Vec::new();
        let mut passed = 0;
        let walked = segment.walk(|item| {
            match item {
                Item::Damage(damage) if damage.place.start < replaced => {}
                Item::Damage(damage) => {
                    let of = damage.key.map(|key| format!("entry {}", key.short()));
                    self.found.push((damage, of.unwrap_or_default()));
                }
                Item::Entry(entry) if entry.place.start < replaced => {}
                Item::Scratch(scratch) if scratch.place.start < replaced => {}
                Item::Content(content) if content.place.start < replaced => {}
                Item::Entry(entry) => {
                    self.entries += 1;
                    self.needed.extend(contents_of(&entry));
                    checks.extend(of_entry(&entry));
                }
                Item::Scratch(scratch) => {
                    self.scratch += 1;
                    let of = format!("the unfinished {} [{}]", scratch.app, scratch.key.short());
                    checks.push((scratch.payload, of));
                }
                Item::Content(content) => {
                    passed += content.payload.length();
                    self.contents.insert(content.digest);
                    self.check(&content.payload, "an output file".to_owned(), bar);
                }
                _ => {}
            }
            // As many as are checked at once: a segment may have a million.
            for (payload, of) in checks.drain(..) {
                self.results += 1;
                passed += payload.length();
                self.check(&payload, of, bar);
            }
        });
        bar.inc(segment.length().saturating_sub(passed));
        match walked {
            Ok(walked) if walked.gone => return true,
            Ok(walked) => self.ending(segment, &walked, manifests),
            Err(error) => {
                let damage = Damage::new(segment.path(), 0..segment.length(), error.to_string());
                self.found.push((damage, String::new()));
            }
        }
        false
    }

    fn check(&mut self, payload: &Payload, of: String, bar: &ProgressBar) {
        match payload.check(|read| bar.inc(read)) {
            Ok(None) => {}
            Ok(Some(damage)) => self.found.push((damage, of)),
            Err(error) => {
                let damage = Damage::new(payload.path(), payload.place(), error.to_string());
                self.found.push((damage, of));
            }
        }
    }

    fn ending(&mut self, segment: &SegmentFile, walked: &Walked, manifests: &Manifests) {
        self.ends.insert(segment.path().to_owned(), walked.end);
        if walked.torn == 0 {
            return;
        }
        let place = walked.end..walked.end + walked.torn;
        let why = match segment.is_being_written() {
            true => {
                self.notes.push(format!(
                    "{} is being written; its last {} are not a whole frame yet",
                    segment.path(),
                    text::count(walked.torn as usize, "byte", "bytes")
                ));
                return;
            }
            false if manifests.replaced(segment) > 0 => return,
            // That it is lost is told with the manifest.
            false if vouched(manifests, segment) > walked.end => return,
            false if walked.unfinished => {
                let why = "its writer was stopped while it wrote this, before it was acknowledged";
                let left = Damage::new(segment.path(), place, why);
                self.unfinished.push(left);
                return;
            }
            false => "what is there is no frame, nor the beginning of one",
        };
        let damage = Damage::new(segment.path(), place, why);
        self.found.push((damage, String::new()));
    }

    fn contents(&mut self) {
        let missing = std::mem::take(&mut self.needed).into_iter();
        let missing = missing.filter(|(digest, _)| !self.contents.contains(digest));
        let mut missing: Vec<String> = missing.map(|(_, of)| of).collect();
        missing.sort();
        self.found.extend(missing.into_iter().map(|of| {
            let why = "what an output file held is missing";
            (Damage::new("entries", 0..0, why), of)
        }));
    }

    fn manifests(&mut self, store: &Store) {
        let manifests = &store.manifests;
        let damaged = lost::damaged_manifests(manifests).into_iter();
        self.found.extend(damaged.map(|one| (one, String::new())));
        let ends = &self.ends;
        let end = |segment: &SegmentFile| ends.get(segment.path()).copied().unwrap_or(0);
        let lost = lost::lost(manifests, &store.segments, end);
        if lost::is_certain(manifests) {
            self.found.extend(lost);
            return;
        }
        self.notes.extend(lost.iter().map(|(damage, of)| {
            let (path, end) = (&damage.path, damage.place.end);
            format!(
                "{path} is not there as far as byte {end}, {of}; a later generation, which is not read, may say why"
            )
        }));
    }
}

/// Up to where some manifest that counts vouches for a segment.
fn vouched(manifests: &Manifests, segment: &SegmentFile) -> u64 {
    let listed = manifests.heads().flat_map(|(_, info)| &info.segments);
    let of_this = listed.filter(|one| match segment.id() {
        Ok(id) => one.id == Some(id),
        Err(_) => one.path == segment.path(),
    });
    of_this.map(|one| one.length).max().unwrap_or(0)
}

fn contents_of(entry: &Entry) -> impl Iterator<Item = (Digest, String)> {
    let results = entry.results.iter();
    results.flat_map(|saved| {
        let of = of_result(saved, entry);
        saved
            .contents
            .iter()
            .map(move |digest| (*digest, of.clone()))
    })
}

fn of_entry(entry: &Entry) -> Vec<(Payload, String)> {
    let results = entry.results.iter();
    results
        .filter_map(|saved| Some((saved.payload.clone()?, of_result(saved, entry))))
        .collect()
}

fn of_result(saved: &Saved, entry: &Entry) -> String {
    let (app, key) = (&entry.record.app, entry.record.key.short());
    format!("result \"{}\" of {app} [{key}]", saved.name)
}

fn print(store: &Store, report: &Report, out: &mut Output) -> Result<(), Failure> {
    for (damage, of) in &report.found {
        let place = place(damage);
        let of = if of.is_empty() {
            String::new()
        } else {
            format!(" ({of})")
        };
        out.wrapped(
            format!("damaged: {}{place}: {}{of}", damage.path, damage.why),
            2,
        )?;
    }
    for left in &report.unfinished {
        let place = place(left);
        let line = format!("unfinished: {}{place}: {}", left.path, left.why);
        out.wrapped(line, 2)?;
    }
    for (path, version) in &report.other_format {
        let why = of_format(path, *version);
        out.wrapped(format!("not verified: {why}"), 2)?;
    }
    for note in &report.notes {
        out.wrapped(format!("note: {note}"), 2)?;
    }
    let looked = format!(
        "{}, {}, {}, {}",
        text::count(store.segments.len(), "segment", "segments"),
        text::count(report.entries, "entry", "entries"),
        text::count(report.results, "value", "values"),
        text::size(report.bytes),
    );
    match report.found.len() {
        0 if !report.is_whole() => {
            let others = report.other_format.len();
            out.wrapped(
                format!("nothing damaged, {others} not verified; {looked}"),
                2,
            )
        }
        0 => out.wrapped(format!("whole: {looked}"), 2),
        n => out.wrapped(format!("{n} damaged; {looked}"), 2),
    }
}

fn place(of: &Damage) -> String {
    match of.place.is_empty() {
        true => String::new(),
        false => format!(", bytes {}..{}", of.place.start, of.place.end),
    }
}

fn object(store: &Store, report: &Report) -> serde_json::Value {
    let damaged = report.found.iter().map(|(damage, of)| {
        let mut object = json::damage(damage);
        if let (Some(object), false) = (object.as_object_mut(), of.is_empty()) {
            object.insert("of".to_owned(), json!(of));
        }
        object
    });
    json!({
        "store": store.inspection.path().display().to_string(),
        "whole": report.is_whole(),
        "segments": store.segments.len(),
        "manifests": store.manifests.files.len(),
        "entries": report.entries,
        "values": report.results,
        "scratch": report.scratch,
        "bytes": report.bytes,
        "damaged": damaged.collect::<Vec<_>>(),
        "unfinished": report.unfinished.iter().map(json::damage).collect::<Vec<_>>(),
        "other_format": report.other_format.iter().map(|(path, version)| {
            json!({ "file": path, "format": version })
        }).collect::<Vec<_>>(),
        "notes": report.notes,
    })
}
