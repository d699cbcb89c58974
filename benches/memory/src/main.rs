//! What a memory budget saves: a simulator of what leaves first, on fixed traces, beside other policies.

mod bound;
mod patterns;
mod peers;
mod random;
mod traces;

use peers::{Cache, Greedy, Moka, QuickCache};
use traces::{Trace, first, second};

/// The part of the cost of a trace that is saved.
fn saved(trace: &Trace, mut cache: impl Cache) -> f64 {
    let mut saved = 0.0;
    for number in &trace.requests {
        let item = trace.items[*number as usize];
        if cache.get(*number, item) {
            saved += item.cost as f64;
        } else {
            cache.put(*number, item);
        }
    }
    saved / trace.total()
}

fn main() {
    let traces = if std::env::args().any(|arg| arg == "--second") {
        second()
    } else {
        first()
    };
    for trace in traces {
        for part in [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0] {
            let budget = (trace.working_set() as f64 * part) as u64;
            let items = (trace.items.len() as f64 * part) as usize + 1;
            println!(
                "{} {} {part}: {:.4} {:.4} {:.4} {:.4} {:.4}",
                trace.pattern,
                trace.costs,
                saved(&trace, Greedy::lru(budget)),
                saved(&trace, Greedy::gdsf(budget)),
                saved(&trace, Moka::new(budget)),
                saved(&trace, QuickCache::new(budget, items)),
                bound::bound(&trace, budget) / trace.total()
            );
        }
    }
}
