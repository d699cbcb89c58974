//! The orders in which results are asked for.

use super::random::{Random, Zipf};

/// Numbers of items, from 0, in the order of the requests.
pub type Requests = Vec<u32>;

/// Requests of constant popularities.
pub fn zipf(random: &mut Random, items: usize, exponent: f64, requests: usize) -> Requests {
    let (ranks, zipf) = (random.shuffled(items), Zipf::new(items, exponent));
    (0..requests).map(|_| ranks[zipf.draw(random)]).collect()
}

/// All items in turn, again and again.
pub fn loops(items: usize, times: usize) -> Requests {
    (0..times).flat_map(|_| 0..items as u32).collect()
}

/// Two patterns merged at random; the items of the second have numbers after those of the first.
pub fn mixed(random: &mut Random, first: &[u32], second: &[u32]) -> Requests {
    let after = first.iter().max().map_or(0, |last| last + 1);
    let (mut first, mut second) = (first.iter(), second.iter());
    let mut all = Vec::new();
    loop {
        let left = first.len() + second.len();
        if left == 0 {
            return all;
        }
        match random.below(left) < first.len() {
            true => all.extend(first.next()),
            false => all.extend(second.next().map(|item| item + after)),
        }
    }
}

/// Constant popularities, between runs of items that are asked for once.
pub fn scans(
    random: &mut Random,
    items: usize,
    exponent: f64,
    length: usize,
    every: usize,
    times: usize,
) -> Requests {
    let popular = zipf(random, items, exponent, every * times);
    let mut once = items as u32..;
    let scan = |part: &[u32]| [part, &once.by_ref().take(length).collect::<Vec<_>>()].concat();
    popular.chunks(every).flat_map(scan).collect()
}

/// Popularities that change with each phase; after the last of `kinds` phases the first comes again.
pub fn phases(
    random: &mut Random,
    items: usize,
    exponent: f64,
    length: usize,
    kinds: usize,
    times: usize,
) -> Requests {
    let zipf = Zipf::new(items, exponent);
    let ranks: Vec<_> = (0..kinds).map(|_| random.shuffled(2 * items)).collect();
    let mut phase = |number: usize| -> Requests {
        let ranks = &ranks[number % kinds];
        (0..length).map(|_| ranks[zipf.draw(random)]).collect()
    };
    (0..times).flat_map(&mut phase).collect()
}

/// The more recently an item was asked for, the likelier it is: the probability of the k-th last is proportional to
/// 1 / k to the power of `exponent`. The part `new` of the requests is for new items.
pub fn recent(
    random: &mut Random,
    depth: usize,
    exponent: f64,
    new: f64,
    requests: usize,
) -> Requests {
    let zipf = Zipf::new(depth, exponent);
    let mut stack = std::collections::VecDeque::new();
    let mut next = 0..;
    let mut request = || {
        let at = zipf.draw(random);
        let item = match random.fraction() < new || at >= stack.len() {
            true => next.next(),
            false => stack.remove(at),
        };
        let item = item.unwrap_or_default();
        stack.push_front(item);
        stack.truncate(depth);
        item
    };
    (0..requests).map(|_| request()).collect()
}

/// Popularities that drift: after each `every` requests two items change places.
pub fn drift(
    random: &mut Random,
    items: usize,
    exponent: f64,
    every: usize,
    requests: usize,
) -> Requests {
    let (mut ranks, zipf) = (random.shuffled(items), Zipf::new(items, exponent));
    let mut request = |number: usize| {
        if number.is_multiple_of(every) {
            // Mostly a popular item, and any other.
            let (a, b) = (zipf.draw(random), random.below(items));
            ranks.swap(a, b);
        }
        ranks[zipf.draw(random)]
    };
    (0..requests).map(&mut request).collect()
}

/// Runs over a grid of three parameters. The result of a point depends on one of the first two parameters, and that
/// on one of the first parameter alone. Each of `times` runs takes other values of the third.
pub fn workflow(random: &mut Random, sizes: [usize; 3], times: usize) -> Requests {
    let [a, b, c] = sizes;
    let (pairs, points) = (a, a + a * b);
    let mut all = Vec::new();
    for _ in 0..times {
        // Values of the third parameter, some of them repeated from earlier runs.
        let third: Vec<_> = (0..c).map(|_| random.below(4 * c)).collect();
        for i in 0..a {
            for j in 0..b {
                for k in &third {
                    all.extend(
                        [i, pairs + i * b + j, points + (i * b + j) * 4 * c + k]
                            .map(|item| item as u32),
                    );
                }
            }
        }
    }
    all
}

/// Rounds of a restarted program: it reads all items once, then asks for some more than for others.
pub fn restarts(
    random: &mut Random,
    items: usize,
    exponent: f64,
    length: usize,
    times: usize,
) -> Requests {
    let ask = |_| [loops(items, 1), zipf(random, items, exponent, length)].concat();
    (0..times).flat_map(ask).collect()
}
