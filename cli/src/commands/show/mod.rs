//! `sde show`: one entry.

mod run;

use clap::Args;
use console::measure_text_width;
use sde::record::{AppSetup, Callee, ValueSummary};
use sde_archives::inspect::{Decoded, NamedValue, Snapshot, StoredValue};
use serde_json::{Value as Json, json};

use crate::args::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::users::Names;
use crate::{json, store, text, time};
use run::ShownRun;
use sde_table::find::{Found, find};

/// One entry: how it was made, and its results in short form
///
/// The checksums of the results are verified.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    place: Place,
    /// The entry, by its key or the beginning of it
    key: Option<String>,
    /// All computations of this key, not only the latest
    #[arg(long)]
    all: bool,
}

impl Show {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let (path, [key]) = self.place.with([&self.key])?;
        let key = super::needed(key)?;
        let (store, (found, earlier)) = store::read(&path, |store| {
            let mut found = find(store, &key)?;
            let earlier = found.len() - 1;
            if !self.all {
                found.truncate(1);
            }
            let mut shown = Vec::new();
            for mut one in found {
                store.gone |= one.entry.check(u64::MAX);
                let run = ShownRun::of(store, &one.entry)?;
                let author = author(store, &one);
                shown.push((one, run, author));
            }
            Ok((shown, earlier))
        })?;
        for (at, (one, run, author)) in found.iter().enumerate() {
            let mut results = one.entry.results.iter();
            out.found |= results.any(|saved| saved.damage.is_some());
            if out.json {
                object(one, run.as_ref(), *author, out)?;
                continue;
            }
            if at > 0 {
                out.line("")?;
            }
            print(one, run.as_ref(), *author, out)?;
        }
        if !out.json && !self.all && earlier > 0 {
            let computations = text::count(earlier, "earlier computation", "earlier computations");
            out.line(format!("{computations} of this key: --all"))?;
        }
        store::conclude(&store, out)
    }
}

/// The user who has saved it: the owner of its file.
fn author(store: &Snapshot, found: &Found) -> Option<u32> {
    let place = found.places.first()?;
    let mut segments = store.segments.iter();
    segments.find(|one| one.path() == &*place.file)?.author()
}

const INDENT: usize = 12;

fn print(
    found: &Found,
    run: Option<&ShownRun>,
    author: Option<u32>,
    out: &mut Output,
) -> Result<(), Failure> {
    let record = &found.entry.record;
    let mut field =
        |name: &str, value: String| out.wrapped(format!("{name:<INDENT$}{value}"), INDENT);
    field("app", format!("{}, {}", record.app, record.code))?;
    let failure = record.failure.as_deref();
    field(
        "key",
        failure.map_or(record.key, |failure| failure.of).to_string(),
    )?;
    field("identity", record.id.to_string())?;
    field("run", record.run.to_string())?;
    let host = match record.host.is_empty() {
        true => String::new(),
        false => format!(
            " on {} ({}), thread {}",
            record.host, record.target, record.thread
        ),
    };
    let (made_at, took) = (
        time::text(time::of(record.made_at)),
        text::duration(record.took.as_secs_f64()),
    );
    let made = if failure.is_some() { "failed" } else { "made" };
    field(made, format!("{made_at} UTC{host}, took {took}"))?;
    if !record.user.is_empty() {
        field("user", format!("{}, by its own account", record.user))?;
    }
    if let Some(author) = author {
        field("by", Names::Users.text(author))?;
    }
    if !record.job.is_empty() {
        field("job", record.job.to_string())?;
    }
    if let Some(failure) = failure {
        let again = match failure.lasts {
            sde::Failure::Permanent => {
                "permanent: it is not computed again as long as it rests on the same code"
            }
            sde::Failure::Transient => {
                "may go well the next time: it is computed again whenever it is asked for"
            }
            _ => "computed again by the next program that asks for it, unless that keeps failures",
        };
        field("lasts", again.to_owned())?;
    }
    for place in &found.places {
        field("saved", format!("{} at byte {}", place.file, place.at))?;
    }
    if let Some(uses) = found.uses {
        let times = text::count(uses.count as usize, "time", "times");
        let last = time::text(time::of_nanos(uses.last));
        field("used", format!("{times}, last {last} UTC"))?;
    }
    if record.nondeterministic {
        field(
            "note",
            "non-deterministic: it is never looked up".to_owned(),
        )?;
    }
    if let Some(mark) = &found.mark {
        let when = time::text(time::of(mark.at));
        field("invalid", format!("since {when} UTC: {}", mark.reason))?;
    }
    list("inputs", 0, of_values(&record.inputs), out)?;
    print_setup(&record.setup, 0, out)?;
    for citation in &record.setup.citations {
        out.wrapped(format!("{:<INDENT$}{citation}", "cite"), INDENT)?;
    }
    let calls = record.calls.iter();
    let calls = calls.map(|(app, key)| ("", format!("{} {app}", key.short())));
    list("calls", 0, calls, out)?;
    let callees = record.dependencies.iter();
    list("rests on", 0, callees.map(|one| ("", callee(one))), out)?;
    if let Some(run) = run
        && found
            .entry
            .results
            .iter()
            .all(|saved| saved.damage.is_none())
    {
        return run.print(out);
    }
    if let Some(failure) = failure {
        let output = (!failure.output.is_empty()).then(|| failure.output.clone());
        let texts = [
            ("error", Some(failure.message.clone())),
            ("the end of its output", output),
        ];
        for (title, text) in texts {
            list(title, 0, text.into_iter().map(|text| ("", text)), out)?;
        }
    }
    let results = found.entry.results.iter();
    list(
        "results",
        0,
        results.map(|one| (&*one.name, result(one))),
        out,
    )
}

