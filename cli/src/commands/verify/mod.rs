//! `sde verify`: reads everything, and tells exactly what is damaged.

mod unreadable;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::IsTerminal;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sde::Key;
use sde::key::Digest;
use sde_archives::StoreOptions;
use sde_archives::inspect::{Damage, Item, SegmentFile, Snapshot, StoredValue, Walked};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::args::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::store::{self, of_format};
use crate::text;
use unreadable::Unreadable;

/// Reads everything in a store and verifies every checksum
///
/// Says exactly what is damaged; what a killed writer left unfinished, which is no damage; and why a program would not open
/// the store.
#[derive(Args)]
pub struct Verify {
    #[command(flatten)]
    place: Place,
    /// Nothing but the exit status
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// It is fine that the store belongs to someone else, that others can write to it, and that something in it is a link
    #[arg(long)]
    trust_others: bool,
}

/// The findings.
#[derive(Default, Serialize)]
struct Report {
    store: String,
    whole: bool,
    segments: usize,
    manifests: usize,
    entries: usize,
    values: usize,
    scratch: usize,
    bytes: u64,
    damaged: Vec<Finding>,
    /// Files that this user may not read, which is no damage.
    unreadable: Vec<Unreadable>,
    /// Frames that killed writers left incomplete: no entry is lost by that.
    unfinished: Vec<Finding>,
    /// Files of a later release, which were not verified.
    #[serde(serialize_with = "other_formats")]
    other_format: Vec<(String, u32)>,
    /// Why a program would not open the store.
    refused: Option<String>,
    /// Oddities that are no damage.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Finding {
    file: String,
    from: u64,
    to: u64,
    why: String,
    key: Option<Key>,
    /// The entry or app that it belongs to, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
}

fn other_formats<S: Serializer>(all: &[(String, u32)], to: S) -> Result<S::Ok, S::Error> {
    let objects = all.iter();
    to.collect_seq(objects.map(|(file, format)| json!({ "file": file, "format": format })))
}

impl Verify {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let path = self.place.only()?;
        let (_, mut report) = store::read(&path, |store| Ok(Search::of(store)))?;
        if report.damaged.is_empty() && report.unreadable.is_empty() {
            report.refused = self.refused(&path);
        }
        report.whole &= report.refused.is_none();
        out.found |= !report.whole;
        match (out.json, self.quiet) {
            (true, _) => out.object(&report),
            (false, false) => report.print(out),
            (false, true) => Ok(()),
        }
    }

    /// Why a program would not open the store, if so.
    fn refused(&self, path: &std::path::Path) -> Option<String> {
        let mut options = StoreOptions::new().without_environment().read_only();
        if self.trust_others {
            options = options.trust_others();
        }
        options.open(path).err().map(|error| error.to_string())
    }
}

/// The state of the verification.
struct Search {
    report: Report,
    bar: ProgressBar,
    /// The digests of output files that entries need, each with its entry.
    needed: BTreeMap<Digest, String>,
    contents: HashSet<Digest>,
}

