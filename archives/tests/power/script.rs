//! A program that uses a store in any way that programs do, by chance.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sde::archiver::{Archiver, Batch, Selection};
use sde_archives::{DirStore, Retention, StoreOptions};

use crate::kit::made;
use crate::kit::{CHANGING, Call, HOME, Order, Random, Sim, Then};
use crate::truth::{Truth, generation};

/// How many entries, scratch states and marks there are.
const NUMBERS: u64 = 12;

pub struct Script {
    pub sim: Sim,
    pub dir: PathBuf,
    pub truth: Truth,
    random: Random,
    /// One in each of several processes.
    stores: Vec<(DirStore, Sim)>,
    /// Whether processes are killed now and then.
    kills: bool,
    /// How many calls of the store gave an error.
    pub failures: u64,
    /// Archives of their own, and what was acknowledged when they were made.
    published: Vec<(PathBuf, Truth)>,
}

impl Script {
    pub fn new(sim: Sim, seed: u64) -> Self {
        Self {
            sim,
            dir: Path::new(HOME).join("deep/store"),
            truth: Truth::default(),
            random: Random::new(seed),
            stores: Vec::new(),
            kills: true,
            failures: 0,
            published: Vec::new(),
        }
    }

    pub fn without_kills(self) -> Self {
        Self {
            kills: false,
            ..self
        }
    }

    /// The same program, started again on what is left.
    pub fn again(self, sim: Sim) -> Self {
        Self {
            sim,
            stores: Vec::new(),
            ..self
        }
    }

    /// Opens the store in another process, which may be killed soon; gives whether there is one.
    pub fn open(&mut self) -> bool {
        let process = self.sim.process();
        if self.random.once_in(2) && self.kills {
            // Before the name of a new file or folder is on the medium, too.
            let names: &[Call] = &[Call::SyncDir];
            let (calls, most) = self
                .random
                .pick(&[(CHANGING, 15), (CHANGING, 100), (names, 8)]);
            process.order_process(Order::of(
                calls,
                self.random.within(1..most),
                Then::PowerOff,
            ));
        }
        let options = StoreOptions::new()
            .segment_size(self.random.pick(&[1 << 9, 1 << 13, 1 << 20]))
            .grace(Duration::ZERO)
            .vfs(Arc::new(process.clone()));
        match options.open(&self.dir) {
            Ok(store) => self.stores.push((store, process)),
            Err(_) => self.failures += 1,
        }
        !self.stores.is_empty()
    }

    /// So many steps, or until the power fails.
    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            if self.sim.is_off() {
                break;
            }
            self.step();
            self.stores.retain(|(_, process)| !process.is_killed());
        }
    }

    pub fn step(&mut self) {
        if self.stores.is_empty() && !self.open() {
            return;
        }
        match self.random.within(0..25) {
            0 if self.stores.len() < 3 => drop(self.open()),
            1 => {
                let one = self.random.within(0..self.stores.len() as u64);
                self.stores.swap_remove(one as usize);
            }
            2..5 => self.commit(Selection::Checkpoint),
            5 | 6 => self.commit(Selection::Archive),
            7 => self.archive_again(),
            8 | 9 => self.compact(),
            10 => self.publish(),
            _ => self.save(),
        }
    }

    fn store(&mut self) -> DirStore {
        self.random.pick(&self.stores).0
    }

    fn save(&mut self) {
        let archive = self.random.once_in(5);
        let selection = match archive {
            true => Selection::Archive,
            false => Selection::Checkpoint,
        };
        let mut batch = sde::archiver::Batch::new(selection);
        let random = &mut self.random;
        let numbers = |random: &mut Random, most: u64| {
            let mut numbers: Vec<u64> = (0..random.within(0..most + 1))
                .map(|_| random.within(0..NUMBERS))
                .collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        for number in numbers(random, 3) {
            let versions = self.truth.entries.entry(number).or_default();
            versions.tried += 1;
            let entry = made::entry(number, versions.tried, selection);
            batch.entries.push(entry);
        }
        if !archive {
            for number in numbers(random, 2) {
                let number = number + NUMBERS;
                let versions = self.truth.scratch.entry(number).or_default();
                versions.tried += 1;
                batch.scratch.push(made::scratch(number, versions.tried));
            }
            if random.once_in(8) {
                let number = self.truth.marks.len() as u64;
                self.truth.marks.insert(number, false);
                batch.marks.push(made::mark(number));
            }
        }
        self.submit(&batch);
    }

    /// Archives what was checkpointed, as it is.
    fn archive_again(&mut self) {
        let mut batch = sde::archiver::Batch::new(Selection::Archive);
        for (number, versions) in &self.truth.entries {
            if versions.acknowledged > 0 && versions.acknowledged == versions.tried {
                let entry = made::entry(*number, versions.tried, Selection::Archive);
                batch.entries.push(entry);
            }
        }
        let saved = self.store().save(&batch);
        self.failures += u64::from(saved.is_err());
    }

    fn submit(&mut self, batch: &Batch) {
        let saved = self.store().save(batch);
        if saved.is_err() {
            self.failures += 1;
            return;
        }
        let whole = batch.selection == Selection::Checkpoint;
        for entry in &batch.entries {
            let run = entry.record().run;
            let versions = self.truth.entries.entry(run.process).or_default();
            versions.acknowledged = run.number;
            versions.whole = whole;
        }
        for (number, versions) in &mut self.truth.scratch {
            let key = made::key(*number);
            if batch.scratch.iter().any(|state| state.key == key) {
                versions.acknowledged = versions.tried;
            }
        }
        for (number, acknowledged) in &mut self.truth.marks {
            *acknowledged |= batch.marks.contains(&made::mark(*number));
        }
    }

    fn commit(&mut self, selection: Selection) {
        let before = generation(&self.sim, &self.dir);
        let committed = self.store().commit(selection);
        if committed.is_err() {
            self.failures += 1;
            return;
        }
        let generation = generation(&self.sim, &self.dir);
        if generation > before {
            // Else nothing was new. What a process that was killed has left is not acknowledged.
            self.truth.generation = generation;
        }
    }

    /// Gives up nothing that counts.
    fn compact(&mut self) {
        let compacted = self.store().compact(&Retention::new());
        self.failures += u64::from(compacted.is_err());
        // It makes generations too; they are not what somebody was told of.
    }

    fn publish(&mut self) {
        let there = Path::new(HOME).join(format!("published {}", self.published.len()));
        match self.store().archive_to(&there) {
            Ok(()) => self.published.push((there, self.truth.results())),
            Err(_) => self.failures += 1,
        }
    }

    pub fn check(&mut self) -> Result<(), String> {
        let read_only = self.random.once_in(2);
        self.truth.check(&self.sim, &self.dir, read_only)?;
        self.check_published(&self.sim)
    }

    /// That each archive of its own has what was acknowledged when it was made.
    pub fn check_published(&self, sim: &Sim) -> Result<(), String> {
        self.published.iter().try_for_each(|(there, truth)| {
            let checked = truth.check(sim, there, true);
            checked.map_err(|why| format!("{}: {why}", there.display()))
        })
    }
}
