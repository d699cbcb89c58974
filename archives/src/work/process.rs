//! A process that uses a store, as people see it.

use std::time::SystemTime;

use sde::Key;
use sde::archiver::StopRequest;

/// A process that uses a store, or did so until it was killed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Process {
    /// What no other process has, nor this one when it opens the store again.
    pub id: String,
    /// The name of its machine; empty if its file can't be read.
    pub host: String,
    /// The process's number there.
    pub process: u32,
    /// Whether it lives, as far as can be told. One on another machine counts as gone if it has told nothing for 30 s.
    pub alive: bool,
    /// When it last told that it lives, by the file system's clock. It does so while it is at work.
    pub renewed: SystemTime,
    /// Since when it is at work, by its own clock.
    pub since: Option<SystemTime>,
    /// The runs that it has announced.
    pub runs: Vec<Running>,
    /// What it was told.
    pub told: Option<StopRequest>,
}

/// A run that goes on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Running {
    /// Its key.
    pub key: Key,
    /// Its app, and since when it is announced, by the clock of its process. A process tells them up to 2 s later.
    pub about: Option<(String, SystemTime)>,
}
