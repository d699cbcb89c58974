//! The journal of a process, for those who ask later.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::cache::AppStats;

/// The work of one process so far: where the time of a sweep went, and what was spared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Journal {
    /// The first half of the [`RunId`](crate::RunId)s of its computations.
    pub process: u64,
    /// When its engine was built.
    pub started: SystemTime,
    /// Its rank, and how many there are; `None` if it is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<(usize, usize)>,
    /// Counts and times of the runs of each app, by its name.
    #[serde(default)]
    pub apps: BTreeMap<String, AppStats>,
}
