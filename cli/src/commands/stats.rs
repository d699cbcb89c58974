//! `sde stats`: how much of what.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

use sde_archives::Class;
use sde_archives::inspect::{Item, SegmentFile};
use serde_json::json;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::programs::Programs;
use crate::store::{self, Marks, Scratches, Store};
use crate::table::{self, Column};
use crate::whole::Id;
use crate::{json, text, time};

#[derive(Default)]
struct OfApp {
    seen: HashSet<Id>,
    keys: HashSet<sde::Key>,
    bytes: u64,
    took: Duration,
    latest: Option<SystemTime>,
}

#[derive(Default)]
struct OfClass {
    files: HashSet<String>,
    bytes: u64,
    entries: usize,
}

impl OfClass {
    fn add(&mut self, segment: &SegmentFile, place: &std::ops::Range<u64>) {
        if !self.files.contains(segment.path()) {
            self.files.insert(segment.path().to_owned());
        }
        self.bytes += place.end - place.start;
        self.entries += 1;
    }
}

/// What there is in a store.
#[derive(Default)]
struct Counted {
    apps: BTreeMap<String, OfApp>,
    classes: [OfClass; 3],
    marks: Marks,
    scratches: Scratches,
    writers: BTreeMap<String, usize>,
    programs: Programs,
}

impl Counted {
    fn of(store: &mut Store) -> Self {
        let mut counted = Self::default();
        store.walk(|segment, item| match item {
            Item::Entry(entry) => {
                counted.scratches.finish(&entry);
                counted.classes[number(entry.class)].add(segment, &entry.place);
                let record = &entry.record;
                let app = counted.apps.entry(record.app.to_string()).or_default();
                if app.seen.insert((record.key, record.run)) {
                    // What a file says of itself may be anything.
                    app.took = app.took.saturating_add(record.took);
                }
                app.keys.insert(record.key);
                app.latest = app.latest.max(Some(record.made_at));
                let payloads = entry
                    .results
                    .iter()
                    .filter_map(|saved| saved.payload.as_ref());
                app.bytes += payloads.map(|payload| payload.length()).sum::<u64>();
            }
            Item::Mark { mark, .. } => counted.marks.add(mark),
            Item::Scratch(scratch) => {
                counted.classes[number(Class::Scratch)].add(segment, &scratch.place);
                counted.scratches.add(segment, scratch);
            }
            Item::About(about) => {
                let of = format!(
                    "{} on {} ({}, sde {})",
                    about.program, about.host, about.target, about.sde
                );
                *counted.writers.entry(of).or_default() += 1;
            }
            Item::Journal {
                saved_at,
                about,
                journal,
            } => counted.programs.add(saved_at, about, journal),
            _ => {}
        });
        counted
    }
}

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    if let Some(option) = arguments.option()? {
        return Err(arguments.unknown(&option));
    }
    let as_json = arguments.json;
    let [path] = arguments.values(["STORE"], 0)?;
    let (store, counted) = store::read(path.unwrap_or_default(), |store| Ok(Counted::of(store)))?;
    let Counted {
        apps,
        classes,
        marks,
        scratches,
        writers,
        programs,
    } = counted;
    let unfinished = scratches.left().len();
    if as_json {
        let apps: Vec<_> = apps
            .iter()
            .map(|(name, app)| {
                json!({
                    "app": name,
                    "keys": app.keys.len(),
                    "computations": app.seen.len(),
                    "bytes": app.bytes,
                    "seconds": app.took.as_secs_f64(),
                    "latest": app.latest.map(time::iso),
                })
            })
            .collect();
        let classes: Vec<_> = Class::ALL
            .iter()
            .zip(&classes)
            .map(|(class, of)| {
                json!({ "class": json::class(*class), "files": of.files.len(), "bytes": of.bytes, "frames": of.entries })
            })
            .collect();
        out.json(&json!({
            "apps": apps,
            "classes": classes,
            "unfinished": unfinished,
            "invalidated": marks.standing(),
            "generations": generations(&store),
            "writers": writers,
            "programs": programs.objects(),
            "damaged": store.damages.len(),
        }))?;
    } else {
        print_apps(&apps, out)?;
        print_classes(&classes, out)?;
        print_generations(&store, out)?;
        programs.print(out)?;
        out.line("")?;
        for (writer, files) in &writers {
            let files = text::count(*files, "file", "files");
            out.line(format!("written by {writer}, {files}"))?;
        }
        if unfinished > 0 {
            let runs = text::count(unfinished, "run", "runs");
            out.line(format!("{runs} can go on from a saved state"))?;
        }
        if marks.standing() > 0 {
            let marked = text::count(marks.standing(), "computation is", "computations are");
            out.line(format!("{marked} marked as not to be used"))?;
        }
    }
    out.flush()?;
    store.tell_damage();
    out.found |= !store.is_whole();
    Ok(())
}

