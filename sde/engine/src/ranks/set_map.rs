//! `par_map_on_sets`: distributed runs, each on a set of ranks, [dealt out](super::points) as sets become free.
//!
//! The ranks are split once. The sets run the items that not all ranks have. After the release each rank has all, as
//! after any release.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::deal::{LONGEST, SHORTEST};
use super::par_map::{Holder, Item, ListKeys, compute_led, deal, recorded};
use super::points::{Points, next_point, stop_all};
use super::sets::ProcessSet;
use crate::app::{Handle, NestedCall};
use crate::engine::{CalledApp, Engine, Gate, SoFar, Transfer};
use crate::error::{Error, ErrorKind, panic_message};
use crate::inputs::Inputs;
use crate::key::Key;
use crate::parallel::Finally;
use crate::ranks::collective::{Body, CollectiveOp, Desk, Header};

/// A sweep on sets of ranks, as seen by one rank.
struct Sweep<'a> {
    app: &'a CalledApp<'a>,
    list: &'a [&'a Inputs],
    /// The items that not all ranks have, on rank 0 in the order in which it deals them out.
    missing: Vec<usize>,
    whole: &'a Arc<ProcessSet>,
    /// The number of ranks of a set.
    size: usize,
    /// A digest of the list.
    digest: Key,
    /// By which the first rank deals.
    gate: Option<&'a Gate<'a>>,
}

impl Engine {
    /// A sweep on sets of `size` ranks, or on this process alone. The inputs are distinct.
    pub(crate) fn set_map(
        &self,
        from: &Handle,
        whole: Option<&Arc<ProcessSet>>,
        app: &CalledApp<'_>,
        list: &[&Inputs],
        size: usize,
    ) -> Result<Vec<Item>, Error> {
        let refused = refusal(app, list, whole.map_or(1, |whole| whole.size()), size);
        let gate = from.gate(app);
        let Some(whole) = whole.filter(|whole| whole.size() > 1) else {
            let item = from.for_items();
            let run = |inputs: &&Inputs| item().results_through(app, inputs, gate.as_ref());
            return match refused {
                Some(error) => Err(error),
                None => Ok(list.iter().map(run).collect()),
            };
        };
        let _nested = NestedCall::begin();
        let cache = whole.cache(self.cache_of(&app.resolved));
        let listed = ListKeys::of(app, list, size);
        if let Some(error) = refused {
            // Other ranks may have been given another size.
            let header = Header::new(CollectiveOp::RankMap, listed.digest, &*app.resolved.name);
            let _met = whole.meet(header.with_failure(Some(&error)));
            return Err(error);
        }
        let holders = self.holders(whole, app, &cache, &listed)?;
        let missing = (0..list.len()).filter(|at| holders[*at] != Holder::All);
        let mut missing: Vec<usize> = missing.collect();
        if whole.rank() == 0 {
            // Before ranks wait for points: `App::cost` may panic.
            missing = deal(app, list, &missing, 1).swap_remove(0);
        }
        let sweep = Sweep {
            app,
            list,
            missing,
            whole,
            size,
            digest: listed.digest,
            gate: gate.as_ref(),
        };
        let failures = match sweep.missing.is_empty() {
            true => HashMap::new(),
            false => {
                let computed = self.compute_on_sets(from, &sweep)?;
                self.tell_failed(whole, app, &computed)?
            }
        };
        let item = |(at, inputs): (usize, &&Inputs)| {
            if let Some(error) = failures.get(&at) {
                return Err(error.clone());
            }
            recorded(app, &cache, listed.keys[at]).map_or_else(|| from.results(app, inputs), Ok)
        };
        Ok(list.iter().enumerate().map(item).collect())
    }

    /// Computes the missing items; gives the results of this rank's set, on the first rank of the set.
    fn compute_on_sets(
        &self,
        from: &Handle,
        sweep: &Sweep<'_>,
    ) -> Result<HashMap<usize, Item>, Error> {
        let whole = sweep.whole;
        // The ranks left over are the first ones, so the first rank of all, which deals, is among them.
        let idle = whole.size() % sweep.size;
        let set = (whole.rank() + sweep.size - idle) / sweep.size;
        let subset = from.split(set as u32, 0)?;
        let compute = || match (subset.shared_ranks(), whole.rank()) {
            (Some(part), 0) => self.deal_to_sets(&subset, part, sweep),
            (Some(part), rank) if rank >= idle => {
                let list = whole.meetings();
                let next = || next_point(whole, list);
                self.compute_on_set(&subset, part, sweep, next, || stop_all(whole, list))
            }
            _ => Ok(HashMap::new()),
        };
        // A rank whose point panics meets the others before the panic goes on, as after any run of all ranks.
        let computed = catch_unwind(AssertUnwindSafe(compute));
        let failure = match &computed {
            Ok(computed) => computed.as_ref().err().cloned(),
            Err(panic) => {
                let (app, key) = (Arc::clone(&sweep.app.resolved.name), sweep.digest);
                let message = panic_message(&**panic);
                Some(ErrorKind::Panicked { app, key, message }.into())
            }
        };
        let is_first = subset.shared_ranks().is_some_and(|part| part.rank() == 0);
        let end = CollectiveOp::EndSweep;
        let released = subset.release_as(end, &Transfer::all(), failure.as_ref());
        let computed = computed.unwrap_or_else(|panic| resume_unwind(panic));
        // The error of all ranks, if there is one.
        released?;
        let mut computed = computed?;
        computed.retain(|_, _| is_first);
        Ok(computed)
    }

