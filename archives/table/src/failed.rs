//! Runs that failed, as they are stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use sde::record::Record;
use sde::{Failure, Key};
use sde_archives::inspect::{Computation, Standing};

/// A failure in a list. There may be millions, so only these fields are kept.
#[derive(Debug)]
pub struct FailedLine {
    /// The first line of the error.
    pub error: String,
    /// The machine it ran on.
    pub host: Arc<str>,
    /// The job it ran in; empty without one.
    pub job: Arc<str>,
    /// How long the failure lasts, in a word.
    pub lasts: &'static str,
}

/// The longest error in a list, in characters.
const LONGEST: usize = 200;

impl FailedLine {
    /// The failure in a record, if it has one.
    pub fn of(record: &Record) -> Option<Self> {
        let failure = record.failure.as_ref()?;
        Some(Self {
            error: first_line(&failure.message),
            host: Arc::clone(&record.host),
            job: Arc::clone(&record.job),
            lasts: lasts(failure.lasts),
        })
    }
}

/// As much of a message as a list shows.
pub fn first_line(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let mut error: String = first.chars().take(LONGEST).collect();
    if error.len() < message.trim_end().len() {
        error.push('…');
    }
    error
}

/// How long a failure lasts, in a word.
pub const fn lasts(failure: Failure) -> &'static str {
    match failure {
        Failure::Permanent => "permanent",
        Failure::Transient => "transient",
        _ => "ordinary",
    }
}

/// The keys of the failures that stand, among computations of which `of` gives the failed run: the latest of each run
/// that has had no result since.
pub fn standing<T>(all: &[Computation<T>], of: impl Fn(&T) -> Option<Key>) -> HashSet<Key> {
    let is_current = |one: &&Computation<T>| one.standing == Standing::Current;
    let failed = all.iter().filter(is_current);
    let failed = failed.filter_map(|one| Some((of(&one.of)?, one)));
    let failed: Vec<(Key, &Computation<T>)> = failed.collect();
    if failed.is_empty() {
        return HashSet::new();
    }
    let made = |one: &Computation<T>| one.precedence.made_at;
    let results: HashMap<Key, SystemTime> = all
        .iter()
        .filter(is_current)
        .map(|one| (one.key, made(one)))
        .collect();
    let stands = |(of, one): &(Key, &Computation<T>)| {
        let result = results.get(of);
        result.is_none_or(|result| *result < made(one))
    };
    let standing = failed.into_iter().filter(stands);
    standing.map(|(_, one)| one.key).collect()
}
