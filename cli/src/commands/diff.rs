//! `sde diff`: what two stores do not have in common.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use sde::Key;
use sde::key::Digest;
use sde_archives::Precedence;
use sde_archives::inspect::Entry;
use serde_json::{Value as Json, json};

use super::App;
use crate::args::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::store;
use crate::text;
use crate::whole::Id;

/// A computation.
#[derive(Clone)]
struct Computed {
    app: String,
    rank: Precedence,
    results: BTreeMap<String, Option<Digest>>,
}

/// Of each key the computation that counts.
type Entries = BTreeMap<Key, Computed>;

pub fn run(mut arguments: Arguments, out: &mut Output) -> Result<(), Failure> {
    let mut app = None;
    while let Some(option) = arguments.option()? {
        match &*option {
            "app" => app = Some(App::new(arguments.text()?)),
            other => return Err(arguments.unknown(other)),
        }
    }
    let as_json = arguments.json;
    let [left, right] = arguments.values(["STORE", "STORE2"], 0)?;
    let names = [&left, &right].map(|path| path.clone().unwrap_or_default());
    let (left, left_damaged) = entries(&names[0], app.as_ref())?;
    let (right, right_damaged) = match is_one(&names) {
        // What somebody saves between two looks is no difference.
        true => (left.clone(), false),
        false => entries(&names[1], app.as_ref())?,
    };
    let differing = differing(&left, &right);
    let only = |these: &Entries, those: &Entries| -> Vec<(Key, String)> {
        let missing = these.iter().filter(|(key, _)| !those.contains_key(*key));
        missing
            .map(|(key, computed)| (*key, computed.app.clone()))
            .collect()
    };
    let (only_left, only_right) = (only(&left, &right), only(&right, &left));
    let same = left.len() - only_left.len() - differing.len();
    out.found |= left_damaged || right_damaged;
    out.found |= !(differing.is_empty() && only_left.is_empty() && only_right.is_empty());
    if as_json {
        let keys = |list: &[(Key, String)]| -> Json {
            let one = |(key, app): &(Key, String)| json!({ "key": key.to_string(), "app": app });
            list.iter().map(one).collect()
        };
        let other = |(key, app, results): &(Key, String, Vec<String>)| json!({ "key": key.to_string(), "app": app, "results": results });
        return out.json(&json!({
            "only_first": keys(&only_left),
            "only_second": keys(&only_right),
            "different": differing.iter().map(other).collect::<Vec<_>>(),
            "same": same,
        }));
    }
    for (sign, list) in [('-', &only_left), ('+', &only_right)] {
        for (key, app) in list {
            out.line(format!("{sign} {} {app}", key.short()))?;
        }
    }
    for (key, app, results) in &differing {
        let names = results.join(", ");
        out.wrapped(format!("! {} {app}: {names}", key.short()), 4)?;
    }
    out.wrapped(
        format!(
            "{} only in the first (-), {} only in the second (+), {} with other results (!), {} the same",
            only_left.len(),
            only_right.len(),
            differing.len(),
            text::count(same, "entry", "entries")
        ),
        2,
    )
}

/// Whether both are names of one directory.
fn is_one(names: &[OsString; 2]) -> bool {
    let [one, other] = names.each_ref().map(std::fs::canonicalize);
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

/// The entries of a store, and whether part of it could not be read.
fn entries(path: &OsString, app: Option<&App>) -> Result<(Entries, bool), Failure> {
    let (store, all) = store::read(path, |store| {
        let mut all: HashMap<Id, Computed> = HashMap::new();
        store.entries(|_, entry| {
            if app.is_none_or(|app| app.is(&entry.record.app)) {
                add(&mut all, &entry);
            }
        });
        Ok(all)
    })?;
    store.tell_damage();
    let mut entries = Entries::new();
    for ((key, _), computed) in all {
        let is_higher = |known: &Computed| computed.rank > known.rank;
        if entries.get(&key).is_none_or(is_higher) {
            entries.insert(key, computed);
        }
    }
    Ok((entries, !store.is_whole()))
}

fn add(all: &mut HashMap<Id, Computed>, entry: &Entry) {
    let record = &entry.record;
    let known = all
        .entry((record.key, record.run))
        .or_insert_with(|| Computed {
            app: record.app.to_string(),
            rank: entry.precedence(),
            results: BTreeMap::new(),
        });
    known.rank = entry.precedence().max(known.rank);
    for saved in &entry.results {
        let digest = saved.payload.as_ref().map(|payload| payload.checksum());
        let known = known.results.entry(saved.name.clone()).or_default();
        *known = known.or(digest);
    }
}

/// What both have, with results that are not the same bytes. One that only one of them has saved
/// can't be compared.
fn differing(left: &Entries, right: &Entries) -> Vec<(Key, String, Vec<String>)> {
    let mut found = Vec::new();
    for (key, ours) in left {
        let Some(theirs) = right.get(key) else {
            continue;
        };
        let differs = |(name, digest): (&String, &Option<Digest>)| {
            let other = theirs.results.get(name).copied().flatten();
            let differs = match (digest, other) {
                (Some(one), Some(other)) => *one != other,
                _ => false,
            };
            differs.then(|| name.clone())
        };
        let names: Vec<String> = ours.results.iter().filter_map(differs).collect();
        if !names.is_empty() {
            found.push((*key, ours.app.clone(), names));
        }
    }
    found
}
