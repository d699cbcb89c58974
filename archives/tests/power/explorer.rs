//! What manifests, removals and rewrites promise, in any order: processes that save, commit, compact, give up, take out and
//! invalidate take turns call by call, while others read; now and then one is killed, all are, or the power fails.
//!
//! What must hold at any time: nothing that was acknowledged is lost, nothing that was given up, replaced or invalidated is
//! back, and who opens the store is told of no damage and no loss.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use sde::archiver::{Archiver, Batch, Selection};
use sde_archives::{DirStore, Retention, StoreOptions};

use crate::count;
use crate::engine::{dir, options};
use crate::kit::{CHANGING, Order, Random, Sim, Then, Turns, made};
use crate::log::warnings;
use crate::threads::AtEnd;
use crate::truth::Truth;

/// How many entries, and how many runs with states, each process has; no other saves them.
const OWN: u64 = 3;
/// Whether all have each lock in half of the orders. A compaction that gives up what it has written, since another was at it,
/// removes segments that a third process may have vouched for: that is told as a loss, and is none.
const LYING: bool = false;
/// Marks have numbers from here on.
const MARKS: u64 = 1000;
const WRITERS: u64 = 2;
const READERS: u64 = 1;
const HOUR: Duration = Duration::from_secs(3600);

/// What all processes know together.
#[derive(Clone, Default)]
struct Known {
    truth: Truth,
    /// The last version of which the intermediates were given up.
    given_up: BTreeMap<u64, u64>,
    /// The last version that was taken out.
    taken_out: BTreeMap<u64, u64>,
    /// How often somebody began to take out an entry.
    removals: u64,
}

impl Known {
    /// What a store must have that is opened from now on, while others go on.
    fn while_others_go_on(&self) -> Self {
        let mut known = self.clone();
        let truth = &mut known.truth;
        let versions = truth.entries.values_mut().chain(truth.scratch.values_mut());
        versions.for_each(|one| one.tried = u64::MAX);
        for mark in MARKS..2 * MARKS {
            truth.marks.entry(mark).or_insert(false);
        }
        known
    }

    fn check_in(&self, store: &DirStore) -> Result<(), String> {
        self.truth.check_in(store)?;
        for (number, version) in &self.given_up {
            if self::version(store, *number) == Some((*version, true)) {
                return Err(format!("intermediates of entry {number} are back"));
            }
        }
        for (number, version) in &self.taken_out {
            let found = self::version(store, *number);
            if found.is_some_and(|(found, _)| found <= *version) {
                return Err(format!("entry {number} is back: {found:?}"));
            }
        }
        Ok(())
    }

    /// Opens the store as a program that reads does.
    fn check(&self, options: StoreOptions) -> Result<(), String> {
        let (opened, warned) = warnings(|| options.open(dir()));
        let store = opened.map_err(|error| format!("it can't be opened: {error}"))?;
        let is_false = |text: &&String| {
            let told = [
                " lost",
                "generation before it counts",
                "can't be read",
                "bytes are zeros",
            ];
            told.iter().any(|told| text.contains(told))
        };
        if let Some(text) = warned.iter().find(is_false) {
            return Err(text.clone());
        }
        let mut checked = self.check_in(&store);
        // Without a grace a file may go between the find and the reading of a value.
        while checked
            .as_ref()
            .is_err_and(|why| why.contains("its file is gone"))
        {
            checked = self.check_in(&store);
        }
        std::mem::forget(store);
        checked
    }
}

/// Which version of an entry a store has, and whether with its intermediates.
fn version(store: &DirStore, number: u64) -> Option<(u64, bool)> {
    let found = store.find(&made::key(number)).ok()??;
    let mut results = found.results.iter();
    let whole = results.any(|one| one.name == made::AUXILIARY && one.payload.is_some());
    Some((found.record.run.number, whole))
}

/// One that saves.
struct Writer<'a> {
    process: Sim,
    known: &'a Mutex<Known>,
    random: Random,
    /// The first of its entries.
    first: u64,
    options: StoreOptions,
    /// Whether limits are kept, by any process.
    gives_up: bool,
    store: Option<DirStore>,
}

