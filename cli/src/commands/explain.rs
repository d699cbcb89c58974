//! `sde explain`: why an entry is another than an earlier one.

use sde::{Difference, Record};
use serde_json::json;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::store::{self, Prefix, Store, find};
use crate::{json, time};

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    if let Some(option) = arguments.option()? {
        return Err(arguments.unknown(&option));
    }
    let as_json = arguments.json;
    let [path, key, other] = arguments.values(["STORE", "KEY", "[KEY2]"], 1)?;
    let prefix = |text: std::ffi::OsString| Prefix::read(&text.to_string_lossy());
    let key = prefix(key.unwrap_or_default())?;
    let other = other.map(prefix).transpose()?;
    let (store, (record, compared)) = store::read(path.unwrap_or_default(), |store| {
        let record = latest(store, &key)?;
        let compared = match &other {
            Some(other) => {
                let other = latest(store, other)?;
                let differences = record.differences(&other);
                Some((other, differences))
            }
            None => nearest(store, &record),
        };
        Ok((record, compared))
    })?;
    match as_json {
        true => out.json(&object(&record, compared.as_ref()))?,
        false => print(&record, compared.as_ref(), out)?,
    }
    out.flush()?;
    store.tell_damage();
    // What is left out may be nearer than what was found.
    out.found |= !store.is_whole();
    Ok(())
}

fn latest(store: &mut Store, key: &Prefix) -> Result<Record, Failure> {
    let mut found = find(store, key)?;
    Ok(found.swap_remove(0).entry.record)
}

/// The most alike of all that were made before it by the same app.
fn nearest(store: &mut Store, record: &Record) -> Option<(Record, Vec<Difference>)> {
    let (mut nearest, mut found) = (None, None);
    store.entries(|_, entry| {
        let other = entry.record;
        let is_earlier = (other.made_at, other.run) < (record.made_at, record.run);
        if other.app == record.app && is_earlier && record.look_at(&other, &mut nearest) {
            found = Some(other);
        }
    });
    found.zip(nearest.map(|nearest| nearest.differences))
}

fn title(record: &Record) -> String {
    let made = time::text(record.made_at);
    format!("{} [{}], made {made} UTC", record.app, record.key.short())
}

fn print(
    record: &Record,
    compared: Option<&(Record, Vec<Difference>)>,
    out: &mut Output,
) -> Result<(), Failure> {
    out.wrapped(title(record), 2)?;
    let Some((other, differences)) = compared else {
        return out.wrapped("is the first entry of its app in this store.", 2);
    };
    if (record.key, record.run) == (other.key, other.run) {
        return out.wrapped(
            "compared with itself: it is the same entry, and nothing differs. `sde show --all` has \
             the earlier computations of its key, if there are any.",
            2,
        );
    }
    out.wrapped(format!("compared with {}:", title(other)), 2)?;
    for difference in differences {
        out.wrapped(format!("  {difference}"), 6)?;
    }
    if differences.is_empty() {
        let why = match record.key == other.key {
            true => {
                "  nothing: the same run was computed again. It was refreshed, invalidated, or \
                     its results were not there; `sde show --all` has more."
            }
            false => "  nothing that the records have.",
        };
        out.wrapped(why, 2)?;
    }
    Ok(())
}

fn object(record: &Record, compared: Option<&(Record, Vec<Difference>)>) -> serde_json::Value {
    let brief = |record: &Record| {
        json!({
            "app": record.app,
            "key": record.key.to_string(),
            "run": record.run.to_string(),
            "made_at": time::iso(record.made_at),
        })
    };
    let differences =
        compared.map(|(_, found)| found.iter().map(json::difference).collect::<Vec<_>>());
    json!({
        "entry": brief(record),
        "earlier": compared.map(|(other, _)| brief(other)),
        "differences": differences.unwrap_or_default(),
    })
}
