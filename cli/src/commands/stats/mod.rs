//! `sde stats`: the use that programs made of a store, and its content.

mod done;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use sde::AppStats;
use sde_archives::inspect::{
    AboutWriter, Computations, Item, ManifestFile, SegmentFile, Snapshot, Standing,
};
use sde_archives::{Capacity, Class, Retention};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::args::Place;
use crate::failure::Failure;
use crate::output::{Output, warn};
use crate::table::write_objects;
use crate::{json, store, text, time};
use done::{Done, RunFacts};
use sde_table::failed;
use sde_table::runs;

/// Hits, misses, time saved and room used; then how much there is of what
///
/// Hits and times are what programs told of themselves; of those that were killed, what their entries tell. Then come the apps, with the sizes and costs of their entries; the
/// classes of values; the generations; and what each process did.
#[derive(Args)]
pub struct Stats {
    #[command(flatten)]
    place: Place,
}

impl Stats {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let (store, report) = store::read(&self.place.only()?, Report::of)?;
        match out.json {
            true => out.object(&report)?,
            false => report.print(out)?,
        }
        store::conclude(&store, out)
    }
}

/// The report on a store. For lists, the text output prints their members.
#[derive(Default, Serialize)]
struct Report {
    /// The sum over all programs, and so over all apps.
    #[serde(serialize_with = "json::tidied")]
    total: AppStats,
    files: usize,
    bytes: u64,
    allowed: Option<Allowed>,
    apps: Vec<OfApp>,
    classes: Vec<OfClass>,
    generations: Vec<Json>,
    /// What each process did; the latest starts first.
    programs: Vec<Json>,
    writers: BTreeMap<String, usize>,
    unfinished: usize,
    #[serde(skip)]
    has_told: bool,
    /// The runs that `sde ls --failed` lists, and the seconds that they had taken.
    failed: usize,
    failed_seconds: f64,
    invalidated: usize,
    damaged: usize,
}

/// The limit on the bytes of values, and the bytes that count towards it.
#[derive(Serialize)]
struct Allowed {
    bytes: u64,
    used: u64,
    /// Whether results count.
    results: bool,
}

#[derive(Default, Serialize)]
struct OfApp {
    app: String,
    keys: usize,
    bytes: u64,
    computed: u64,
    /// Time in its bodies, without that of the runs that these made.
    seconds: f64,
    hits: u64,
    seconds_saved: f64,
    /// When the latest of its entries was made, if there are any.
    latest_at: Option<Timestamp>,
}

/// The frames of a class.
#[derive(Default, Serialize)]
struct OfClass {
    class: &'static str,
    bytes: u64,
    frames: usize,
    files: usize,
    #[serde(skip)]
    paths: HashSet<String>,
}

impl Report {
    fn of(store: &mut Snapshot) -> Result<Self, Failure> {
        let mut report = Self::default();
        report.classes.extend(Class::ALL.map(|class| OfClass {
            class: class.name(),
            ..OfClass::default()
        }));
        let mut found = Computations::default();
        store.walk(None, |segment, item| {
            if let Item::About(about) = &item {
                *report.writers.entry(writer(about)).or_default() += 1;
            }
            report.add_to_class(segment.path(), &item);
            found.add(item, |entry| {
                let payloads = entry.results.iter();
                let lengths = payloads.filter_map(|one| Some(one.payload.as_ref()?.length()));
                Some(RunFacts {
                    bytes: lengths.sum(),
                    app: Arc::clone(&entry.record.app),
                    took: entry.record.took,
                    calls: entry.record.calls.iter().map(|(_, key)| *key).collect(),
                    host: Arc::clone(&entry.record.host),
                    failed: entry.record.failure.as_ref().map(|failure| failure.of),
                })
            });
        });
        let mut found = found.resolve(|kept, more| kept.bytes += more.bytes);
        store.gone |= found.gone;
        let mut apps: BTreeMap<Arc<str>, OfApp> = BTreeMap::new();
        let mut before = None;
        let standing = failed::standing(&found.all, |kept| kept.failed);
        for one in &found.all {
            if one.of.failed.is_some() {
                if standing.contains(&one.key) && one.standing == Standing::Current {
                    report.failed += 1;
                    report.failed_seconds += one.of.took.as_secs_f64();
                }
                continue;
            }
            let app = apps.entry(Arc::clone(&one.of.app)).or_default();
            app.keys += usize::from(before.replace(one.key) != Some(one.key));
            app.bytes += one.of.bytes;
            let made_at = Some(time::of(one.precedence.made_at));
            app.latest_at = app.latest_at.max(made_at);
        }
        for one in runs::failing(store, |_| true)? {
            report.failed += 1;
            report.failed_seconds += one.took.as_secs_f64();
        }
        let told = found.journals.iter().find_map(|one| one.capacity);
        let programs = done::all(&mut found);
        for (name, stats) in programs.iter().flat_map(|one| &one.apps) {
            report.total = report.total.plus(*stats);
            let app = apps.entry(Arc::clone(name)).or_default();
            app.computed = app.computed.saturating_add(stats.computed);
            app.seconds += stats.time_spent.as_secs_f64();
            app.hits = app.hits.saturating_add(hits(stats));
            app.seconds_saved += stats.time_saved.as_secs_f64();
        }
        let named = apps.into_iter().map(|(name, of)| OfApp {
            app: name.to_string(),
            ..of
        });
        Ok(Self {
            files: store.segments.len(),
            bytes: store.segments.iter().map(SegmentFile::length).sum(),
            allowed: report.allowed(told),
            apps: named.collect(),
            generations: store.manifests.files.iter().map(generation).collect(),
            has_told: programs.iter().any(|one| one.journal.is_some()),
            programs: programs.iter().map(program).collect(),
            unfinished: found.unfinished.len(),
            invalidated: found.marks(),
            damaged: store.damages.len(),
            ..report
        })
    }

