//! What was saved, and what a store must therefore give.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sde::archiver::{Archiver, Codec, StoredEntry};
use sde_archives::{DirStore, StoreOptions};

use crate::kit::Sim;
use crate::kit::made::{self, AUXILIARY, TEXT, VALUE};
use crate::log::warnings;

#[derive(Clone, Copy, Debug, Default)]
pub struct Versions {
    /// The last that somebody tried to save.
    pub tried: u64,
    /// The last that was acknowledged.
    pub acknowledged: u64,
    /// Whether its intermediates were, too.
    pub whole: bool,
}

/// What was tried and what was acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    pub entries: BTreeMap<u64, Versions>,
    pub scratch: BTreeMap<u64, Versions>,
    /// Whether it was acknowledged.
    pub marks: BTreeMap<u64, bool>,
    /// The last generation that was acknowledged.
    pub generation: u64,
    /// Whether the medium was full: then the generations before the latest may go.
    pub was_full: bool,
    /// Whether the store may warn of losses; otherwise there must be none.
    pub losses_may_be_told_of: bool,
}

impl Truth {
    /// Opens the store and looks at everything; says what is lost or wrong.
    pub fn check(&self, sim: &Sim, dir: &Path, read_only: bool) -> Result<(), String> {
        self.check_generations(sim, dir)?;
        self.check_opened(sim, dir, read_only && self.something_is_there())
    }

    fn check_opened(&self, sim: &Sim, dir: &Path, read_only: bool) -> Result<(), String> {
        let options = StoreOptions::new().vfs(std::sync::Arc::new(sim.clone()));
        let options = match read_only {
            true => options.read_only(),
            false => options,
        };
        let (opened, warned) = warnings(|| options.open(dir));
        let store = opened.map_err(|error| format!("it can't be opened: {error}"))?;
        // A manifest vouches only for what is on the medium, and counts only if it is.
        let lost = |text: &&String| {
            text.contains(" lost") || text.contains("the generation before it counts")
        };
        if let Some(loss) = warned.iter().find(lost)
            && !self.losses_may_be_told_of
        {
            return Err(format!("a loss was warned of: {loss}"));
        }
        self.check_in(&store)
    }

    /// The same as if nothing had been acknowledged: what is found must be right, that is all.
    pub fn unacknowledged(&self) -> Self {
        let mut truth = self.clone();
        let versions = truth.entries.values_mut().chain(truth.scratch.values_mut());
        versions.for_each(|versions| versions.acknowledged = 0);
        truth.marks.values_mut().for_each(|mark| *mark = false);
        Self {
            generation: 0,
            losses_may_be_told_of: true,
            ..truth
        }
    }

    /// What an archive of its own must have: results.
    pub fn results(&self) -> Self {
        let mut truth = self.clone();
        truth
            .entries
            .values_mut()
            .for_each(|versions| versions.whole = false);
        truth.scratch.clear();
        truth.marks.values_mut().for_each(|mark| *mark = false);
        Self {
            generation: 1,
            losses_may_be_told_of: false,
            ..truth
        }
    }

    fn something_is_there(&self) -> bool {
        let mut entries = self.entries.values();
        entries.any(|versions| versions.acknowledged > 0)
    }

    /// The same in a store that is open.
    pub fn check_in(&self, store: &DirStore) -> Result<(), String> {
        for (number, versions) in &self.entries {
            let found = store.find(&made::key(*number));
            let found = found.map_err(|error| format!("entry {number}: {error}"))?;
            check_entry(*number, versions, found)
                .map_err(|why| format!("entry {number}: {why}"))?;
        }
        for (number, versions) in &self.scratch {
            check_scratch(store, *number, versions)
                .map_err(|why| format!("scratch {number}: {why}"))?;
        }
        let marks = store.marks().map_err(|error| format!("{error:#}"))?;
        for (number, acknowledged) in &self.marks {
            if *acknowledged && !marks.contains(&made::mark(*number)) {
                return Err(format!("mark {number} is lost"));
            }
        }
        for mark in &marks {
            if !self.marks.keys().any(|number| made::mark(*number) == *mark) {
                return Err(format!("nobody made {mark:?}"));
            }
        }
        Ok(())
    }