fn number(of: Class) -> usize {
    Class::ALL
        .iter()
        .position(|class| *class == of)
        .unwrap_or(0)
}

fn print_apps(apps: &BTreeMap<String, OfApp>, out: &mut Output) -> Result<(), Failure> {
    const COLUMNS: [Column; 6] = [
        Column::new("APP", 9).least(12),
        Column::new("KEYS", 8).right(),
        Column::new("RUNS", 5).right(),
        Column::new("SIZE", 7).right(),
        Column::new("COST", 6).right(),
        Column::new("LATEST (UTC)", 4),
    ];
    let rows: Vec<Vec<String>> = apps
        .iter()
        .map(|(name, app)| {
            vec![
                name.clone(),
                app.keys.len().to_string(),
                app.seen.len().to_string(),
                text::size(app.bytes),
                text::duration(app.took),
                app.latest
                    .map(time::text)
                    .unwrap_or_default()
                    .chars()
                    .take(16)
                    .collect(),
            ]
        })
        .collect();
    table::write(out, &COLUMNS, &rows)
}

fn print_classes(classes: &[OfClass; 3], out: &mut Output) -> Result<(), Failure> {
    const COLUMNS: [Column; 4] = [
        Column::new("CLASS", 9).least(6),
        Column::new("FILES", 7).right(),
        Column::new("FRAMES", 6).right(),
        Column::new("ON DISK", 8).right(),
    ];
    out.line("")?;
    let rows: Vec<Vec<String>> = Class::ALL
        .iter()
        .zip(classes)
        .map(|(class, of)| {
            vec![
                json::class(*class).to_owned(),
                of.files.len().to_string(),
                of.entries.to_string(),
                text::size(of.bytes),
            ]
        })
        .collect();
    table::write(out, &COLUMNS, &rows)
}

fn print_generations(store: &Store, out: &mut Output) -> Result<(), Failure> {
    const COLUMNS: [Column; 5] = [
        Column::new("GENERATION", 9).least(10),
        Column::new("WRITTEN (UTC)", 6),
        Column::new("SEGMENTS", 5).right(),
        Column::new("BYTES", 4).right(),
        Column::new("COUNTS", 8),
    ];
    if store.manifests.files.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let rows: Vec<Vec<String>> = store
        .manifests
        .files
        .iter()
        .map(|file| match &file.content {
            Ok(info) => vec![
                info.generation.to_string(),
                time::of_nanos(info.at).chars().take(16).collect(),
                info.segments.len().to_string(),
                text::size(
                    info.segments
                        .iter()
                        .fold(0, |sum, one| one.length.saturating_add(sum)),
                ),
                if file.is_head { "yes" } else { "no, replaced" }.to_owned(),
            ],
            Err(_) => {
                let mut row = vec![file.name.clone()];
                row.extend(["", "", ""].map(str::to_owned));
                row.push(match file.other_format {
                    Some(version) => format!("no, format {version}"),
                    None => "no, damaged".to_owned(),
                });
                row
            }
        })
        .collect();
    table::write(out, &COLUMNS, &rows)
}

fn generations(store: &Store) -> serde_json::Value {
    let one = |file: &sde_archives::inspect::ManifestFile| match &file.content {
        Ok(info) => json!({
            "file": file.name,
            "generation": info.generation,
            "writer": info.writer,
            "at": time::iso_of_nanos(info.at),
            "parents": info.parents,
            "segments": info.segments.len(),
            "replaced": info.replaced.len(),
            "counts": file.is_head,
        }),
        Err(why) => match file.other_format {
            Some(version) => json!({ "file": file.name, "format": version, "counts": false }),
            None => json!({ "file": file.name, "damaged": why, "counts": false }),
        },
    };
    store.manifests.files.iter().map(one).collect()
}