impl Writer<'_> {
    fn run(&mut self, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            if self.process.is_killed() || self.process.is_off() {
                break;
            }
            self.step()?;
        }
        if self.random.once_in(2) {
            // As if it were killed; else it ends, and seals what it has written.
            std::mem::forget(self.store.take());
        }
        self.store = None;
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let Some(store) = self.store.clone() else {
            self.store = self.options.clone().open(dir()).ok();
            return Ok(());
        };
        match self.random.within(0..13) {
            0..4 => self.save(&store, false),
            4 => self.save(&store, true),
            5 => self.mark(&store),
            6 | 7 => drop(store.commit(Selection::Checkpoint)),
            8 | 9 => drop(store.compact(&Retention::new())),
            10 if self.gives_up => return self.give_up(&store),
            11 if self.gives_up => return self.take_out(&store),
            _ => self.store = None,
        }
        Ok(())
    }

    /// On one thread, so that a seed gives one order.
    fn submit(store: &DirStore, batch: &Batch) -> bool {
        store
            .encode(batch)
            .is_ok_and(|write| write.unwrap()().is_ok())
    }

    fn save(&mut self, store: &DirStore, is_scratch: bool) {
        let number = self.first + self.random.within(0..OWN) + if is_scratch { 100 } else { 0 };
        let mut known = self.known.lock().unwrap();
        let all = match is_scratch {
            true => &mut known.truth.scratch,
            false => &mut known.truth.entries,
        };
        let versions = all.entry(number).or_default();
        versions.tried += 1;
        let version = versions.tried;
        drop(known);
        let mut batch = sde::archiver::Batch::new(Selection::Checkpoint);
        match is_scratch {
            true => batch.scratch.push(made::scratch(number, version)),
            false => batch
                .entries
                .push(made::entry(number, version, batch.selection)),
        }
        // A limit is for states too.
        let may_go = is_scratch && self.gives_up;
        if Self::submit(store, &batch) && !self.process.is_killed() && !may_go {
            let mut known = self.known.lock().unwrap();
            let all = match is_scratch {
                true => &mut known.truth.scratch,
                false => &mut known.truth.entries,
            };
            all.entry(number).or_default().acknowledged = version;
        }
    }

    fn mark(&mut self, store: &DirStore) {
        let mut known = self.known.lock().unwrap();
        let number = MARKS + known.truth.marks.len() as u64;
        known.truth.marks.insert(number, false);
        drop(known);
        let mut batch = sde::archiver::Batch::new(Selection::Checkpoint);
        batch.marks.push(made::mark(number));
        if Self::submit(store, &batch) && !self.process.is_killed() {
            self.known.lock().unwrap().truth.marks.insert(number, true);
        }
    }

    /// Gives up all intermediates; those of its own entries that it finds gone must not come back.
    fn give_up(&mut self, store: &DirStore) -> Result<(), String> {
        let compacted = store.compact(&Retention::new().capacity(0));
        // What another process is at may not be on the medium yet.
        let done = compacted.is_ok_and(|done| !done.busy);
        if !done || self.process.is_killed() || self.process.is_off() {
            return Ok(());
        }
        for number in self.first..self.first + OWN {
            let found = version(store, number);
            let mut known = self.known.lock().unwrap();
            if let Some((version, false)) = found {
                known.given_up.insert(number, version);
            }
        }
        Ok(())
    }
}

impl Writer<'_> {
    /// Takes out one of its own entries, which must not come back unless it is saved again.
    fn take_out(&mut self, store: &DirStore) -> Result<(), String> {
        let number = self.first + self.random.within(0..OWN);
        let versions = |known: &mut Known| {
            known.removals += 1;
            let versions = known.truth.entries.entry(number).or_default();
            (std::mem::take(&mut versions.acknowledged), versions.tried)
        };
        // From now on it may be gone.
        let (acknowledged, tried) = versions(&mut self.known.lock().unwrap());
        let wanted = made::key(number);
        let done = store.remove(|one| *one.key == wanted);
        if self.process.is_killed() || self.process.is_off() {
            return Ok(());
        }
        let mut known = self.known.lock().unwrap();
        match done {
            Ok(done) if !done.busy && done.left == 0 => {
                known.taken_out.insert(number, tried);
            }
            Ok(_) => {
                let versions = known.truth.entries.entry(number).or_default();
                versions.acknowledged = acknowledged;
            }
            Err(_) => {}
        }
        Ok(())
    }
}

