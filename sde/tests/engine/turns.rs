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