impl Search {
    fn of(store: &mut Snapshot) -> Report {
        let bytes = store.segments.iter().map(SegmentFile::length).sum();
        let mut search = Self {
            report: Report {
                store: store.inspection().path().display().to_string(),
                segments: store.segments.len(),
                manifests: store.manifests.files.len(),
                bytes,
                other_format: store.other_formats().collect(),
                ..Report::default()
            },
            bar: bar(bytes),
            needed: BTreeMap::new(),
            contents: HashSet::new(),
        };
        // The walk finds these damages anew.
        store.damages.clear();
        let walked = store.walk(None, |_, item| search.item(item));
        search.bar.finish_and_clear();
        search.manifests(store, &walked);
        let mut report = search.report;
        report.set_unreadable_apart(store);
        // A file that may not be read may hold it.
        let is_known = report.unreadable.is_empty();
        for (digest, of) in search.needed {
            if is_known && !search.contents.contains(&digest) {
                let why = "what an output file held is missing";
                report
                    .damaged
                    .push(Finding::new(Damage::new("entries", 0..0, why), Some(of)));
            }
        }
        report.whole = report.damaged.is_empty()
            && report.unreadable.is_empty()
            && report.other_format.is_empty();
        // The caller tries again if files were removed meanwhile and there is damage.
        let found = report.damaged.iter();
        store
            .damages
            .extend(found.map(|one| Damage::new(&*one.file, one.from..one.to, "")));
        report
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Entry(entry) => {
                self.report.entries += 1;
                let (app, key) = (&entry.record.app, entry.record.key.short());
                self.bar.inc(entry.place.end - entry.place.start);
                for saved in &entry.results {
                    let of = format!("result \"{}\" of {app} [{key}]", saved.name);
                    let needed = saved.contents.iter().map(|digest| (*digest, of.clone()));
                    self.needed.extend(needed);
                    self.report.values += usize::from(saved.payload.is_some());
                    saved
                        .payload
                        .iter()
                        .for_each(|payload| self.check(payload, &of));
                }
            }
            Item::Scratch(state) => {
                self.report.scratch += 1;
                self.report.values += 1;
                let of = format!("the unfinished {} [{}]", state.app, state.key.short());
                self.check(&state.payload, &of);
            }
            Item::Content(content) => {
                self.contents.insert(content.digest);
                self.check(&content.payload, "an output file");
            }
            _ => {}
        }
    }

    fn check(&mut self, payload: &StoredValue, of: &str) {
        let damage = payload.check(|read| self.bar.inc(read));
        let damage = damage.unwrap_or_else(|error| {
            let why = error.to_string();
            Some(Damage::new(payload.path(), payload.place(), why))
        });
        let found = damage.map(|damage| Finding::new(damage, Some(of.to_owned())));
        self.report.damaged.extend(found);
    }

    /// Adds the damage of manifests, and of the ends of segments.
    fn manifests(&mut self, store: &mut Snapshot, walked: &[Walked]) {
        let ends = store.segments.iter().zip(walked);
        let ends: HashMap<&str, &Walked> = ends.map(|(one, of)| (one.path(), of)).collect();
        let end = |one: &SegmentFile| ends.get(one.path()).map_or(0, |walked| walked.end);
        let lost = store.manifests.lost(&store.segments, end);
        for (segment, walked) in store.segments.iter().zip(walked) {
            // A lost end is reported with the manifest.
            let is_lost = lost.iter().any(|lost| lost.path == segment.path());
            if walked.torn > 0 && !is_lost && store.manifests.replaced(segment) == 0 {
                self.ending(segment, walked);
            }
        }
        let inspection = store.inspection();
        let format = inspection.format_damage();
        let format = format.map(|_| Damage::new("FORMAT", 0..0, store::NO_FORMAT));
        let misplaced = inspection.misplaced().unwrap_or_default();
        let damages = format.into_iter().chain(misplaced).chain(lost);
        let damages = damages.chain(store.manifests.damaged());
        for damage in damages.chain(std::mem::take(&mut store.damages)) {
            let of = damage.key.map(|key| format!("entry {}", key.short()));
            self.report.damaged.push(Finding::new(damage, of));
        }
    }

    fn ending(&mut self, segment: &SegmentFile, walked: &Walked) {
        let place = walked.end..walked.end + walked.torn;
        let ending = |why| Finding::new(Damage::new(segment.path(), place, why), None);
        if segment.is_being_written() {
            self.report.notes.push(format!(
                "{} is being written; its last {} are not a whole frame yet",
                segment.path(),
                text::count(walked.torn as usize, "byte", "bytes")
            ));
        } else if walked.unfinished {
            let why = "its writer was stopped while it wrote this, before it was acknowledged";
            self.report.unfinished.push(ending(why));
        } else {
            let why = "what is there is no frame, nor the beginning of one";
            self.report.damaged.push(ending(why));
        }
    }
}

/// A smaller store is verified without a progress bar.
const LARGE: u64 = 64 << 20;

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

impl Finding {
    fn new(damage: Damage, of: Option<String>) -> Self {
        Self {
            file: damage.path,
            from: damage.place.start,
            to: damage.place.end,
            why: damage.why,
            key: damage.key,
            of,
        }
    }

    fn print(&self, what: &str, out: &mut Output) -> Result<(), Failure> {
        let Self {
            file,
            from,
            to,
            why,
            ..
        } = self;
        let place = match from == to {
            true => String::new(),
            false => format!(", bytes {from}..{to}"),
        };
        let of = self.of.as_ref().map(|of| format!(" ({of})"));
        let of = of.unwrap_or_default();
        out.wrapped(format!("{what}: {file}{place}: {why}{of}"), 2)
    }
}

impl Report {
    /// Takes what may not be read out of what is damaged.
    fn set_unreadable_apart(&mut self, store: &Snapshot) {
        let manifests = store.manifests.files.iter();
        let manifests = manifests.map(|one| format!("manifests/{}", one.name));
        let segments = store.segments.iter().map(|one| one.path().to_owned());
        let files: Vec<String> = segments.chain(manifests).collect();
        let path = store.inspection().path();
        self.unreadable = Unreadable::of(path, files.iter().map(String::as_str));
        let is_readable = |file: &str| self.unreadable.iter().all(|one| one.file != file);
        self.damaged.retain(|found| is_readable(&found.file));
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        for damaged in &self.damaged {
            damaged.print("damaged", out)?;
        }
        for unreadable in &self.unreadable {
            unreadable.print(out)?;
        }
        for unfinished in &self.unfinished {
            unfinished.print("unfinished", out)?;
        }
        for (file, format) in &self.other_format {
            out.wrapped(format!("not verified: {}", of_format(file, *format)), 2)?;
        }
        if let Some(why) = &self.refused {
            out.wrapped(format!("refused by programs: {why}"), 2)?;
        }
        for note in &self.notes {
            out.wrapped(format!("note: {note}"), 2)?;
        }
        let damaged = match self.damaged.len() {
            0 if self.whole => "whole".to_owned(),
            0 => "nothing damaged".to_owned(),
            damaged => format!("{damaged} damaged"),
        };
        let not_read = match self.unreadable.len() {
            0 => String::new(),
            files => format!(", {files} that may not be read"),
        };
        let others = match self.other_format.len() {
            0 => String::new(),
            others => format!(", {others} not verified"),
        };
        let verdict = damaged + &not_read + &others;
        let looked = format!(
            "{}, {}, {}, {}",
            text::count(self.segments, "segment", "segments"),
            text::count(self.entries, "entry", "entries"),
            text::count(self.values, "value", "values"),
            text::size(self.bytes),
        );
        out.wrapped(format!("{verdict}: {looked}"), 2)
    }
}
