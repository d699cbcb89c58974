//! The apps whose results are saved, and the amounts.

use sde::Sde;
use sde::archiver::Archiver;
use sde_archives::DirStore;
use std::path::Path;
use std::time::Duration;

/// The amounts that are measured.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Numbers in one large array, and the number of arrays.
    pub length: u64,
    pub arrays: u64,
    /// Small results in one checkpoint.
    pub small: u64,
    /// Entries of a large store, and the number of sessions that made it.
    pub large: u64,
    pub sessions: u64,
    /// Results that are added to the large store.
    pub added: u64,
    /// Results that are made durable one by one, in one try.
    pub single: u64,
    /// The number of tries of each case.
    pub rounds: usize,
    /// No round begins after this time.
    pub limit: Duration,
}

impl Scale {
    /// The reported amounts under `cargo bench`; otherwise small ones, to check that it runs.
    pub fn from_args() -> Self {
        let thorough = std::env::args().any(|arg| arg == "--bench");
        let (all, some) = (|all, _| all, |_, some| some);
        let of: fn(u64, u64) -> u64 = if thorough { all } else { some };
        Self {
            length: of(4 << 20, 1 << 16),
            arrays: of(8, 2),
            small: of(100_000, 1000),
            large: of(1_000_000, 5000),
            sessions: of(10, 2),
            added: of(1000, 100),
            single: of(64, 4),
            rounds: of(15, 2) as usize,
            limit: Duration::from_secs(of(60, 5)),
        }
    }
}

/// A small result: 98 characters, which are 100 bytes in a store.
#[sde::app]
pub fn note(number: u64) -> String {
    format!("{number:098}")
}

/// A large result.
#[sde::app]
pub fn wave(number: u64, length: u64) -> Vec<f64> {
    (0..length)
        .map(|at| (number * length + at) as f64 * 0.37)
        .collect()
}

/// An engine with a store in this folder, which is made if missing.
pub fn engine(dir: &Path) -> Sde {
    engine_with(DirStore::open(dir).unwrap())
}

/// An engine with this store.
pub fn engine_with(store: impl Archiver + 'static) -> Sde {
    Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap()
}

/// Makes the engine compute the small results with these numbers.
pub fn notes(sde: &Sde, numbers: std::ops::Range<u64>) {
    for number in numbers {
        note.call(sde, number).unwrap();
    }
}

/// The bytes of all files below a folder.
pub fn bytes_in(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let bytes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => bytes_in(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    bytes.sum()
}
