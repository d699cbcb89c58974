//! Two computations of one key, compared where both are at hand.
//!
//! Nothing is computed for it, and no long value is read. Two results of one key meet anyway: when a second call ends,
//! when a run fills a gap or refreshes, and when several processes have written to a store. Other bits say that a key
//! lacks something that the result rests on, or that the app is not deterministic.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use super::Engine;
use super::run_state::Run;
use crate::cache::Count;
use crate::entry::{Entry, RecordHead};
use crate::error::join_names;
use crate::event::RunId;
use crate::result_map::{Content, ResultMap, ResultSpec, have_same_bits};
use crate::sync::lock;

/// The pairs of computations that were compared, the latest of them: a store gives both at each look.
#[derive(Default)]
pub(super) struct Compared(Mutex<HashSet<(RunId, RunId)>>);

/// More pairs are not remembered.
const MOST: usize = 1 << 16;

/// An app is warned of so often: a body that reads a clock differs for each key of a sweep.
const WARNINGS: u64 = 10;

impl Compared {
    fn is_new(&self, pair: (RunId, RunId)) -> bool {
        let mut pairs = lock(&self.0);
        if pairs.len() == MOST {
            pairs.clear();
        }
        pairs.insert(pair)
    }
}

impl Engine {
    /// Compares a computation of this run with another, and warns of results with other bits. Encodes values, so no lock may be
    /// held. Computations that need not agree are not compared.
    pub(super) fn compare(
        &self,
        run: &Run<'_>,
        (record, results): (&RecordHead, &ResultMap),
        other: &Entry,
    ) {
        let (one, two) = (record.run, other.record.run);
        let need_not_agree = one == two
            || !record.gives_the_same(&other.record)
            || self.invalid(record).is_some()
            || self.invalid(&other.record).is_some();
        if need_not_agree || !self.compared.is_new((one.min(two), one.max(two))) {
            return;
        }
        let differ = |spec: &&Arc<ResultSpec>| {
            let one = results.find(&spec.name).map(|found| found.content);
            let other = other.results.find(&spec.name).map(|named| &named.content);
            differ(spec, one, other)
        };
        let specs = run.app.resolved.info.results.iter().filter(differ);
        let names: Vec<_> = specs.map(|spec| format!("\"{}\"", spec.name)).collect();
        if names.is_empty() {
            return;
        }
        let number = {
            // One thread after the other, so that each number is seen once.
            let _pairs = lock(&self.compared.0);
            run.cache.counters.add(Count::Differing, 1);
            run.cache.counters.sum().differing
        };
        let more = match number {
            ..WARNINGS => "",
            WARNINGS => "; further keys of the app are only counted, in `AppStats::differing`",
            _ => return,
        };
        self.warn(|| {
            format!(
                "{} [{}] was computed twice, and the runs {} and {} gave other bits for {}; declare the app `nondeterministic`, \
                 or a result whose bits do not matter (a date, the order of a `HashSet`) `not_compared`{more}",
                run.cache.name,
                run.key.short(),
                other.record.run,
                record.run,
                join_names(&names)
            )
        });
    }
}

/// Whether a result is known to have other bits. Parts of ranks are not compared, nor are values without an encoding.
fn differ(spec: &ResultSpec, one: Option<&Content>, other: Option<&Content>) -> bool {
    let codec = spec
        .codec
        .filter(|_| spec.is_compared && spec.parts.is_none());
    let compared = || have_same_bits(&codec?, one?, other?);
    // A value whose `Serialize` panics can't be saved either.
    let compared = catch_unwind(AssertUnwindSafe(compared));
    matches!(compared, Ok(Some(false)))
}
