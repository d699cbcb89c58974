//! `sde show`: one entry.

use sde::{AppSetup, Callee, ValueSummary};
use sde_archives::inspect::{Damage, Payload, Saved};
use serde_json::{Value as Json, json};

use crate::args::Arguments;
use crate::failure::Failure;
use crate::kernels::{self, Program, Uses};
use crate::output::Output;
use crate::store::{self, Marks, Prefix, Store, find_marked};
use crate::whole::Whole;
use crate::{json, text, time};

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    let mut all = false;
    while let Some(option) = arguments.option()? {
        match &*option {
            "all" => all = true,
            other => return Err(arguments.unknown(other)),
        }
    }
    let as_json = arguments.json;
    let [path, key] = arguments.values(["STORE", "KEY"], 0)?;
    let prefix = Prefix::read(&key.unwrap_or_default().to_string_lossy())?;
    let (store, found) = store::read(path.unwrap_or_default(), |store| {
        let (mut found, marks) = find_marked(store, &prefix)?;
        let earlier = found.len() - 1;
        if !all {
            found.truncate(1);
        }
        let values: Vec<_> = found.iter().map(|whole| values(whole, store)).collect();
        let is_program = |whole: &Whole| &*whole.entry.record.app == kernels::APP;
        let uses = match found.iter().any(is_program) {
            true => Uses::of_store(store),
            false => Uses::default(),
        };
        let found: Vec<_> = found.into_iter().zip(values).collect();
        Ok((found, earlier, marks, uses))
    })?;
    let (found, earlier, marks, uses) = found;
    for (at, (whole, values)) in found.iter().enumerate() {
        out.found |= values
            .iter()
            .any(|value| matches!(value, Checked::Damaged(_)));
        if as_json {
            out.json(&object(whole, values, &marks, &uses))?;
            continue;
        }
        if at > 0 {
            out.line("")?;
        }
        print(whole, values, &marks, &uses, out)?;
    }
    if !as_json && !all && earlier > 0 {
        let computations = text::count(earlier, "earlier computation", "earlier computations");
        out.line(format!("{computations} of this key: --all"))?;
    }
    out.flush()?;
    store.tell_damage();
    out.found |= !store.is_whole();
    Ok(())
}

/// A value whose checksum was verified.
enum Checked {
    Whole(String),
    Damaged(Damage),
    NotThere,
}

fn values(whole: &Whole, store: &mut Store) -> Vec<Checked> {
    let results = whole.entry.results.iter();
    let payloads = results.map(|saved| saved.payload.as_ref());
    payloads
        .map(|payload| payload.map_or(Checked::NotThere, |payload| checked(payload, store)))
        .collect()
}

fn checked(payload: &Payload, store: &mut Store) -> Checked {
    match payload.check(|_| ()) {
        Err(error) if store.is_gone(&error) => Checked::NotThere,
        Ok(None) => Checked::Whole(payload.short()),
        Ok(Some(damage)) => Checked::Damaged(damage),
        Err(error) => Checked::Damaged(Damage::new(
            payload.path(),
            payload.place(),
            error.to_string(),
        )),
    }
}

const INDENT: usize = 12;

fn print(
    whole: &Whole,
    values: &[Checked],
    marks: &Marks,
    uses: &Uses,
    out: &mut Output,
) -> Result<(), Failure> {
    let record = &whole.entry.record;
    let mut field = |name: &str, value: String| match value.is_empty() {
        true => Ok(()),
        false => out.wrapped(format!("{name:<INDENT$}{value}"), INDENT),
    };
    field("app", format!("{}, {}", record.app, record.code))?;
    field("key", record.key.to_string())?;
    field("identity", record.id.to_string())?;
    field("run", record.run.to_string())?;
    let host = match record.host.is_empty() {
        true => String::new(),
        false => format!(
            " on {} ({}), thread {}",
            record.host, record.target, record.thread
        ),
    };
    let took = text::duration(record.took);
    field(
        "made",
        format!("{} UTC{host}, took {took}", time::text(record.made_at)),
    )?;
    for place in &whole.places {
        field("saved", format!("{} at byte {}", place.path, place.at))?;
    }
    if record.nondeterministic {
        field(
            "note",
            "non-deterministic: it is never looked up".to_owned(),
        )?;
    }
    if let Some(mark) = marks.of(&(record.key, record.run)) {
        let when = time::text(mark.at);
        field("invalid", format!("since {when} UTC: {}", mark.reason))?;
    }
    if let Some(program) = Program::of(&whole.entry) {
        for (name, value) in program.fields(uses.of(&record.key)) {
            field(name, value)?;
        }
    }
    print_values("inputs", &record.inputs, 0, out)?;
    print_setup(&record.setup, 0, out)?;
    if !record.calls.is_empty() {
        out.line("calls")?;
        for (app, key) in &record.calls {
            out.line(format!("  {} {app}", key.short()))?;
        }
    }
    if !record.dependencies.is_empty() {
        out.line("rests on")?;
        for callee in &record.dependencies {
            out.wrapped(format!("  {}", callee_text(callee)), 4)?;
        }
    }
    out.line("results")?;
    let results: Vec<_> = whole.entry.results.iter().zip(values).collect();
    let widest = results
        .iter()
        .map(|(saved, _)| text::width(&saved.name))
        .max();
    for (saved, value) in results {
        let line = result_text(saved, value, widest.unwrap_or(0).min(24));
        out.wrapped(line, 6)?;
    }
    Ok(())
}

