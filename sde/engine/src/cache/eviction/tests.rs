//! The order of leaving, compared with the plainest program for it, and on sequences for which the right answer is
//! known.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use proptest::prelude::*;

use super::uses::{octaves, of_octaves};
use super::*;

/// A cache with room for some values, and its requests.
struct Cache {
    eviction: Eviction,
    room: usize,
    there: HashMap<u32, AtomicU64>,
    /// Class, and cost for each byte.
    worth: fn(u32) -> (u8, f64),
}

fn candidate(
    there: &HashMap<u32, AtomicU64>,
    worth: fn(u32) -> (u8, f64),
) -> impl Fn(u32) -> Candidate {
    move |number| {
        let (class, density) = worth(number);
        let uses = Uses::of(&there[&number]);
        Candidate {
            class,
            density,
            uses,
        }
    }
}

impl Cache {
    fn new(by: EvictionOrder, room: usize) -> Self {
        Self {
            eviction: Eviction::new(by, 0),
            room,
            there: HashMap::new(),
            worth: |_| (0, 1.0),
        }
    }

    /// Asks for a value; says whether the cache had it.
    fn ask(&mut self, number: u32) -> bool {
        if let Some(uses) = self.there.get(&number) {
            if self.eviction.by != EvictionOrder::FirstIn {
                Uses::note(uses, self.eviction.tick);
            }
            return true;
        }
        let uses = AtomicU64::new(0);
        self.eviction.came(u64::from(number), &uses);
        self.there.insert(number, uses);
        self.eviction
            .list(number, candidate(&self.there, self.worth)(number));
        while self.there.len() > self.room {
            self.evict();
        }
        false
    }

    fn evict(&mut self) -> Option<u32> {
        let at = self.eviction.victim(candidate(&self.there, self.worth))?;
        self.eviction.order.remove(at);
        let uses = self.there.remove(&at)?;
        self.eviction.left(u64::from(at), Uses::of(&uses));
        Some(at)
    }

    fn hits(&mut self, requests: impl IntoIterator<Item = u32>) -> usize {
        requests.into_iter().filter(|one| self.ask(*one)).count()
    }
}

proptest! {
    /// For all sequences of requests, hits and removals, the victim has the lowest class, and of that the earliest
    /// time.
    #[test]
    fn orders_are_those_of_times(by_use: bool, steps in prop::collection::vec((0..40_u32, 0..10_u8), 1..400)) {
        let by = if by_use { EvictionOrder::LeastRecentlyUsed } else { EvictionOrder::FirstIn };
        let mut cache = Cache::new(by, 100);
        cache.worth = |number| ((number % 2) as u8, 1.0);
        let mut times = HashMap::new();
        let mut now = 0;
        for (number, step) in steps {
            match step {
                0 => {
                    let priority = |number: &u32| (number % 2, times[number]);
                    let first = times.keys().map(priority).min();
                    let victim = cache.evict();
                    prop_assert_eq!(victim.as_ref().map(priority), first);
                    victim.and_then(|victim| times.remove(&victim));
                }
                1 => {
                    cache.eviction.order.remove(number);
                    cache.there.remove(&number);
                    times.remove(&number);
                }
                _ => {
                    let was_there = cache.ask(number);
                    prop_assert_eq!(was_there, times.contains_key(&number));
                    now += u64::from(!was_there);
                    if !was_there || by_use {
                        times.insert(number, now);
                    }
                }
            }
            prop_assert_eq!(cache.eviction.order.len(), times.len());
        }
    }

    /// Each victim was listed and has the lowest class, and all leave in the end.
    #[test]
    fn all_leave_by_class(steps in prop::collection::vec(0..60_u32, 1..400)) {
        let mut cache = Cache::new(EvictionOrder::Worth, 30);
        cache.worth = |number| ((number % 3) as u8, f64::from(number % 7));
        for number in steps {
            cache.ask(number);
            prop_assert_eq!(cache.eviction.order.len(), cache.there.len());
        }
        while let Some(lowest) = cache.there.keys().map(|one| one % 3).min() {
            prop_assert_eq!(cache.evict().map(|victim| victim % 3), Some(lowest));
        }
        prop_assert_eq!(cache.evict(), None);
    }

    #[test]
    fn a_logarithm_is_below_by_less_than_a_step(number in 1..1_u64 << 41) {
        let number = number as f32;
        prop_assert!(of_octaves(octaves(number as u64)) as f32 <= number);
        prop_assert!((of_octaves(octaves(number as u64) + 1) as f32) > number);
    }
}

#[test]
fn uses_between_two_ticks_are_one() {
    let word = AtomicU64::new(0);
    for tick in [7, 7, 7, 23, 23, 39] {
        Uses::note(&word, tick);
    }
    let uses = Uses::of(&word);
    assert_eq!((uses.last(), uses.mean()), (39, Some(4 << 8)));
}

