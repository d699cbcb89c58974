//! The savings of each cache on each trace.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bound::bound;
use super::ours::Ours;
use super::peers::{Cache, Greedy, Moka, QuickCache};
use super::traces::Trace;

/// As parts of the bytes of all items asked for.
pub const BUDGETS: [f64; 7] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// The caches; the last two are ours and the bound.
pub const NAMES: [&str; 6] = ["LRU", "moka", "quick_cache", "GDSF", "SDE", "bound"];

/// A trace within a budget.
pub struct Cell {
    pub pattern: String,
    pub costs: &'static str,
    pub budget: f64,
    /// The part of the cost of all requests that is saved, by [`NAMES`].
    pub saved: [f64; 6],
}

impl Cell {
    pub fn ours(&self) -> f64 {
        self.saved[4]
    }

    /// The best other cache: its savings and its name.
    pub fn best(&self) -> (f64, &'static str) {
        let others = self.saved.into_iter().zip(NAMES).take(4);
        others
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .unwrap()
    }
}

/// Runs all traces, on all processors.
pub fn of(traces: &[Trace]) -> Vec<Cell> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(trace) = traces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let cells = BUDGETS.map(|budget| cell(trace, budget));
            all.lock().unwrap().extend(cells);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut cells = all.into_inner().unwrap();
    let place = |cell: &Cell| {
        traces
            .iter()
            .position(|trace| trace.pattern == cell.pattern && trace.costs == cell.costs)
    };
    cells.sort_by_key(place);
    cells
}

fn cell(trace: &Trace, part: f64) -> Cell {
    let budget = (trace.working_set() as f64 * part) as u64;
    let items = (trace.items.len() as f64 * part) as usize + 1;
    let mut caches: [Box<dyn Cache>; 5] = [
        Box::new(Greedy::lru(budget)),
        Box::new(Moka::new(budget)),
        Box::new(QuickCache::new(budget, items)),
        Box::new(Greedy::gdsf(budget)),
        Box::new(Ours::new(budget, trace.items.len())),
    ];
    let saved = caches.each_mut().map(|cache| saved(trace, &mut **cache));
    let [lru, moka, quick, gdsf, ours] = saved;
    let saved = [lru, moka, quick, gdsf, ours, bound(trace, budget)].map(|it| it / trace.total());
    Cell {
        pattern: trace.pattern.clone(),
        costs: trace.costs,
        budget: part,
        saved,
    }
}

fn saved(trace: &Trace, cache: &mut dyn Cache) -> f64 {
    let mut saved = 0.0;
    for number in &trace.requests {
        let item = trace.items[*number as usize];
        if cache.get(*number, item) {
            saved += item.cost as f64;
        } else {
            cache.put(*number, item);
        }
    }
    saved
}
