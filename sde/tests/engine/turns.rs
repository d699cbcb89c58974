//! Apps that are not thread-safe run one at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use sde::{Handle, Sde, inputs};

static INSIDE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[sde::app(name = "turns.alone", not_thread_safe)]
fn alone(number: u64) -> u64 {
    let inside = INSIDE.fetch_add(1, Ordering::SeqCst) + 1;
    MOST.fetch_max(inside, Ordering::SeqCst);
    // Long enough for others to come in, were they let.
    let sum = (0..200_000).fold(number, |sum: u64, x| {
        std::hint::black_box(sum.wrapping_add(x))
    });
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    sum
}

static SIBLINGS: AtomicUsize = AtomicUsize::new(0);
static MOST_SIBLINGS: AtomicUsize = AtomicUsize::new(0);

/// Runs itself on several threads, once.
#[sde::app(name = "turns.spread", not_thread_safe)]
fn spread(sde: &Handle, number: u64) -> Result<u64, sde::Error> {
    if number == 0 {
        let numbers: Vec<u64> = (1..40).collect();
        let parts = sde.par_each(&numbers, |sde, number| spread.call(sde, *number));
        return parts.into_iter().try_fold(0, |sum, part| Ok(sum + *part?));
    }
    let inside = SIBLINGS.fetch_add(1, Ordering::SeqCst) + 1;
    MOST_SIBLINGS.fetch_max(inside, Ordering::SeqCst);
    let work = (0..100_000_u64).fold(0, |sum: u64, x| std::hint::black_box(sum.wrapping_add(x)));
    std::hint::black_box(work);
    SIBLINGS.fetch_sub(1, Ordering::SeqCst);
    Ok(number)
}

#[test]
fn those_beneath_one_run_take_turns_too() {
    let sde = Sde::builder().threads(4).build().unwrap();
    assert_eq!(*spread.call(&sde, 0).unwrap(), (1..40).sum::<u64>());
    assert_eq!(MOST_SIBLINGS.load(Ordering::SeqCst), 1);
}

#[sde::app(name = "turns.nested", not_thread_safe)]
fn nested(sde: &Handle, depth: u64) -> Result<u64, sde::Error> {
    match depth {
        0 => Ok(0),
        _ => Ok(1 + *nested.call(sde, depth - 1)?),
    }
}

#[test]
fn one_at_a_time() {
    let sde = Sde::builder().threads(8).build().unwrap();
    let list: Vec<_> = (0..64_u64)
        .map(|number| inputs! { number: number })
        .collect();
    assert!(sde.par_map(&alone, &list).iter().all(Result::is_ok));
    assert_eq!(MOST.load(Ordering::SeqCst), 1);
}

#[test]
fn a_run_beneath_itself_has_the_turn_already() {
    assert_eq!(*nested.call(&Sde::new(), 5).unwrap(), 5);
}

/// Claims came before turns: a run that waited for its turn with a claim in hand held
/// up the run that had the turn, by timing alone.
#[test]
fn runs_that_need_each_others_results_do_not_fail_by_timing() {
    for _ in 0..200 {
        let sde = Sde::builder().threads(3).build().unwrap();
        let list = [3_u64, 2, 1, 0].map(|depth| inputs! { depth: depth });
        let results = sde.par_map(&nested, &list);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }
}
