//! `sde gc`: makes room.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sde_archives::inspect::Item;
use sde_archives::{Compacted, Options, Retention};
use serde_json::json;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::kernels;
use crate::output::Output;
use crate::store::{self, Store};
use crate::{text, time};

const SIZE: &str = "a size: 500M or 20G";

/// How long files that were replaced stay, if nothing else is said.
const GRACE: Duration = Duration::from_secs(600);

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    let mut retention = Retention::new();
    let mut options = Options::new().without_environment();
    let (mut dry_run, mut has_limit, mut grace) = (false, false, GRACE);
    while let Some(option) = arguments.option()? {
        match &*option {
            "dry-run" => dry_run = true,
            "max-bytes" | "max-age" | "min-entry" | "max-entry" => {
                let (limit, expected) = match &*option {
                    "max-bytes" => ("CAPACITY", SIZE),
                    "min-entry" => ("MIN_ENTRY", SIZE),
                    "max-entry" => ("MAX_ENTRY", SIZE),
                    _ => ("MAX_AGE", "an age: 12h, 30d or 8w"),
                };
                let set = |text: &str| retention.clone().limit(limit, text).ok();
                retention = arguments.read(expected, set)?;
                has_limit = true;
            }
            "policy" => {
                let set = |text: &str| retention.clone().limit("ORDER", text).ok();
                retention = arguments.read("a policy: lru or fifo", set)?;
            }
            "grace" => grace = arguments.read("a time: 30s, 10m or 2h", time::ago)?,
            "results" => retention = retention.results(),
            "results-of" => {
                let app = arguments.text()?;
                retention = retention.results_of(&app);
            }
            "trust-others" => options = options.trust_others(),
            other => return Err(arguments.unknown(other)),
        }
    }
    let as_json = arguments.json;
    let [path] = arguments.values(["STORE"], 0)?;
    // Opening makes a store of an empty folder; that is not what was asked for.
    let (store, seen) = store::read(path.unwrap_or_default(), |store| {
        Ok(match has_limit {
            true => Seen::of(store),
            false => Seen::default(),
        })
    })?;
    let path = store.inspection.path().to_owned();
    if seen.is_kernel_cache() {
        // There is nothing else in it that a limit could be meant for.
        retention = retention.results();
    }
    if dry_run {
        retention = retention.dry_run();
        options = options.read_only();
    }
    let mut done = options.grace(grace).open(&path)?.compact(&retention)?;
    if dry_run {
        (done.removed, done.freed) = removable(&store, grace);
    }
    if done.busy {
        return Err(Failure::told(
            "somebody else is making room in this store; nothing was done, try again later",
        ));
    }
    if as_json {
        return out.json(&json!({
            "dry_run": dry_run,
            "replaced": done.replaced,
            "written": done.written,
            "bytes_before": done.bytes_before,
            "bytes_after": done.bytes_after,
            "given_up": done.given_up,
            "removed": done.removed,
            "freed": done.freed,
        }));
    }
    print(&done, dry_run, out)
}

/// What there is in a store.
#[derive(Default)]
struct Seen {
    programs: bool,
    others: bool,
}

impl Seen {
    fn of(store: &mut Store) -> Self {
        let mut seen = Self::default();
        store.walk(|_, item| match item {
            Item::Entry(entry) if &*entry.record.app == kernels::APP => seen.programs = true,
            Item::Entry(_) | Item::Scratch(_) => seen.others = true,
            _ => {}
        });
        seen
    }

    fn is_kernel_cache(&self) -> bool {
        self.programs && !self.others
    }
}

/// How many files were replaced before the time of grace, and their bytes, as the generations that count tell: a dry
/// run of a compaction does not look.
fn removable(store: &Store, grace: Duration) -> (usize, u64) {
    let is_over = |at: u64| {
        let at = UNIX_EPOCH + Duration::from_nanos(at);
        SystemTime::now()
            .duration_since(at)
            .is_ok_and(|age| age >= grace)
    };
    let manifests = &store.manifests;
    let is_due = |id| {
        let listed = manifests.heads().flat_map(|(_, info)| &info.segments);
        let retired = manifests.heads().flat_map(|(_, info)| &info.replaced);
        let mut over = retired.filter(|one| is_over(one.at));
        over.any(|one| one.id == Some(id)) && !listed.into_iter().any(|one| one.id == Some(id))
    };
    let segments = store.segments.iter();
    let due = segments.filter(|one| one.id().is_ok_and(is_due));
    due.fold((0, 0), |(files, bytes), one| {
        (files + 1, bytes + one.length())
    })
}

fn print(done: &Compacted, dry_run: bool, out: &mut Output) -> Result<(), Failure> {
    let would = if dry_run { "would be " } else { "" };
    if done.replaced == 0 && done.removed == 0 && done.freed == 0 {
        return out.line("nothing to do");
    }
    if done.replaced > 0 {
        print_replaced(done, would, out)?;
    }
    if done.removed > 0 {
        let files = text::count(done.removed, "replaced file", "replaced files");
        let freed = text::size(done.freed);
        out.line(format!("{files} {would}removed, {freed} freed"))?;
    } else if done.freed > 0 {
        out.line(format!("{} freed", text::size(done.freed)))?;
    }
    if done.replaced > 0 && !dry_run {
        out.wrapped(
            "the files that were replaced stay for a time of grace, for those who read them; \
             they are removed by a later `sde gc`, or by a program that saves",
            2,
        )?;
    }
    Ok(())
}

fn print_replaced(done: &Compacted, would: &str, out: &mut Output) -> Result<(), Failure> {
    out.wrapped(
        format!(
            "{} {would}replaced, {} of {} kept",
            text::count(done.replaced, "segment", "segments"),
            text::size(done.bytes_after),
            text::size(done.bytes_before),
        ),
        2,
    )?;
    if done.given_up > 0 {
        let entries = text::count(done.given_up, "entry", "entries");
        out.line(format!("{entries} {would}given up, or part of them"))?;
    }
    Ok(())
}
