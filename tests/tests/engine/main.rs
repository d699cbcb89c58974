//! The rules of the engine, each shown by a test that fails when the rule is broken.

mod app_macro;
mod budget;
mod call_app;
mod callee_defaults;
mod callees;
mod cancelling;
mod compared;
mod compiling;
mod cycles;
mod decided;
mod depth;
mod destructors;
mod differences;
mod dynamic;
mod errors;
mod eviction;
mod failures;
mod failures_of_others;
mod handles;
mod held;
mod helper_names;
mod helpers;
mod identity;
mod inputs;
mod invalidation;
mod job_time;
mod leaning;
mod leaving;
mod loading;
mod looking;
mod memory;
mod metadata;
mod nearest;
mod nesting;
mod nesting_rule;
mod nondeterminism;
mod observers;
mod odd_names;
mod one_flight;
mod own_parallel;
mod par_call;
mod plan;
mod planned_workflows;
mod raw_rayon;
mod refresh;
mod results;
mod same_name;
mod save_policies;
mod scratch;
mod settings;
mod shared_lists;
mod shared_work;
mod shown;
mod sizes;
mod slots;
mod stored_failures;
mod stores;
mod stress;
mod tag_rules;
mod tags;
mod time_spent;
#[cfg(target_os = "linux")]
mod told;
mod turns;
mod two_engines;
mod unsaved;
mod used;
mod user_code;
mod volatile;

use std::sync::OnceLock;

use sde::{Error, ErrorKind, Sde};
use sde_tests::Watch;

/// An engine, and what it tells.
fn watched() -> (Sde, Watch) {
    let watch = Watch::new();
    let builder = Sde::builder().observer(watch.clone());
    let sde = builder.build().expect("without a store nothing can fail");
    (sde, watch)
}

/// The apps of the cycle that an error is about.
fn cycle(error: &Error) -> Option<Vec<String>> {
    match error.root().kind() {
        ErrorKind::Cycle { path, .. } => {
            let app = |label: &String| label.split(' ').next().unwrap_or_default().to_owned();
            Some(path.iter().map(app).collect())
        }
        _ => None,
    }
}

/// A place for the engine that an app gets hold of although it should not. Copies are the same place, which is never freed.
#[derive(Clone, Copy)]
struct Captured(&'static OnceLock<Sde>);

impl Default for Captured {
    fn default() -> Self {
        Self(sde_tests::signal::for_ever())
    }
}

impl std::ops::Deref for Captured {
    type Target = OnceLock<Sde>;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

/// A pool of rayon's with one worker.
fn one_worker() -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a pool")
}
