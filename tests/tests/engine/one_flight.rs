//! One computation for each key, however many ask for it; and nothing is locked while it runs.

use std::thread;
use std::time::Duration;

use sde::{Peek, Sde, Source, Value};
use sde_tests::{Gate, LIMIT, Made, Watch, Watchdog, number, x, y};

use super::{Captured, watched};

const THREADS: usize = 300;

/// All of them ask; the values they got.
fn all_ask(sde: &Sde, app: &Made, meanwhile: impl FnOnce()) -> Vec<Value<u64>> {
    thread::scope(|scope| {
        let ask = || sde.run(app, &x(1)).unwrap().get::<u64>("y").unwrap();
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
        meanwhile();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn one_computed_the_others_waited(sde: &Sde, watch: &Watch, values: &[Value<u64>]) {
    assert!(values.iter().all(|value| **value == 2));
    assert!(values.iter().all(|value| Value::ptr_eq(value, &values[0])));
    assert_eq!(watch.started("slow"), 1);
    let total = sde.stats().total;
    let counts = (total.computed, total.waits, total.duplicates);
    assert_eq!(counts, (1, THREADS as u64 - 1, 0));
}

#[test]
fn three_hundred_threads_share_one_computation() {
    let _dog = Watchdog::new("one flight", LIMIT);
    let (sde, watch) = watched();
    let gate = Gate::new();
    let slow = number("slow", move |_, x| {
        gate.pass();
        Ok(x + 1)
    });
    let values = all_ask(&sde, &slow, || {
        watch.waiting("slow", THREADS - 1);
        gate.open();
    });
    one_computed_the_others_waited(&sde, &watch, &values);
    let waited = watch.sources("slow");
    let got = waited.iter().filter(|s| **s == Source::Waited).count();
    assert_eq!(got, THREADS - 1);
}

#[test]
#[ignore = "long: an app that takes seconds"]
fn three_hundred_threads_share_one_computation_of_seconds() {
    let (sde, watch) = watched();
    let slow = number("slow", |_, x| {
        thread::sleep(Duration::from_secs(3));
        Ok(x + 1)
    });
    let values = all_ask(&sde, &slow, || {});
    one_computed_the_others_waited(&sde, &watch, &values);
}

/// Enough keys to meet every shard of the map.
const KEYS: u64 = 3000;

#[test]
fn the_cache_is_free_while_an_app_runs() {
    let _dog = Watchdog::new("the cache of a running app", LIMIT);
    let (sde, _) = watched();
    let gate = Gate::new();
    let app = number("busy", move |_, x| {
        if x == 0 {
            gate.pass();
        }
        Ok(x + 1)
    });
    thread::scope(|scope| {
        let running = scope.spawn(|| y(&sde.run(&app, &x(0)).unwrap()).unwrap());
        gate.arrived(1);
        for i in 1..KEYS {
            assert_eq!(y(&sde.run(&app, &x(i)).unwrap()).unwrap(), i + 1);
        }
        assert_eq!(sde.stats().total.computed, KEYS - 1);
        assert!(matches!(sde.peek(&app, &x(0)).unwrap(), Peek::Wait { .. }));
        assert!(matches!(sde.peek(&app, &x(7)).unwrap(), Peek::Hit { .. }));
        sde.clear_app("busy").unwrap();
        assert!(matches!(sde.peek(&app, &x(7)).unwrap(), Peek::Miss { .. }));
        gate.open();
        assert_eq!(running.join().unwrap(), 1);
    });
    // The flight was not disturbed by the cleaning.
    assert!(matches!(sde.peek(&app, &x(0)).unwrap(), Peek::Hit { .. }));
}

/// An app that sets another thread to work on its own cache, and waits for it.
#[test]
fn an_app_may_use_its_own_cache_from_another_thread() {
    let _dog = Watchdog::new("an app that uses its own cache", LIMIT);
    let captured = Captured::default();
    let app = number("busy", move |handle, n| {
        if n > 0 {
            return Ok(n + 1);
        }
        let sde = captured.get().expect("set below").clone();
        let handle = handle.clone();
        let sum = thread::spawn(move || {
            let run = |i: u64| y(&handle.run("busy", &x(i)).unwrap()).unwrap();
            let sum = (1..KEYS).map(run).sum::<u64>();
            assert_eq!(sde.stats().total.computed, KEYS - 1);
            sde.clear_app("busy").unwrap();
            assert!(matches!(
                sde.peek("busy", &x(0)).unwrap(),
                Peek::Wait { .. }
            ));
            sum
        });
        Ok(sum.join().expect("the other thread"))
    });
    let (sde, _) = watched();
    sde.apps().register("busy", app).unwrap();
    captured.set(sde.clone()).unwrap();
    let sum = (1..KEYS).map(|i| i + 1).sum::<u64>();
    assert_eq!(y(&sde.run("busy", &x(0)).unwrap()).unwrap(), sum);
}
