//! What nobody can do better than.

use std::collections::BTreeSet;

use super::traces::Trace;

/// A bound of what can be saved within a budget, by one who knows the future. Where all items are equal it is reached: what
/// is asked for latest leaves, also what just came (Belady, 1966). Else it is the one of Berger, Beckmann and Harchol-Balter (2018): each
/// time between two requests for an item is saved for its bytes times that time, and only the product of budget
/// and length of the trace is limited. The dearest for their product are taken.
pub fn bound(trace: &Trace, budget: u64) -> f64 {
    let is_uniform = trace.costs == "uniform";
    if is_uniform {
        belady(trace, budget)
    } else {
        relaxed(trace, budget)
    }
}

/// When each request is followed by one for the same.
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
