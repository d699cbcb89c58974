//! One process: without ranks, or with all of them in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use sde::{
    AppInfo, DistArray, Event, Handle, Policy, ResultMap, ResultSpec, Sde, Source, Tag, Value,
    inputs,
};
use sde_tests::made;
use sde_tests::ranks::{Ranks, Threads};

#[sde::app(name = "ranks.alone.products", distributed)]
fn products(sde: &Handle, rows: usize, columns: usize) -> Result<DistArray<f64>, sde::Error> {
    DistArray::from_fn(sde, &[rows, columns], |at| (at[0] * 1000 + at[1]) as f64)
}

#[sde::app(name = "ranks.alone.sum", distributed)]
fn sum(sde: &Handle, array: &DistArray<f64>) -> Result<f64, sde::Error> {
    let mine: f64 = array.local().iter().sum();
    Ok(sde.gather("sums", mine)?.iter().map(|one| **one).sum())
}

#[sde::app(name = "ranks.alone.square")]
fn square(x: u64) -> u64 {
    x * x
}

#[sde::app(name = "ranks.alone.count", distributed)]
fn count(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    Ok(sde.gather("numbers", x)?.len() as u64)
}

#[test]
fn an_array_is_whole() {
    let sde = Sde::new();
    let array = products.call(&sde, 3, 2).unwrap();
    let expected = [0.0, 1.0, 1000.0, 1001.0, 2000.0, 2001.0];
    assert_eq!(array.local(), expected);
    assert_eq!(array.get(&[2, 1]), Some(2001.0));
    assert_eq!(array.get(&[3, 0]), None);
    assert_eq!(array.map(|x| *x as u32).local()[5], 2001);
    let again = products.call(&sde, 3, 2).unwrap();
    assert!(Value::ptr_eq(&array, &again));
    let all: f64 = expected.iter().sum();
    assert_eq!(*sum.call(&sde, &array).unwrap(), all);
    assert_eq!(sde.stats().total.computed, 2);
    assert!(Source::Memory.is_hit());
}

/// Found by a program without ranks too: the sum of an array that was made anew was said to be that of the one before.
#[test]
fn an_array_that_takes_the_place_of_another_is_another() {
    let sde = Sde::new();
    let said = Arc::new(AtomicU64::new(1));
    let says = Arc::clone(&said);
    let spec = ResultSpec::distributed::<DistArray<f64>>("array");
    let info = AppInfo::new("ranks.alone.maker", "1").distributed();
    let maker = made(info.result(spec), move |sde, _| {
        let number = says.load(Ordering::Relaxed) as f64;
        let array = DistArray::from_fn(sde, &[24], |_| number)?;
        Ok(ResultMap::new().with("array", array))
    });
    let sum_of = |number, policy| {
        said.store(number, Ordering::Relaxed);
        let inputs = inputs! {};
        let made = sde.request(&maker, &inputs).policy(policy).run().unwrap();
        let array = made.results.get::<DistArray<f64>>("array").unwrap();
        (made.key, *sum.call(&sde, &array).unwrap())
    };
    let (key, first) = sum_of(1, Policy::Use);
    assert_eq!(first, 24.0);
    assert_eq!(sum_of(100, Policy::Use).1, 24.0);
    assert_eq!(sum_of(10, Policy::Refresh).1, 240.0);
    sde.clear_app("ranks.alone.maker").unwrap();
    assert_eq!(sum_of(50, Policy::Use).1, 1200.0);
    sde.invalidate(&key, "it was wrong").unwrap();
    assert_eq!(sum_of(100, Policy::Use).1, 2400.0);
}

#[test]
fn without_a_process_group_there_is_one_rank() {
    let sde = Sde::new();
    let part = sde.split(3, 0).unwrap();
    assert_eq!((part.rank().unwrap(), part.ranks().unwrap()), (0, 1));
    assert_eq!(*square.call(&part, 4).unwrap(), 16);
    part.release().unwrap();
    assert_eq!(*sde.gather("numbers", 4_u8).unwrap()[0], 4);
    assert_eq!(Tag::Distributed.name(), "distributed");
}

/// What is remembered of ordinary runs is the rank's own affair, where ranks share a process too.
#[test]
fn the_values_that_ranks_hold_keep_their_identity() {
    static HELD: Mutex<Vec<Value<u64>>> = Mutex::new(Vec::new());
    Ranks::of(&Threads, 2).run(|sde| {
        let first = count.call(&sde, 8).unwrap();
        let second = count.call(&sde, 8).unwrap();
        assert!(Value::ptr_eq(&first, &second));
        HELD.lock().unwrap().push(first);
    });
    let held = HELD.lock().unwrap();
    assert!(!Value::ptr_eq(&held[0], &held[1]));
}

/// Found by attacking: an observer that asked for what a bypassing run had just made got the error of a cycle.
#[test]
fn an_observer_may_ask_for_what_ranks_have_bypassed() {
    Ranks::of(&Threads, 2).run_ranks(|rank| {
        let captured = Arc::new(OnceLock::<Sde>::new());
        let (asks, first) = (Arc::downgrade(&captured), AtomicBool::new(true));
        let observer = move |event: &Event| {
            let captured = asks.upgrade();
            let sde = captured.as_ref().and_then(|captured| captured.get());
            if let (Event::Finished { .. }, Some(sde)) = (event, sde)
                && first.swap(false, Ordering::Relaxed)
            {
                assert_eq!(*count.call(sde, 1).unwrap(), 2);
            }
        };
        let sde = rank.join(Sde::builder().observer(observer)).build();
        let sde = captured.get_or_init(|| sde.unwrap());
        let inputs = inputs! { x: 1_u64 };
        let request = sde.request(&count, &inputs).policy(Policy::Bypass);
        request.run().unwrap();
        assert_eq!(sde.stats().total.computed, 2);
    });
}