    /// Deals out points, while another thread computes those of this rank's set.
    fn deal_to_sets(
        &self,
        subset: &Handle,
        part: &ProcessSet,
        sweep: &Sweep<'_>,
    ) -> Result<HashMap<usize, Item>, Error> {
        let (whole, list) = (sweep.whole, sweep.whole.meetings());
        let computes = whole.size() % sweep.size == 0;
        let others = whole.size() / sweep.size - usize::from(computes);
        let points = Arc::new(Points::new(sweep.missing.clone()));
        // Before the first is dealt out.
        sweep.gate.inspect(|gate| heed(gate, &points));
        let desk = {
            let (points, whole) = (Arc::clone(&points), Arc::clone(whole));
            Arc::new(Desk::new(move || _ = points.answer(&whole, list)))
        };
        let work = || {
            part.lend(&desk);
            let next = || Ok(points.next(0));
            self.compute_on_set(subset, part, sweep, next, || points.stop())
        };
        let deal = |is_computing: &dyn Fn() -> bool| {
            let (mut sleep, mut told) = (SHORTEST, None);
            while is_computing() || !points.have_ended(others) {
                if let Some(gate) = sweep.gate {
                    heed(gate, &points);
                }
                let served = desk.serve(sleep);
                let asked = points.answer(whole, list);
                sleep = if served || asked {
                    SHORTEST
                } else {
                    (2 * sleep).min(LONGEST)
                };
                let done = points.done();
                if told.replace(done) != Some(done) {
                    let all = sweep.missing.len();
                    let so_far = SoFar { done, failed: 0 };
                    self.progress(&sweep.app.resolved.name, so_far, all, false);
                }
            }
        };
        let computed = match computes {
            true => compute_led(whole, work, deal).and_then(|(computed, ())| computed),
            false => {
                deal(&|| false);
                Ok(HashMap::new())
            }
        };
        if let Some(error) = points.lost() {
            return Err(error);
        }
        let mut computed = computed?;
        if let Some(gate) = sweep.gate {
            let left = points.take_left().into_iter();
            computed.extend(left.map(|at| (at, Err(gate.closed()))));
        }
        Ok(computed)
    }

    /// Computes the points that this set's first rank is given.
    fn compute_on_set(
        &self,
        subset: &Handle,
        part: &ProcessSet,
        sweep: &Sweep<'_>,
        next: impl Fn() -> Result<Option<usize>, Error>,
        stop: impl Fn(),
    ) -> Result<HashMap<usize, Item>, Error> {
        let is_first = part.rank() == 0;
        let may_ask = Cell::new(is_first);
        // Stops the sweep if this set fails before it is told the end.
        let _on_failure = Finally(|| {
            if may_ask.get() {
                stop();
            }
        });
        let mut computed = HashMap::new();
        loop {
            let next = if is_first { next() } else { Ok(None) };
            let point = next.as_ref().ok().copied().flatten();
            may_ask.set(is_first && point.is_some());
            let name = &*sweep.app.resolved.name;
            let header = Header::new(CollectiveOp::RankMap, sweep.digest, name);
            let header = header.with_body(Body::Point(point));
            let met = part.meet(header.with_failure(next.as_ref().err()))?;
            let Body::Point(Some(at)) = met[0].body else {
                return Ok(computed);
            };
            let inputs = sweep.list[at];
            let item = subset.results(sweep.app, inputs);
            computed.insert(at, item);
        }
    }
}

/// Has no point dealt out that does not fit the time left, as the gate has it.
fn heed(gate: &Gate<'_>, points: &Points) {
    for (number, began, took) in points.take_costs() {
        // No run has such a number.
        gate.note_elsewhere((0, number), began, took);
    }
    let closes = gate
        .closes_in()
        .map(|time| Instant::now().checked_add(time));
    points.close_at(closes.flatten());
}

/// The error if an app can't be mapped on sets of `size` ranks.
fn refusal(app: &CalledApp<'_>, list: &[&Inputs], ranks: usize, size: usize) -> Option<Error> {
    let name = &app.resolved.name;
    let has_equal_items = || {
        let mut seen = HashSet::new();
        let mut encoded = list.iter().map(|inputs| inputs.to_keep());
        encoded.any(|one| matches!(one, Ok(Some(bytes)) if !seen.insert(bytes)))
    };
    let why = match size {
        _ if !app.resolved.is_distributed() => {
            "it is not distributed, so one rank of a set would compute it while the others wait; use `par_map`".to_owned()
        }
        0 => "a set has one rank at least".to_owned(),
        // Ranks tell one another one result for each key.
        _ if app.resolved.nondeterministic && has_equal_items() => {
            "it is non-deterministic, and two items are equal; add an input to the app, such as a `replica` number, and give each item another".to_owned()
        }
        _ if size > ranks && ranks > 1 => {
            format!("a set is to have {size} ranks, and there are {ranks}")
        }
        _ => return None,
    };
    Some(Error::refused(format!("`par_map_on_sets` of {name}"), why))
}
