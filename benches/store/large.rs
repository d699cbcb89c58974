//! Rows 12 and 14: a store of a million entries.

use crate::peers::{pairs, redb_save, redb_scan};
use crate::place::Place;
use crate::results::{Scale, engine, engine_with, note, notes};
use sde::Key;
use sde::archiver::Archiver;
use sde_archives::DirStore;
use sde_benches::Tries;
use sde_benches::table::{Aim, Row};
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

const ADDED: &str = "adding to a large store, and checkpoint";
const NEW: &str = "the same with an empty one";
const OPENED: &str = "opening a large store until a hit and a proven absence";
const SCANNED: &str = "redb: opening, and all keys";

/// Makes a store in several sessions, each with a part of the results.
fn make(store: &Path, scale: Scale) {
    let part = scale.large / scale.sessions;
    for session in 0..scale.sessions {
        let sde = engine(store);
        notes(&sde, session * part..(session + 1) * part);
        sde.checkpoint().unwrap();
    }
}

/// The time to compute `count` results from a number on and to save them.
fn add(store: &Path, from: u64, count: u64) -> Duration {
    let sde = engine(store);
    let begin = Instant::now();
    notes(&sde, from..from + count);
    sde.checkpoint().unwrap();
    begin.elapsed()
}

fn open(store: &Path, present: u64, absent: u64) -> Duration {
    let absent = Key::from_bytes(*blake3::hash(&absent.to_le_bytes()).as_bytes());
    let begin = Instant::now();
    let store = DirStore::open(store).unwrap();
    let sde = engine_with(store.clone());
    let hit = note.call(&sde, present).unwrap();
    let miss = store.find(&absent).unwrap();
    let took = begin.elapsed();
    assert_eq!(*hit, format!("{present:098}"));
    assert!(miss.is_none());
    assert_eq!(sde.stats().total.computed, 0);
    took
}

/// Rows 12 and 14.
pub fn rows(place: &Place, scale: Scale) -> Vec<Row> {
    let folder = place.folder();
    let store = &folder.path().join("store");
    make(store, scale);
    redb_save(folder.path(), &pairs(scale.large, 100));

    let next = Cell::new(scale.large);
    let mut tries = Tries::new(scale.rounds, scale.limit);
    tries.case(OPENED, || {
        open(store, next.get() * 7919 % scale.large, next.get())
    });
    tries.case(SCANNED, || redb_scan(folder.path(), scale.large));
    let opened = tries.run();

    let mut tries = Tries::new(scale.rounds, scale.limit);
    tries.case(ADDED, || {
        let from = next.replace(next.get() + scale.added);
        add(store, from, scale.added)
    });
    tries.case(NEW, || {
        let folder = place.folder();
        let from = next.replace(next.get() + scale.added);
        add(&folder.path().join("store"), from, scale.added)
    });
    let added = tries.run();

    let (count, large) = (scale.added, scale.large);
    vec![
        Row {
            number: 12,
            work: format!("{ADDED}, {count} to {large}"),
            reference: NEW.to_owned(),
            ratio: added.ratio(ADDED, NEW),
            aim: Aim::AtMost(1.1),
            time: added.nanoseconds(ADDED),
            reference_time: added.nanoseconds(NEW),
        },
        Row {
            number: 14,
            work: format!("{OPENED}, {large} entries"),
            reference: SCANNED.to_owned(),
            ratio: opened.ratio(OPENED, SCANNED),
            aim: Aim::Faster,
            time: opened.nanoseconds(OPENED),
            reference_time: opened.nanoseconds(SCANNED),
        },
    ]
}