fn print_values(
    title: &str,
    values: &[ValueSummary],
    depth: usize,
    out: &mut Output,
) -> Result<(), Failure> {
    if values.is_empty() {
        return Ok(());
    }
    let margin = "  ".repeat(depth);
    out.line(format!("{margin}{title}"))?;
    let widest = values.iter().map(|value| text::width(&value.name)).max();
    let widest = widest.unwrap_or(0).min(24);
    for value in values {
        let line = format!("{margin}  {:<widest$}  {}", value.name, value.short);
        out.wrapped(line, depth * 2 + 6)?;
    }
    Ok(())
}

fn print_setup(setup: &AppSetup, depth: usize, out: &mut Output) -> Result<(), Failure> {
    print_values("helpers", &setup.helpers, depth, out)?;
    print_values("fields", &setup.fields, depth, out)?;
    print_values("parameters", &setup.parameters, depth, out)?;
    print_values(
        "parameters that can't change a result",
        &setup.transparent,
        depth,
        out,
    )?;
    for slot in &setup.slots {
        let margin = "  ".repeat(depth);
        out.wrapped(
            format!(
                "{margin}slot \"{}\": {}, {}",
                slot.slot, slot.app, slot.code
            ),
            depth * 2 + 4,
        )?;
        // No terminal is wide enough for more.
        if depth < 8 {
            print_setup(&slot.setup, depth + 1, out)?;
        }
    }
    if depth == 0 {
        for citation in &setup.citations {
            out.wrapped(format!("{:<INDENT$}{citation}", "cite"), INDENT)?;
        }
    }
    Ok(())
}

fn result_text(saved: &Saved, value: &Checked, widest: usize) -> String {
    let tags = json::tags(saved.tags).join(", ");
    let tags = if tags.is_empty() {
        tags
    } else {
        format!(" ({tags})")
    };
    let of = match &saved.payload {
        Some(payload) => format!(
            "{}{tags}, {}",
            text::type_name(payload.type_name()),
            text::size(payload.length())
        ),
        None => format!("not saved{tags}"),
    };
    let value = match value {
        Checked::Whole(short) => format!(": {short}"),
        Checked::Damaged(damage) => format!(
            ": DAMAGED, {} (bytes {}..{} of {})",
            damage.why, damage.place.start, damage.place.end, damage.path
        ),
        Checked::NotThere => String::new(),
    };
    format!("  {:<widest$}  {of}{value}", saved.name)
}

fn callee_text(callee: &Callee) -> String {
    match callee {
        Callee::Code { app, code, .. } => format!("{app}, {code}"),
        Callee::Named { name, id } => {
            format!("what is registered as \"{name}\", with identity {id}")
        }
        Callee::Absent { name } => format!("nothing being registered as \"{name}\""),
    }
}

fn object(whole: &Whole, values: &[Checked], marks: &Marks, uses: &Uses) -> Json {
    let record = &whole.entry.record;
    let results = whole
        .entry
        .results
        .iter()
        .zip(values)
        .map(|(saved, value)| {
            let mut object = json::saved(saved);
            match value {
                Checked::Whole(short) => {
                    object.insert("short".to_owned(), json!(short));
                }
                Checked::Damaged(damage) => {
                    object.insert("damaged".to_owned(), json!(damage.why));
                }
                Checked::NotThere => {}
            }
            Json::from(object)
        });
    let places = whole.places.iter();
    let places = places.map(
        |place| json!({ "file": place.path, "class": json::class(place.class), "at": place.at }),
    );
    let invalid = marks.of(&(record.key, record.run));
    let mut object = json!({
        "record": json::record(record),
        "results": results.collect::<Vec<_>>(),
        "bytes": whole.size(),
        "saved": places.collect::<Vec<_>>(),
        "invalid": invalid.map(|mark| json!({ "at": time::iso(mark.at), "reason": mark.reason })),
    });
    if let Some(program) = Program::of(&whole.entry) {
        object["program"] = program.object(uses.of(&record.key));
    }
    object
}