/// Some rounds, in each of which processes go on for a while; after each all is checked.
fn explore(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut sim = Sim::new();
    let lying = LYING && random.once_in(2);
    let known = Mutex::new(Known::default());
    let grace = random.pick(&[Duration::ZERO, HOUR / 6]);
    // Of two compactions at once, which locks keep apart, one may copy what the other gives up.
    let gives_up = !lying && random.once_in(2);
    let mut ahead = Duration::ZERO;
    // That there is a store is on the medium once something is.
    let store = options(&sim).open(dir()).unwrap();
    store.save(&made::entries([99])).unwrap();
    drop(store);
    for round in 0..4 {
        if lying {
            sim.lying_locks();
        }
        sim.seed(random.number());
        // Nobody keeps the power on for ever.
        let ends = random.within(0..4);
        if ends == 0 {
            sim.order(Order::of(CHANGING, random.within(1..150), Then::PowerOff));
        }
        let processes: Vec<Sim> = (0..WRITERS + READERS).map(|_| sim.process()).collect();
        processes
            .iter()
            .for_each(|process| process.pass_time(ahead));
        let stay = random.pick(&[1, 4, 30, 200]);
        let numbers = processes.iter().map(Sim::number);
        let turns = Turns::new(random.number(), stay, numbers);
        if ends == 1 {
            let killed = Order::of(CHANGING, random.within(1..60), Then::PowerOff);
            processes[0].order_process(killed);
        }
        let outcome = std::thread::scope(|scope| {
            let mut running = Vec::new();
            for (at, process) in processes.iter().enumerate() {
                process.take_turns(Some(&turns));
                let (turns, known, random) = (turns.clone(), &known, Random::new(random.number()));
                running.push(scope.spawn(move || {
                    let _end = AtEnd(|| {
                        process.take_turns(None);
                        turns.ended(process.number());
                    });
                    run(at as u64, process, known, random, (grace, gives_up))
                }));
            }
            let outcomes = running.into_iter().map(|one| one.join().unwrap());
            // All are waited for.
            outcomes
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<Result<(), _>>()
        });
        outcome.map_err(|why| format!("round {round}: {why}"))?;
        sim.no_orders();
        sim = match random.within(0..3) {
            0 if ends != 0 => sim.clone(),
            1 => sim.after_kill(),
            _ => sim.power_loss(random.number()),
        };
        if random.once_in(2) {
            ahead += HOUR;
        }
        let reader = sim.process();
        reader.pass_time(ahead);
        let known = known.lock().unwrap();
        let checked = known.check(options(&reader).read_only());
        checked.map_err(|why| format!("after round {round}: {why}"))?;
    }
    Ok(())
}

/// What one process does.
fn run(
    at: u64,
    process: &Sim,
    known: &Mutex<Known>,
    mut random: Random,
    (grace, gives_up): (Duration, bool),
) -> Result<(), String> {
    let options = options(process).grace(grace);
    if at < WRITERS {
        let mut writer = Writer {
            process: process.clone(),
            known,
            first: at * OWN,
            options: options.segment_size(random.pick(&[1 << 9, 1 << 13, 1 << 20])),
            random,
            gives_up,
            store: None,
        };
        return writer.run(8);
    }
    for _ in 0..4 {
        let check = || {
            let must = known.lock().unwrap().while_others_go_on();
            (must.removals, must.check(options.clone().read_only()))
        };
        let (mut removals, mut checked) = check();
        // What was taken out meanwhile may be gone.
        while checked.is_err() && removals < known.lock().unwrap().removals {
            (removals, checked) = check();
        }
        if process.is_off() {
            break;
        }
        checked.map_err(|why| format!("who reads: {why}"))?;
    }
    Ok(())
}

#[test]
fn in_any_order_nothing_is_lost_and_nothing_comes_back() {
    let seeds = count(150, 20_000);
    for seed in 0..seeds {
        explore(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    println!("{seeds} orders");
}
