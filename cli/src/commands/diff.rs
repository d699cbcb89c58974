//! `sde diff`: what two stores do not have in common.

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

/// A computation that counts.
struct Computed {
    app: Arc<str>,
    /// It is marked as not to be used.
    invalid: bool,
    /// Those that are saved.
    results: Vec<(String, Digest)>,
}

type Entries = BTreeMap<Key, Computed>;

/// An entry: its key and app.
type Named = (Key, Arc<str>);

struct Differences {
    only_first: Vec<Named>,
    only_second: Vec<Named>,
    /// Marked as not to be used in the first, and not so, or not there, in the second.
    invalid_first: Vec<Named>,
    invalid_second: Vec<Named>,
    /// With the results that are not the same.
    different: Vec<(Named, Vec<String>)>,
    same: usize,
}

impl Diff {
    pub fn run(&self, out: &mut Output) -> Result<(), Failure> {
        let stores = self.place.pair(self.second.as_ref())?;
        let first = self.entries(&stores[0], out)?;
        // What somebody saves between two looks is no difference.
        let found = match is_one(&stores) {
            true => Differences::of(&first, &first),
            false => Differences::of(&first, &self.entries(&stores[1], out)?),
        };
        let lists = found.lists();
        out.found |= !found.different.is_empty() || lists.iter().any(|(.., list)| !list.is_empty());
        match out.json {
            true => out.object(&found.object()),
            false => found.print(out),
        }
    }

    /// The entries of a store; says what can't be read of it.
    fn entries(&self, path: &Path, out: &mut Output) -> Result<Entries, Failure> {
        let (store, found) = store::read(path, |store| {
            let mut found = Computations::default();
            let wanted = |listed: &Listed| listed.is_entry() || listed.is_mark();
            store.walk(Some(&wanted), |_, item| {
                found.add(item, |entry| {
                    let app = &entry.record.app;
                    let is_wanted = self.app.as_ref().is_none_or(|wanted| wanted.is(app));
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
            // The first of a key counts.
            let computed = Computed { invalid, ..one.of };
            entries.entry(one.key).or_insert(computed);
        }
        Ok(entries)
    }
}

/// Whether both are names of one directory.
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

    /// The results that both have, and that are not the same bytes. One that only one of them has saved can't be
    /// compared.
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
        let list = |these: &Entries, is_in: &dyn Fn(&Key, &Computed) -> bool| -> Vec<Named> {
            let found = these.iter().filter(|(key, of)| is_in(key, of));
            let named = found.map(|(key, of)| (*key, Arc::clone(&of.app)));
            named.collect()
        };
        let only = |these: &Entries, those: &Entries| {
            list(these, &|key, of| !of.invalid && !those.contains_key(key))
        };
        let invalid = |these: &Entries, those: &Entries| {
            let is_there = |key: &Key| those.get(key).is_some_and(|other| other.invalid);
            list(these, &|key, of| of.invalid && !is_there(key))
        };
        let (mut different, mut same) = (Vec::new(), 0);
        for (key, one) in first {
            let other = second.get(key);
            let Some(other) = other.filter(|other| other.invalid == one.invalid) else {
                continue;
            };
            match one.differing(other) {
                results if results.is_empty() => same += 1,
                results => different.push(((*key, Arc::clone(&one.app)), results)),
            }
        }
        Self {
            only_first: only(first, second),
            only_second: only(second, first),
            invalid_first: invalid(first, second),
            invalid_second: invalid(second, first),
            different,
            same,
        }
    }

    /// The lists with their names in JSON, and what is printed before and after each entry.
    fn lists(&self) -> [(&'static str, char, &'static str, &[Named]); 4] {
        [
            ("only_first", '-', "", &self.only_first),
            ("only_second", '+', "", &self.only_second),
            (
                "invalid_first",
                'x',
                ": invalid in the first",
                &self.invalid_first,
            ),
            (
                "invalid_second",
                'x',
                ": invalid in the second",
                &self.invalid_second,
            ),
        ]
    }

    fn object(&self) -> Json {
        let lists = self.lists().map(|(name, .., list)| {
            let entries = list
                .iter()
                .map(|(key, app)| json!({ "key": key, "app": app }));
            (name.to_owned(), entries.collect::<Json>())
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
        for (_, sign, what, list) in self.lists() {
            for (key, app) in list {
                out.line(format!("{sign} {} {app}{what}", key.short()))?;
            }
        }
        for ((key, app), results) in &self.different {
            let names = results.join(", ");
            out.wrapped(format!("! {} {app}: {names}", key.short()), 4)?;
        }
        out.wrapped(
            format!(
                "{} only in the first (-), {} only in the second (+), {} invalid in one (x), {} with other results (!), {} the same",
                self.only_first.len(),
                self.only_second.len(),
                self.invalid_first.len() + self.invalid_second.len(),
                self.different.len(),
                text::count(self.same, "entry", "entries")
            ),
            2,
        )
    }
}
