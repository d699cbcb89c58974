//! Rows 1 to 3: the cost of a hit.

use crate::peers;
use crate::work::{KEYS, Trace, energy, hash};
use dashmap::DashMap;
use sde::key::{BuildKeyHasher, Key};
use sde::{Instance, Prepared, Sde};
use sde_benches::table::{Aim, Row};
use sde_benches::{Comparison, Measured, Run, Settings, repeat};
use std::sync::Arc;

type Moka = moka::sync::Cache<Key, Arc<f64>, BuildKeyHasher>;

const REFERENCE: &str = "BLAKE3 + DashMap get + Arc clone";
const MOKA: &str = "BLAKE3 + moka `get_with`";
const CACHED: &str = "BLAKE3 + `#[cached]`";
const CACHED_TUPLE: &str = "`#[cached]` on the arguments";

/// The ways to call the engine.
const TYPED: &str = "typed call";
const PREBUILT: &str = "`run`, kept `Inputs`";
const ANEW: &str = "`run`, new `Inputs`";

/// The engine and its peers, all of them with every result remembered.
struct Caches {
    trace: Trace,
    sde: Sde,
    app: Prepared,
    map: DashMap<Key, Arc<f64>, BuildKeyHasher>,
    moka: Moka,
}

impl Caches {
    fn new() -> Self {
        let trace = Trace::new();
        let sde = Sde::new();
        let app = sde.prepare(&Instance::new(energy)).unwrap();
        let map = DashMap::with_hasher(BuildKeyHasher::default());
        let moka = moka::sync::Cache::builder()
            .max_capacity(2 * KEYS as u64)
            .build_with_hasher(BuildKeyHasher::default());
        for (at, inputs) in trace.inputs.iter().enumerate() {
            let result = sde.run(&app, inputs).unwrap();
            let value = Arc::new(*result.get::<f64>("result").unwrap());
            let key = hash(&trace.encoded[at]);
            map.insert(key, Arc::clone(&value));
            moka.insert(key, value);
            peers::by_key(key, || 0.0);
            let arguments = &trace.arguments[at];
            peers::by_arguments(arguments);
        }
        moka.run_pending_tasks();
        Self {
            trace,
            sde,
            app,
            map,
            moka,
        }
    }

    /// Adds the case `name`, with different inputs each time and with equal ones.
    fn both<'a, T>(
        comparison: &mut Comparison<'a>,
        name: &str,
        trace: &'a Trace,
        call: impl Fn(usize) -> T + Sync + Copy + 'a,
    ) {
        comparison.case(different(name), 1, move |run: Run| {
            repeat(run, |number| call(trace.at(number)));
        });
        comparison.case(same(name), 1, move |run: Run| {
            let at = std::hint::black_box(trace.at(0));
            repeat(run, |_| call(at));
        });
    }

    fn measure(&self, settings: Settings) -> Measured {
        let mut comparison = Comparison::new(settings);
        let to = &mut comparison;
        let trace = &self.trace;
        Self::both(to, REFERENCE, trace, |at| {
            let key = hash(&trace.encoded[at]);
            self.map.get(&key).map(|value| Arc::clone(&value))
        });
        Self::both(to, TYPED, trace, |at| trace.arguments[at].call(&self.sde));
        Self::both(to, PREBUILT, trace, |at| {
            self.sde.run(&self.app, &trace.inputs[at])
        });
        Self::both(to, ANEW, trace, |at| {
            self.sde.run(&self.app, &trace.arguments[at].inputs())
        });
        Self::both(to, MOKA, trace, |at| {
            let key = hash(&trace.encoded[at]);
            self.moka.get_with(key, || Arc::new(0.0))
        });
        Self::both(to, CACHED, trace, |at| {
            peers::by_key(hash(&trace.encoded[at]), || 0.0)
        });
        Self::both(to, CACHED_TUPLE, trace, |at| {
            peers::by_arguments(&trace.arguments[at])
        });
        comparison.run()
    }
}

fn different(name: &str) -> String {
    format!("{name}, different inputs")
}

fn same(name: &str) -> String {
    format!("{name}, same inputs")
}

/// Rows 1 to 3.
pub fn rows(settings: Settings) -> Vec<Row> {
    let caches = Caches::new();
    let measured = caches.measure(settings);
    let row = |number: u8, what: &str, work: String, reference: String, aim: Aim| Row {
        number,
        ratio: measured.ratio(&work, &reference),
        time: measured.nanoseconds(&work),
        reference_time: measured.nanoseconds(&reference),
        work: format!("{what}: {work}"),
        reference,
        aim,
    };
    let mut rows = Vec::new();
    for (call, aim) in [
        (TYPED, Aim::AtMost(0.6)),
        (PREBUILT, Aim::AtMost(0.6)),
        (ANEW, Aim::AtMost(1.5)),
    ] {
        let (work, reference) = (different(call), different(REFERENCE));
        rows.push(row(1, "hit", work, reference, aim));
    }
    for (call, aim) in [(TYPED, 0.3), (PREBUILT, 0.36), (ANEW, 1.5)] {
        // The reference gets equal inputs each time as well: its best case.
        let (work, reference) = (same(call), same(REFERENCE));
        rows.push(row(2, "hit", work, reference, Aim::AtMost(aim)));
    }
    for peer in [MOKA, CACHED, CACHED_TUPLE] {
        for call in [TYPED, PREBUILT] {
            let (work, reference) = (different(call), different(peer));
            rows.push(row(3, "hit", work, reference, Aim::Faster));
            let (work, reference) = (same(call), same(peer));
            rows.push(row(3, "hit", work, reference, Aim::Faster));
        }
    }
    rows
}