    /// The generation that was acknowledged is there. So is one before the latest, which has all that was
    /// acknowledged too: it counts if the latest is damaged.
    fn check_generations(&self, sim: &Sim, dir: &Path) -> Result<(), String> {
        let acknowledged = self.generation;
        let latest = generation(sim, dir);
        if latest < acknowledged {
            return Err(format!(
                "generation {acknowledged} is lost, the last is {latest}"
            ));
        }
        if acknowledged < 2 || self.was_full {
            return Ok(());
        }
        let damaged = sim.after_kill();
        let all = manifests(sim, dir).into_iter();
        all.filter(|(number, _)| *number == latest)
            .for_each(|(_, path)| damaged.take_away(path));
        if generation(&damaged, dir) == 0 {
            return Err(format!("no generation before {latest} is there"));
        }
        let checked = self.check_opened(&damaged, dir, true);
        checked.map_err(|why| format!("without generation {latest}: {why}"))
    }
}

/// The manifests, with the generation that each name says.
fn manifests(sim: &Sim, dir: &Path) -> Vec<(u64, PathBuf)> {
    let manifests = sim.files().into_iter().filter_map(|path| {
        let name = path.strip_prefix(dir.join("manifests")).ok()?.to_str()?;
        let (number, _) = name.strip_suffix(".manifest")?.split_once('-')?;
        Some((number.parse().ok()?, path))
    });
    manifests.collect()
}

/// The latest generation, by the names of the manifests.
pub fn generation(sim: &Sim, dir: &Path) -> u64 {
    let numbers = manifests(sim, dir).into_iter().map(|(number, _)| number);
    numbers.max().unwrap_or(0)
}

fn check_entry(number: u64, versions: &Versions, found: Option<StoredEntry>) -> Result<(), String> {
    let Some(found) = found else {
        return match versions.acknowledged {
            0 => Ok(()),
            lost => Err(format!("version {lost} is lost")),
        };
    };
    let run = found.record.run;
    let version = run.number;
    if run.process != number || version > versions.tried || version < versions.acknowledged {
        return Err(format!("version {version} was found, of {versions:?}"));
    }
    let record = made::record(number, version);
    if format!("{record:?}") != format!("{:?}", found.record) {
        return Err(format!("the record {:?} is wrong", found.record));
    }
    let known = version == versions.acknowledged;
    for result in found.results {
        // A newer one that was not acknowledged may be found if its results are there.
        let must = match result.name.as_str() {
            AUXILIARY => known && versions.whole,
            _ => versions.acknowledged > 0,
        };
        let value = result.payload.map(|payload| {
            let codec = match result.name.as_str() {
                TEXT => Codec::of::<String>(),
                _ => Codec::of::<Vec<u64>>(),
            };
            payload.decode(&codec).map_err(|error| format!("{error:#}"))
        });
        let is_right = match (result.name.as_str(), value) {
            (_, None) => !must,
            (_, Some(Err(why))) => return Err(format!("{}: {why}", result.name)),
            (TEXT, Some(Ok(value))) => {
                value.downcast::<String>().as_deref() == Some(&made::text(number, version))
            }
            (name @ (VALUE | AUXILIARY), Some(Ok(value))) => {
                let which = u64::from(name == AUXILIARY);
                value.downcast::<Vec<u64>>().as_deref()
                    == Some(&made::numbers(number, version, which))
            }
            _ => false,
        };
        if !is_right {
            return Err(format!(
                "its {} is lost or wrong: version {version}, of {versions:?}",
                result.name
            ));
        }
    }
    Ok(())
}

fn check_scratch(store: &DirStore, number: u64, versions: &Versions) -> Result<(), String> {
    let found = store.find_scratch(&made::key(number));
    let Some(payload) = found.map_err(|error| format!("{error:#}"))? else {
        return match versions.acknowledged {
            0 => Ok(()),
            lost => Err(format!("step {lost} is lost")),
        };
    };
    let value = payload.decode(&Codec::of::<(u64, Vec<u64>)>());
    let value = value.map_err(|error| format!("{error:#}"))?;
    let value = value.downcast::<(u64, Vec<u64>)>();
    let value = value.ok_or("it is of another type")?;
    let (step, numbers) = &*value;
    if *step < versions.acknowledged || *step > versions.tried {
        return Err(format!("step {step} was found, of {versions:?}"));
    }
    match *numbers == made::numbers(number, *step, 2) {
        true => Ok(()),
        false => Err(format!("step {step} is wrong")),
    }
}
