//! `sde diff`: what two stores do not have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use sde::Key;
use sde::key::Digest;
use sde_archives::inspect::{Computations, Entry, Listed, Standing};
use serde_json::{Value as Json, json};

use crate::args::{App, Place};
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, text};

/// What two stores do not have in common
///
/// Entries in one only, and results that are not the same bytes. Compares digests; no value is read. One store is compared
/// with that of SDE_STORE.
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
    /// Those that are saved.
    results: Vec<(String, Digest)>,
}

type Entries = BTreeMap<Key, Computed>;

/// An entry: its key and app.
type Named = (Key, Arc<str>);

struct Differences {
    only_first: Vec<Named>,
    only_second: Vec<Named>,
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
        out.found |= !(found.different.is_empty()
            && found.only_first.is_empty()
            && found.only_second.is_empty());
        match out.json {
            true => out.object(&found.object()),
            false => found.print(out),
        }
    }

    /// The entries of a store; says what can't be read of it.
    fn entries(&self, path: &Path, out: &mut Output) -> Result<Entries, Failure> {
        let (store, found) = store::read(path, |store| {
            let mut found = Computations::default();
            store.walk(Some(&Listed::is_entry), |_, item| {
                found.add(item, |entry| {
                    let app = &entry.record.app;
                    let is_wanted = self.app.as_ref().is_none_or(|wanted| wanted.is(app));
                    is_wanted.then(|| Computed::of(&entry))
                });
            });
            Ok(found.resolve(Computed::merge))
        })?;
        store::conclude(&store, out)?;
        // Marks were not asked for.
        let all = found.all.into_iter();
        let current = all.filter(|one| one.standing == Standing::Current);
        Ok(current.map(|one| (one.key, one.of)).collect())
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
        let only = |these: &Entries, those: &Entries| -> Vec<Named> {
            let missing = these.iter().filter(|(key, _)| !those.contains_key(*key));
            missing
                .map(|(key, of)| (*key, Arc::clone(&of.app)))
                .collect()
        };
        let different = first.iter().filter_map(|(key, one)| {
            let results = one.differing(second.get(key)?);
            (!results.is_empty()).then(|| ((*key, Arc::clone(&one.app)), results))
        });
        let different: Vec<_> = different.collect();
        let only_first = only(first, second);
        Self {
            same: first.len() - only_first.len() - different.len(),
            only_first,
            only_second: only(second, first),
            different,
        }
    }

    fn object(&self) -> Json {
        let only = |list: &[Named]| -> Json {
            let entries = list.iter();
            entries
                .map(|(key, app)| json!({ "key": key, "app": app }))
                .collect()
        };
        let different = self
            .different
            .iter()
            .map(|((key, app), results)| json!({ "key": key, "app": app, "results": results }));
        json!({
            "only_first": only(&self.only_first),
            "only_second": only(&self.only_second),
            "different": different.collect::<Vec<_>>(),
            "same": self.same,
        })
    }

    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        for (sign, list) in [('-', &self.only_first), ('+', &self.only_second)] {
            for (key, app) in list {
                out.line(format!("{sign} {} {app}", key.short()))?;
            }
        }
        for ((key, app), results) in &self.different {
            let names = results.join(", ");
            out.wrapped(format!("! {} {app}: {names}", key.short()), 4)?;
        }
        out.wrapped(
            format!(
                "{} only in the first (-), {} only in the second (+), {} with other results (!), {} the same",
                self.only_first.len(),
                self.only_second.len(),
                self.different.len(),
                text::count(self.same, "entry", "entries")
            ),
            2,
        )
    }
}