    fn add_to_class(&mut self, path: &str, item: &Item) {
        let (class, place) = match item {
            Item::Entry(entry) => (entry.class, &entry.place),
            Item::Scratch(state) => (Class::Scratch, &state.place),
            Item::Content(content) => (Class::Result, &content.place),
            _ => return,
        };
        let of = &mut self.classes[class as usize];
        if !of.paths.contains(path) {
            of.paths.insert(path.to_owned());
            of.files += 1;
        }
        of.frames += 1;
        of.bytes += place.end - place.start;
    }

    /// The limit set by the environment, or else by the program that reported last.
    fn allowed(&self, told: Option<Capacity>) -> Option<Allowed> {
        let said = Retention::from_env().map_err(warn).unwrap_or_default();
        let Capacity { bytes, results, .. } = said.allowed().or(told)?;
        let limited = self.classes.iter().skip(usize::from(!results));
        let used = limited.map(|class| class.bytes).sum();
        Some(Allowed {
            bytes,
            used,
            results,
        })
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        /// The most programs that are shown.
        const SHOWN: usize = 10;
        self.print_summary(out)?;
        out.line("")?;
        write_objects(&self.apps, out)?;
        out.line("")?;
        write_objects(&self.classes, out)?;
        out.line("")?;
        write_objects(&self.generations, out)?;
        if !self.programs.is_empty() {
            out.line("")?;
            write_objects(&self.programs[..self.programs.len().min(SHOWN)], out)?;
            out.line(text::count(self.programs.len(), "process", "processes"))?;
        }
        out.line("")?;
        for (writer, files) in &self.writers {
            let files = text::count(*files, "file", "files");
            out.line(format!("written by {writer}, {files}"))?;
        }
        if self.unfinished > 0 {
            let runs = text::count(self.unfinished, "run", "runs");
            out.line(format!("{runs} can go on from a saved state"))?;
        }
        if self.failed > 0 {
            let runs = text::count(self.failed, "run", "runs");
            let cost = text::duration(self.failed_seconds);
            out.line(format!(
                "{runs} failed after {cost} in all: sde ls --failed"
            ))?;
        }
        if self.invalidated > 0 {
            let marked = text::count(self.invalidated, "computation is", "computations are");
            out.line(format!("{marked} marked as not to be used"))?;
        }
        Ok(())
    }

    fn print_summary(&self, out: &mut Output) -> Result<(), Failure> {
        let mut field = |name: &str, value: String| out.wrapped(format!("{name:<10}{value}"), 10);
        if !self.has_told {
            field("hits", "no program has told what it did".to_owned())?;
        }
        if !self.programs.is_empty() {
            let mut known = self.calls().skip(usize::from(!self.has_told));
            known.try_for_each(|(name, value)| field(name, value))?;
        }
        let files = text::count(self.files, "file", "files");
        let allowed = match &self.allowed {
            None => "no capacity is set".to_owned(),
            Some(allowed) => {
                let (used, bytes) = (text::size(allowed.used), text::size(allowed.bytes));
                let limited = match allowed.results {
                    true => "values",
                    false => "intermediates and scratch",
                };
                format!("{used} of {bytes} allowed for {limited}")
            }
        };
        field(
            "room",
            format!("{} in {files}; {allowed}", text::size(self.bytes)),
        )
    }

