//! The caches that are compared: our cells, and the same cache made of locks.

use sde::last_value::{LastValue, LastValuePerThread, LastValueWords};
use std::sync::{Mutex, RwLock};

/// A cache of one record with a number for a key.
pub trait Cell: Sync {
    /// The value for `key`, remembered or from `compute`, which is then remembered.
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64;
}

impl Cell for LastValueWords<u64, u64> {
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64 {
        self.get_or_compute(&key, compute)
    }
}

impl Cell for LastValue<u64, u64> {
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64 {
        self.get_or_compute(&key, compute)
    }
}

impl Cell for LastValuePerThread<u64, u64> {
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64 {
        self.get_or_compute(&key, compute)
    }
}

/// A key and its value, under a lock.
pub type Record = (u64, u64);

/// A mutex, waited for.
#[derive(Default)]
pub struct MutexLock(pub Mutex<Record>);

impl Cell for MutexLock {
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64 {
        let last = *self.0.lock().unwrap();
        if last.0 == key {
            return last.1;
        }
        let value = compute();
        *self.0.lock().unwrap() = (key, value);
        value
    }
}

/// A mutex, passed by if it is taken: the second program of the seed document.
#[derive(Default)]
pub struct MutexTry(pub Mutex<Record>);

impl Cell for MutexTry {
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64 {
        let last = self.0.try_lock().map(|last| *last);
        if let Ok((last, value)) = last
            && last == key
        {
            return value;
        }
        let value = compute();
        if let Ok(mut last) = self.0.try_lock() {
            *last = (key, value);
        }
        value
    }
}

/// A readers-writer lock, waited for.
#[derive(Default)]
pub struct RwRead(pub RwLock<Record>);

impl Cell for RwRead {
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64 {
        let last = *self.0.read().unwrap();
        if last.0 == key {
            return last.1;
        }
        let value = compute();
        *self.0.write().unwrap() = (key, value);
        value
    }
}

/// A readers-writer lock, passed by if it is taken: the third program of the seed document.
#[derive(Default)]
pub struct RwTry(pub RwLock<Record>);

impl Cell for RwTry {
    fn value(&self, key: u64, compute: impl FnOnce() -> u64) -> u64 {
        let last = self.0.try_read().map(|last| *last);
        if let Ok((last, value)) = last
            && last == key
        {
            return value;
        }
        let value = compute();
        if let Ok(mut last) = self.0.try_write() {
            *last = (key, value);
        }
        value
    }
}
