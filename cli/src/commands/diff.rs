//! `sde diff`: the differences of two stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use sde::Key;
use sde::key::Digest;
use sde_archives::inspect::{Computations, Entry, Listed, Standing};
use serde_json::{Map, Value as Json, json};

use crate::args::{App, Place};
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, text};

/// What two stores do not have in common
///
/// Entries in one only, those that are marked as not to be used in one only, and results that are not the same bytes.
/// Compares digests. One store is compared with that of SDE_STORE.
#[derive(Args)]
pub struct Diff {
    #[command(flatten)]
    place: Place,
    /// The other store
    #[arg(value_name = "STORE2", value_hint = ValueHint::DirPath)]
    second: Option<PathBuf>,
    /// Only of this app; NAME may end in *
    #[arg(long, value_name = "NAME")]
    app: Option<App>,
}

/// A computation that counts, of one store.
struct Computed {
    app: Arc<str>,
    /// Whether it is marked as not to be used.
    invalid: bool,
    /// The saved results.
    results: Vec<(String, Digest)>,
}

type Entries = BTreeMap<Key, Computed>;

/// An entry: its key and app.
type Named = (Key, Arc<str>);

/// The lists of entries that are in order in one store only: the name in JSON, and the marks printed before and
/// after each
/// entry.
const LISTS: [(&str, char, &str); 4] = [
    ("only_first", '-', ""),
    ("only_second", '+', ""),
    ("invalid_first", 'x', ": invalid in the first"),
    ("invalid_second", 'x', ": invalid in the second"),
];

#[derive(Default)]
struct Differences {
    lists: [Vec<Named>; 4],
    /// Entries of both stores, each with the names of its different results.
    different: Vec<(Named, Vec<String>)>,
    same: usize,
}

impl Diff {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let stores = self.place.pair(self.second.as_ref())?;
        let first = self.entries(&stores[0], out)?;
        // With one store under two names, a save between two reads would look like a difference.
        let found = match is_one(&stores) {
            true => Differences::of(&first, &first),
            false => Differences::of(&first, &self.entries(&stores[1], out)?),
        };
        out.found |= !found.different.is_empty() || found.lists.iter().any(|list| !list.is_empty());
        match out.json {
            true => out.object(&found.object()),
            false => found.print(out),
        }
    }

    /// The entries of a store; tells what can't be read of it.
    fn entries(&self, path: &Path, out: &mut Output) -> Result<Entries, Failure> {
        let (store, found) = store::read(path, |store| {
            let mut found = Computations::default();
            let wanted = |listed: &Listed| listed.is_entry() || listed.is_mark();
            store.walk(Some(&wanted), |_, item| {
                found.add(item, |entry| {
                    let app = &entry.record.app;
                    let is_wanted = self.app.as_ref().is_none_or(|wanted| wanted.is(app));
                    let is_wanted = is_wanted && entry.record.failure.is_none();
                    is_wanted.then(|| Computed::of(&entry))
                });
            });
            let found = found.resolve(Computed::merge);
            store.gone |= found.gone;
            Ok(found)
        })?;
        store::conclude(&store, out)?;
        let mut entries = Entries::new();
        for one in found.all {
            let invalid = one.standing == Standing::Invalid;
            // The computation that counts comes first for each key.
            let computed = Computed { invalid, ..one.of };
            entries.entry(one.key).or_insert(computed);
        }
        Ok(entries)
    }
}

/// Whether both paths lead to one directory.
fn is_one(names: &[PathBuf; 2]) -> bool {
    let [one, other] = names.each_ref().map(std::fs::canonicalize);
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

impl Computed {
    fn of(entry: &Entry) -> Self {
        let results = entry.results.iter();
        let saved = results.filter_map(|one| Some((one.name.clone(), one.payload.as_ref()?)));
        Self {
            app: Arc::clone(&entry.record.app),
            invalid: false,
            results: saved.map(|(name, of)| (name, of.checksum())).collect(),
        }
    }

    fn digest(&self, of: &str) -> Option<Digest> {
        let found = self.results.iter().find(|(name, _)| name == of);
        found.map(|(_, digest)| *digest)
    }

    fn merge(&mut self, other: &mut Self) {
        let results = other.results.drain(..);
        let new = results.filter(|(name, _)| self.digest(name).is_none());
        let new: Vec<_> = new.collect();
        self.results.extend(new);
    }

    /// The results that both have saved with different bytes.
    fn differing(&self, other: &Self) -> Vec<String> {
        let differs = |(name, digest): &&(String, Digest)| {
            other.digest(name).is_some_and(|other| other != *digest)
        };
        let differing = self.results.iter().filter(differs);
        differing.map(|(name, _)| name.clone()).collect()
    }
}

impl Differences {
    fn of(first: &Entries, second: &Entries) -> Self {
        let mut found = Self::default();
        let all: BTreeMap<&Key, &Computed> = second.iter().chain(first).collect();
        for (key, any) in all {
            let named = (*key, Arc::clone(&any.app));
            let list = match (first.get(key), second.get(key)) {
                (Some(one), Some(other)) if one.invalid == other.invalid => {
                    match one.differing(other) {
                        results if results.is_empty() => found.same += 1,
                        results => found.different.push((named, results)),
                    }
                    continue;
                }
                (Some(one), _) if one.invalid => 2,
                (_, Some(other)) if other.invalid => 3,
                (Some(_), _) => 0,
                (None, _) => 1,
            };
            found.lists[list].push(named);
        }
        found
    }

    fn object(&self) -> Json {
        let lists = LISTS.iter().zip(&self.lists).map(|((name, ..), list)| {
            let entries = list.iter();
            let entries = entries.map(|(key, app)| json!({ "key": key, "app": app }));
            ((*name).to_owned(), entries.collect::<Json>())
        });
        let mut object = Map::from_iter(lists);
        let different = self
            .different
            .iter()
            .map(|((key, app), results)| json!({ "key": key, "app": app, "results": results }));
        object.insert("different".to_owned(), different.collect());
        object.insert("same".to_owned(), self.same.into());
        object.into()
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        for ((_, sign, what), list) in LISTS.iter().zip(&self.lists) {
            for (key, app) in list {
                out.line(format!("{sign} {} {app}{what}", key.short()))?;
            }
        }
        for ((key, app), results) in &self.different {
            let names = results.join(", ");
            out.wrapped(format!("! {} {app}: {names}", key.short()), 4)?;
        }
        let [first, second, invalid, invalid_second] = self.lists.each_ref().map(Vec::len);
        out.wrapped(
            format!(
                "{first} only in the first (-), {second} only in the second (+), {} invalid in one (x), {} with other results (!), {} the same",
                invalid + invalid_second,
                self.different.len(),
                text::count(self.same, "entry", "entries")
            ),
            2,
        )
    }
}