    /// The outcomes of the calls of all programs.
    fn calls(&self) -> impl Iterator<Item = (&'static str, String)> {
        let of = &self.total;
        let (hits, computed, failed) = (hits(of), of.computed, of.failures);
        let calls = hits + computed;
        let share = 100.0 * hits as f64 / calls.max(1) as f64;
        let (held, loaded, waited) = (of.hits(), of.loads, of.waits);
        let hits = format!(
            "{hits} of {calls} calls, {share:.1} %: {held} in memory, {loaded} loaded, {waited} from another thread"
        );
        let (spent, saved) = (of.time_spent.as_secs_f64(), of.time_saved.as_secs_f64());
        let (spent, saved) = (text::duration(spent), text::duration(saved));
        let (waited, beside) = (of.waited_for_others, of.beside_others);
        let sharing = format!(
            "{waited} loaded after a wait for another process, {beside} computed beside one"
        );
        let has_shared = waited + beside > 0;
        let differing = text::count(of.differing as usize, "computation", "computations");
        let differing = format!("{differing} had other bits than another of the same key");
        let (bytes, again) = (text::size(of.evicted_bytes), of.evicted_time.as_secs_f64());
        let evicted = format!(
            "{} with {bytes} left memory; having all of it again takes {}",
            text::count(of.evicted as usize, "entry", "entries"),
            text::duration(again)
        );
        let fields = [
            ("hits", hits),
            (
                "misses",
                format!("{computed} computed; {failed} more ended by an error"),
            ),
            ("time", format!("{spent} spent, {saved} saved")),
        ];
        fields
            .into_iter()
            .chain(has_shared.then_some(("sharing", sharing)))
            .chain((of.evicted > 0).then_some(("evicted", evicted)))
            .chain((of.differing > 0).then_some(("differing", differing)))
    }
}

fn program(of: &Done) -> Json {
    let total = of.total();
    let saved = of.journal.as_deref();
    let rank = saved.and_then(|saved| saved.journal.rank);
    // The keys of this map are names of apps, which `tidy` would change.
    let apps = of.apps.iter();
    let apps = apps.map(|(name, of)| (name.to_string(), json::tidy(of)));
    json!({
        "started_at": of.started_at,
        "program": saved.map(|saved| &saved.about.program),
        "computed": total.computed,
        "loaded": total.loads,
        "in_memory": total.hits(),
        "seconds": total.time_spent.as_secs_f64(),
        "seconds_saved": total.time_saved.as_secs_f64(),
        "host": of.host,
        "rank": rank.map(|(rank, _)| rank),
        "ranks": rank.map(|(_, ranks)| ranks),
        "apps": apps.collect::<Map<_, _>>(),
        "process": format!("{:016x}", of.process),
    })
}

fn generation(file: &ManifestFile) -> Json {
    let counts = match (&file.content, file.other_format) {
        (Err(_), Some(version)) => format!("no, format {version}"),
        (Err(_), None) => "no, damaged".to_owned(),
        (Ok(_), _) if file.is_head => "yes".to_owned(),
        (Ok(_), _) => "no, replaced".to_owned(),
    };
    let info = file.content.as_ref().ok();
    let segments = info.into_iter().flat_map(|info| &info.segments);
    json!({
        "generation": file.name,
        "counts": counts,
        "written_at": info.map(|info| time::of_nanos(info.at)),
        "segments": segments.clone().count(),
        // A damaged file may claim any length.
        "bytes": segments.fold(0, |sum, one| one.length.saturating_add(sum)),
    })
}

/// Calls that were answered from memory or from a store, or by another thread's run.
fn hits(of: &AppStats) -> u64 {
    of.hits().saturating_add(of.loads).saturating_add(of.waits)
}

fn writer(about: &AboutWriter) -> String {
    format!(
        "{} on {} ({}, sde {})",
        about.program, about.host, about.target, about.sde
    )
}