/// Prints texts below a title, if there are any, with their names. Further lines of a text are indented.
fn list<'a>(
    title: &str,
    depth: usize,
    items: impl Iterator<Item = (&'a str, String)>,
    out: &mut Output,
) -> Result<(), Failure> {
    let items: Vec<_> = items.collect();
    let margin = "  ".repeat(depth);
    if !items.is_empty() {
        out.line(format!("{margin}{title}"))?;
    }
    let widths = items.iter().map(|(name, _)| measure_text_width(name));
    // A very long name does not move the other texts.
    let widest = widths.max().unwrap_or(0).min(24);
    items.iter().try_for_each(|(name, text)| {
        let gap = if name.is_empty() { "" } else { "  " };
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let indent = depth * 2 + 6;
        out.wrapped(format!("{margin}  {name:<widest$}{gap}{first}"), indent)?;
        lines.try_for_each(|line| out.wrapped(format!("{:indent$}{line}", ""), indent))
    })
}

fn of_values(values: &[ValueSummary]) -> impl Iterator<Item = (&str, String)> {
    values
        .iter()
        .map(|value| (&*value.name, value.short.clone()))
}

fn print_setup(setup: &AppSetup, depth: usize, out: &mut Output) -> Result<(), Failure> {
    for (title, values) in [
        ("helpers", &setup.helpers),
        ("fields", &setup.fields),
        ("parameters", &setup.parameters),
        ("parameters that can't change a result", &setup.transparent),
    ] {
        list(title, depth, of_values(values), out)?;
    }
    // No terminal is wide enough for deeper slots.
    for slot in setup.slots.iter().filter(|_| depth < 8) {
        let margin = "  ".repeat(depth);
        let line = format!(
            "{margin}slot \"{}\": {}, {}",
            slot.slot, slot.app, slot.code
        );
        out.wrapped(line, depth * 2 + 4)?;
        print_setup(&slot.setup, depth + 1, out)?;
    }
    Ok(())
}

fn result(saved: &NamedValue) -> String {
    let tags = json::tags(saved.tags).join(", ");
    let tags = match tags.is_empty() {
        true => tags,
        false => format!(" ({tags})"),
    };
    let Some(payload) = &saved.payload else {
        return format!("not saved{tags}");
    };
    let of_type = text::type_name(payload.type_name());
    let size = text::size(payload.length());
    let value = match &saved.damage {
        None => value(payload),
        Some(damage) => format!(
            "DAMAGED, {} (bytes {}..{} of {})",
            damage.why, damage.place.start, damage.place.end, damage.path
        ),
    };
    format!("{of_type}{tags}, {size}: {value}")
}

/// Texts and lists of texts up to this many bytes are shown in full.
const READABLE: u64 = 4096;

fn value(payload: &StoredValue) -> String {
    let text = |item: &Decoded| match item {
        Decoded::Text(text) => Some(text.clone()),
        _ => None,
    };
    match payload.value(READABLE) {
        Ok(Decoded::Text(text)) if text.contains('\n') => format!("\n{text}"),
        Ok(Decoded::List(items)) if !items.is_empty() => {
            let texts: Option<Vec<_>> = items.iter().map(text).collect();
            texts.map_or_else(|| payload.short(), |texts| texts.join(", "))
        }
        Ok(Decoded::Text(text)) => text,
        _ => payload.short(),
    }
}

fn callee(callee: &Callee) -> String {
    match callee {
        Callee::Code { app, code, .. } => format!("{app}, {code}"),
        Callee::Named { name, id } => {
            format!("what is registered as \"{name}\", with identity {id}")
        }
        Callee::Absent { name } => format!("nothing being registered as \"{name}\""),
        other => format!("{other:?}"),
    }
}

fn object(
    found: &Found,
    run: Option<&ShownRun>,
    author: Option<u32>,
    out: &mut Output,
) -> Result<(), Failure> {
    let payloads = found.entry.results.iter();
    let payloads = payloads.filter_map(|saved| saved.payload.as_ref());
    let invalid = found.mark.as_ref();
    let invalid = invalid.map(|mark| json!({ "at": time::of(mark.at), "reason": mark.reason }));
    let uses = found.uses;
    out.object(&json!({
        "record": json::record(&found.entry.record),
        "results": found.entry.results.iter().map(of_result).collect::<Vec<_>>(),
        "bytes": payloads.map(StoredValue::length).sum::<u64>(),
        "saved": found.places,
        "by": author,
        "hits": uses.map_or(0, |uses| uses.count),
        "last_use": uses.map(|uses| time::of_nanos(uses.last)),
        "invalid": invalid,
        "run": run.map(ShownRun::json),
    }))
}

fn of_result(saved: &NamedValue) -> Json {
    let mut object = json!({ "name": saved.name, "tags": json::tags(saved.tags) });
    if let Some(payload) = &saved.payload {
        object["type"] = json!(payload.type_name());
        object["bytes"] = json!(payload.length());
        object["checksum"] = json!(payload.checksum());
        object["file"] = json!(payload.path());
        object["from"] = json!(payload.place().start);
        object["to"] = json!(payload.place().end);
        match &saved.damage {
            Some(damage) => object["damaged"] = json!(damage.why),
            None => object["short"] = json!(payload.short()),
        }
    }
    object
}
