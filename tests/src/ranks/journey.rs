//! A program with a bit of everything, for accidents at any moment of it.
//!
//! It counts its steps: bodies of apps, on whatever thread, and the places between two calls. At the step
//! that it is told it panics. What it gives must be the same on any number of ranks,
//! and however often it was broken off before.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sde::ranks::Transfer;
use sde::store::DirStore;
use sde::{DistArray, EventLog, Handle, Inputs, SavePolicy, Sde, Source, inputs};

use super::{Rank, Ranks, Threads};

const ROUNDS: u64 = 6;

static STEPS: AtomicU64 = AtomicU64::new(0);
static PANIC_AT: AtomicU64 = AtomicU64::new(u64::MAX);
/// A file that tells when it was.
static NOTED: Mutex<Option<PathBuf>> = Mutex::new(None);

fn step() {
    let number = STEPS.fetch_add(1, Ordering::Relaxed);
    if number == PANIC_AT.load(Ordering::Relaxed) {
        if let Some(file) = &*NOTED.lock().unwrap() {
            fs::write(file, "").unwrap();
        }
        panic!("an accident");
    }
}

#[sde::app(name = "ranks.journey.point")]
fn point(x: u64) -> Vec<f64> {
    step();
    (0..300).map(|n| ((x * 1000 + n) as f64).sqrt()).collect()
}

#[sde::app(name = "ranks.journey.wave", distributed)]
fn wave(sde: &Handle, round: u64) -> Result<DistArray<f64>, sde::Error> {
    step();
    DistArray::from_fn(sde, &[40, 5], |at| {
        (round as f64 + (at[0] * 5 + at[1]) as f64).sin()
    })
}

#[sde::app(name = "ranks.journey.norm", distributed)]
fn norm(sde: &Handle, array: &DistArray<f64>) -> Result<f64, sde::Error> {
    step();
    let whole = array.gather(sde)?;
    step();
    Ok(whole.iter().map(|x| x * x).sum())
}

/// What it came to, and how much of it was computed.
pub type Arrived = (Vec<u64>, u64);

/// From the beginning to the end, with a store, and a panic at a step of this rank.
///
/// # Errors
/// If another rank panics, say.
pub fn journey(rank: Rank, store: &Path, panic_at: Option<u64>) -> Result<Arrived, sde::Error> {
    STEPS.store(0, Ordering::Relaxed);
    PANIC_AT.store(panic_at.unwrap_or(u64::MAX), Ordering::Relaxed);
    *NOTED.lock().unwrap() = Some(panicked(store));
    let (sde, _) = engine(rank, store)?;
    let mut bits = Vec::new();
    for round in 0..ROUNDS {
        bits.extend(of_round(&sde, round)?);
        sde.checkpoint_all()?;
        if sde.rank()? == 0 {
            acknowledge(store, round + 1);
        }
        step();
    }
    sde.finish()?;
    Ok((bits, sde.stats().total.computed))
}

fn engine(rank: Rank, store: &Path) -> Result<(Sde, EventLog), sde::Error> {
    let log = EventLog::new();
    let store = DirStore::open(store).unwrap();
    let builder = Sde::builder()
        .observer(log.clone())
        .store(store)
        .save(SavePolicy::OnRequest);
    let sde = rank.join(builder.save(SavePolicy::EveryResult)).build()?;
    Ok((sde, log))
}

fn of_round(sde: &Sde, round: u64) -> Result<Vec<u64>, sde::Error> {
    step();
    let list: Vec<Inputs> = (0..8).map(|x| inputs! { x: 10 * round + x }).collect();
    let mut bits = Vec::new();
    for result in sde.par_map(&point, &list) {
        bits.extend(
            result?
                .get::<Vec<f64>>("result")?
                .iter()
                .map(|x| x.to_bits()),
        );
    }
    step();
    let array = wave.call(sde, round)?;
    step();
    bits.push(norm.call(sde, &array)?.to_bits());
    let half = (2 * sde.rank()? / sde.ranks()?) as u64;
    sde.split_for_with(half as u32, 0, &Transfer::all(), |part| {
        step();
        point.call(part, 1000 + 2 * round + half)?;
        norm.call(part, &*wave.call(part, round)?)?;
        step();
        Ok(())
    })?;
    step();
    for half in 0..2 {
        let last = point.call(sde, 1000 + 2 * round + half)?;
        bits.extend(last.iter().map(|x| x.to_bits()));
    }
    Ok(bits)
}

fn note(store: &Path) -> PathBuf {
    store.with_extension("rounds")
}

fn panicked(store: &Path) -> PathBuf {
    store.with_extension("panicked")
}

/// How long ago a rank panicked.
///
/// # Panics
/// If none has.
pub fn since_panic(store: &Path) -> Duration {
    let noted = fs::metadata(panicked(store)).unwrap();
    noted.modified().unwrap().elapsed().unwrap_or_default()
}

/// Writes down that so many rounds were saved, and that all ranks know it.
fn acknowledge(store: &Path, rounds: u64) {
    let part = note(store).with_extension("part");
    fs::write(&part, rounds.to_string()).unwrap();
    fs::rename(part, note(store)).unwrap();
}

/// Loads all that was acknowledged, on one rank; gives the number of rounds.
///
/// # Panics
/// If something of it can't be loaded.
pub fn load_acknowledged(store: &Path) -> u64 {
    let rounds = fs::read_to_string(note(store)).unwrap_or_else(|_| "0".to_owned());
    let rounds: u64 = rounds.parse().unwrap();
    Ranks::of(&Threads, 1).run_ranks(|rank| {
        let (sde, log) = engine(rank, store).unwrap();
        for round in 0..rounds {
            wave.call(&sde, round).unwrap();
            for x in (10 * round..10 * round + 8).chain([1000 + 2 * round, 1001 + 2 * round]) {
                point.call(&sde, x).unwrap();
            }
        }
        for app in ["ranks.journey.wave", "ranks.journey.point"] {
            let sources = log.sources(app);
            let lost = sources.iter().filter(|source| **source != Source::Loaded);
            assert_eq!(lost.count(), 0, "{rounds} rounds, {app}: {sources:?}");
        }
    });
    rounds
}