#[test]
fn a_mean_follows_changes() {
    let word = AtomicU64::new(0);
    let mean_after = |ticks: &mut dyn Iterator<Item = u64>| {
        ticks.for_each(|tick| Uses::note(&word, tick));
        of_octaves(Uses::of(&word).mean().unwrap())
    };
    let seldom = mean_after(&mut (1..=1000).map(|tick| 100 * tick));
    let often = mean_after(&mut (100_001..100_101));
    assert!(seldom > 90.0 && often < 1.1, "{seldom} {often}");
}

/// What comes back has its uses, unless another took its slot; the history has the size that was given.
#[test]
fn what_comes_back_is_known() {
    let mut eviction = Eviction::new(EvictionOrder::Worth, 1 << 20);
    let used = AtomicU64::new(0);
    [1, 5].iter().for_each(|tick| Uses::note(&used, *tick));
    eviction.tick = 9;
    let slots = (1 << 20) / 16;
    for key in 1..=slots + 10 {
        eviction.left(key, Uses::of(&used));
    }
    let mut is_known = |key: u64| {
        let word = AtomicU64::new(0);
        eviction.came(key, &word);
        Uses::of(&word).mean().is_some()
    };
    let known: Vec<_> = (1..=slots + 10).filter(|key| is_known(*key)).collect();
    assert_eq!(known, (11..=slots + 10).collect::<Vec<_>>());
    assert!(!is_known(11), "each is given once");
}

/// Counts from long ago have no weight.
#[test]
fn what_was_counted_fades() {
    let uses = Uses(1 << 16);
    let mut chances = Chances::default();
    let mut worth = |asked: usize, after: u64| {
        (0..asked).for_each(|_| chances.reached(uses, 10, 1.0, 0.0));
        (0..after).for_each(|part| chances.keep_up((part + 1) * 1_000_000, 1000));
        chances.worth(uses, 1)
    };
    let before = worth(0, 1);
    let learned = worth(1000, 2);
    let after = worth(0, 2000);
    assert!(learned > 10.0 * before, "{learned} {before}");
    assert!(after < 1.01 * before, "{after} {before}");
}

/// A loop too long for the cache: the values in the cache stay, or nothing would ever be hit.
#[test]
fn of_a_loop_a_part_stays() {
    let loops = || (0..60).flat_map(|_| 0..200);
    let mut cache = Cache::new(EvictionOrder::Worth, 100);
    let hits = cache.hits(loops());
    assert!(hits > 60 * 200 * 2 / 5, "{hits}");
    assert_eq!(
        Cache::new(EvictionOrder::LeastRecentlyUsed, 100).hits(loops()),
        0
    );
}

/// Values asked for once do not push out those asked for often.
#[test]
fn a_scan_takes_nothing_away() {
    let mut cache = Cache::new(EvictionOrder::Worth, 100);
    // 90 values that are asked for again and again; every second request is for a new value.
    let mut new = 1000..;
    let mut round = |round: u32| {
        (0..90_u32)
            .flat_map(|one| [(one * 7 + round) % 90, new.next().unwrap()])
            .collect::<Vec<_>>()
    };
    cache.hits((0..30).flat_map(&mut round));
    let hits = cache.hits((0..30).flat_map(&mut round));
    assert!(hits > 30 * 85, "{hits}");
}

/// Old habits are forgotten.
#[test]
fn what_is_not_asked_for_any_more_leaves() {
    let mut cache = Cache::new(EvictionOrder::Worth, 100);
    let rounds = |from: u32| (0..50).flat_map(move |_| from..from + 80);
    cache.hits((0..50).flat_map(|round| (0..80).chain(10_000 + 100 * round..10_100 + 100 * round)));
    let hits = cache.hits(rounds(5_000));
    assert!(hits > 80 * 40, "{hits}");
}

/// Of values asked for alike, those stay that cost more for each byte.
#[test]
fn what_is_dear_stays() {
    let mut cache = Cache::new(EvictionOrder::Worth, 100);
    cache.worth = |number| (0, if number % 2 == 0 { 10.0 } else { 1.0 });
    let mut number = 1_u32;
    let mut random = || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (number >> 8) % 190
    };
    cache.hits((0..5_000).map(|_| random()));
    let dear = cache.there.keys().filter(|number| *number % 2 == 0).count();
    assert!(dear > 85, "{dear}");
}

/// Costs may change while an entry is listed: they are looked up when its turn comes.
#[test]
fn what_costs_more_than_was_known_stays() {
    let mut eviction = Eviction::new(EvictionOrder::Worth, 0);
    let words = [AtomicU64::new(0), AtomicU64::new(0)];
    let candidate = |at: u32, density| Candidate {
        class: 0,
        density,
        uses: Uses::of(&words[at as usize]),
    };
    for (at, density) in [(0, 1.0), (1, 2.0)] {
        eviction.came(u64::from(at), &words[at as usize]);
        eviction.list(at, candidate(at, density));
    }
    assert_eq!(
        eviction.victim(|at| candidate(at, 3.0 - f64::from(at))),
        Some(1)
    );
}
