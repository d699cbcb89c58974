//! A bound that no policy can exceed.

use std::collections::BTreeSet;

use super::traces::Trace;

/// The most that can be saved within a budget, with knowledge of the future. For equal items it is exact: the item
/// whose next request is last is evicted, even the newest (Belady, 1966). Otherwise it is the bound of Berger,
/// Beckmann and Harchol-Balter (2018). Keeping an item between two requests takes its bytes times that time, and
/// only the sum of these, budget times length of the trace, is limited. The highest costs for that product are
/// taken.
pub fn bound(trace: &Trace, budget: u64) -> f64 {
    let is_uniform = trace.costs == "uniform";
    if is_uniform {
        belady(trace, budget)
    } else {
        relaxed(trace, budget)
    }
}

/// For each request, the next one for the same item.
fn nexts(trace: &Trace) -> Vec<usize> {
    let mut next_of = vec![usize::MAX; trace.items.len()];
    let mut nexts = vec![usize::MAX; trace.requests.len()];
    for (at, item) in trace.requests.iter().enumerate().rev() {
        nexts[at] = std::mem::replace(&mut next_of[*item as usize], at);
    }
    nexts
}

fn belady(trace: &Trace, budget: u64) -> f64 {
    let Some(item) = trace.items.first() else {
        return 0.0;
    };
    let room = (budget / item.bytes) as usize;
    let mut there = BTreeSet::new();
    let mut saved = 0.0;
    for (at, next) in nexts(trace).into_iter().enumerate() {
        if there.remove(&at) {
            saved += item.cost as f64;
        }
        if next != usize::MAX {
            there.insert(next);
        }
        if there.len() > room {
            there.pop_last();
        }
    }
    saved
}

fn relaxed(trace: &Trace, budget: u64) -> f64 {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for (at, next) in nexts(trace).into_iter().enumerate() {
        let item = trace.items[trace.requests[at] as usize];
        if next != usize::MAX && item.bytes <= budget {
            spans.push((item.cost as f64, (next - at) as f64 * item.bytes as f64));
        }
    }
    spans.sort_by(|a, b| (b.0 / b.1).total_cmp(&(a.0 / a.1)));
    let mut left = budget as f64 * trace.requests.len() as f64;
    let mut saved = 0.0;
    for (cost, room) in spans {
        let part = (left / room).min(1.0);
        saved += part * cost;
        left -= part * room;
        if left <= 0.0 {
            break;
        }
    }
    saved
}
