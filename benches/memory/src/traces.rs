//! The traces: the requests, and the sizes and costs of the items.
//!
//! They were fixed with their seeds before the policy was tuned. The policy was tuned on [`first`]. [`second`] was
//! written at that time and run once, at the end.

use super::patterns::{self, Requests};
use super::random::Random;

/// A result that is asked for.
#[derive(Clone, Copy)]
pub struct Item {
    pub bytes: u64,
    /// The time to compute it, in nanoseconds.
    pub cost: u64,
}

/// A sequence of requests.
pub struct Trace {
    pub pattern: String,
    pub costs: &'static str,
    /// By number.
    pub items: Vec<Item>,
    pub requests: Requests,
}

impl Trace {
    /// The bytes of all items asked for.
    pub fn working_set(&self) -> u64 {
        self.firsts().map(|item| item.bytes).sum()
    }

    /// The cost of computing each request.
    pub fn total(&self) -> f64 {
        self.requests
            .iter()
            .map(|item| self.items[*item as usize].cost as f64)
            .sum()
    }

    /// Each item that is asked for, once.
    fn firsts(&self) -> impl Iterator<Item = &Item> {
        let mut asked = vec![false; self.items.len()];
        self.requests
            .iter()
            .for_each(|item| asked[*item as usize] = true);
        self.items
            .iter()
            .zip(asked)
            .filter(|(_, asked)| *asked)
            .map(|(item, _)| item)
    }
}

const BYTES: f64 = 1048576.0;
const NANOS: f64 = 1e9;

/// Named distributions of size and cost.
type Costs = (&'static str, fn(&mut Random) -> [f64; 2]);

/// Named patterns of requests.
type Pattern<'a> = (&'static str, &'a dyn Fn(&mut Random) -> Requests);

const UNIFORM: Costs = ("uniform", |_| [1.0, 1.0]);
/// Sizes are equal.
const SKEWED: Costs = ("skewed", |random| [1.0, random.log_normal(2.0)]);
/// Large results take long.
const SIZED: Costs = ("sized", |random| [random.log_normal(1.5); 2]);
/// Size and cost are independent.
const MIXED: Costs = ("mixed", |random| {
    [random.log_normal(1.5), random.log_normal(2.0)]
});

fn with(pattern: &str, requests: Requests, costs: &[Costs], random: &mut Random) -> Vec<Trace> {
    let items = requests.iter().max().map_or(0, |last| last + 1);
    let mut trace = |(name, draw): &Costs| {
        let mut item = |_| {
            let [bytes, cost] = draw(random);
            Item {
                bytes: (bytes * BYTES).max(1.0) as u64,
                cost: (cost * NANOS).max(1.0) as u64,
            }
        };
        Trace {
            pattern: pattern.to_owned(),
            costs: name,
            items: (0..items).map(&mut item).collect(),
            requests: requests.clone(),
        }
    };
    costs.iter().map(&mut trace).collect()
}

/// The traces on which the policy was tuned.
pub fn first() -> Vec<Trace> {
    let random = &mut Random::new(19_019);
    let zipf =
        |exponent| move |random: &mut Random| patterns::zipf(random, 10_000, exponent, 200_000);
    let patterns: [Pattern; 10] = [
        ("zipf 0.6", &zipf(0.6)),
        ("zipf 0.8", &zipf(0.8)),
        ("zipf 1.0", &zipf(1.0)),
        ("zipf 1.2", &zipf(1.2)),
        ("loop", &|_| patterns::loops(5_000, 20)),
        ("loop and zipf", &|random| {
            let zipf = patterns::zipf(random, 5_000, 0.9, 100_000);
            patterns::mixed(random, &patterns::loops(5_000, 20), &zipf)
        }),
        ("zipf and scans", &|random| {
            patterns::scans(random, 5_000, 0.9, 1_000, 5_000, 30)
        }),
        ("phases", &|random| {
            patterns::phases(random, 4_000, 0.9, 20_000, 10, 10)
        }),
        ("recent", &|random| {
            patterns::recent(random, 4_000, 1.0, 0.05, 200_000)
        }),
        ("drift", &|random| {
            patterns::drift(random, 10_000, 0.9, 20, 200_000)
        }),
    ];
    let traces = patterns.iter().flat_map(|(name, make)| {
        let requests = make(random);
        with(name, requests, &[UNIFORM, SKEWED, SIZED, MIXED], random)
    });
    traces.collect()
}

/// The traces that were run once, at the end.
pub fn second() -> Vec<Trace> {
    const SLIGHTLY: Costs = ("slightly skewed", |random| [1.0, random.log_normal(1.0)]);
    const STEEP: Costs = ("steep", |random| {
        let bytes = random.log_normal(1.0);
        [bytes, bytes * bytes * random.log_normal(1.0)]
    });
    const FLAT: Costs = ("flat", |random| [random.log_normal(2.0), 1.0]);
    const WILD: Costs = ("wild", |random| {
        [random.log_normal(2.0), random.log_normal(3.0)]
    });
    let random = &mut Random::new(26_026_026);
    let zipf =
        |exponent| move |random: &mut Random| patterns::zipf(random, 20_000, exponent, 150_000);
    let patterns: [Pattern; 11] = [
        ("zipf 0.7", &zipf(0.7)),
        ("zipf 0.9", &zipf(0.9)),
        ("zipf 1.1", &zipf(1.1)),
        ("short loop", &|_| patterns::loops(700, 60)),
        ("two loops", &|random| {
            patterns::mixed(
                random,
                &patterns::loops(2_000, 30),
                &patterns::loops(6_000, 10),
            )
        }),
        ("zipf and long scans", &|random| {
            patterns::scans(random, 8_000, 1.0, 4_000, 20_000, 7)
        }),
        ("phases that return", &|random| {
            patterns::phases(random, 2_000, 0.8, 15_000, 3, 12)
        }),
        ("very recent", &|random| {
            patterns::recent(random, 6_000, 1.3, 0.15, 150_000)
        }),
        ("quick drift", &|random| {
            patterns::drift(random, 8_000, 1.0, 5, 150_000)
        }),
        ("workflow", &|random| {
            patterns::workflow(random, [20, 40, 10], 6)
        }),
        ("restarts", &|random| {
            patterns::restarts(random, 5_000, 0.9, 20_000, 6)
        }),
    ];
    let traces = patterns.iter().flat_map(|(name, make)| {
        let requests = make(random);
        with(
            name,
            requests,
            &[UNIFORM, SLIGHTLY, STEEP, FLAT, WILD],
            random,
        )
    });
    traces.collect()
}
