//! The same programs with the engine's own `par_map`, `par_each` and `join`: nothing is computed
//! twice, and nobody has to lose patience for that.

use rayon::ThreadPoolBuilder;
use sde::{Handle, Inputs, Sde};
use sde_tests::{LIMIT, Made, Watchdog, number, x, y};

/// An engine that would hang if it relied on rayon's workers losing patience.
fn patient(threads: usize) -> Sde {
    let builder = Sde::builder().threads(threads).rayon_patience(10 * LIMIT);
    builder.build().expect("no store")
}

fn list(of: impl IntoIterator<Item = u64>) -> Vec<Inputs> {
    of.into_iter().map(x).collect()
}

fn sum(sde: &Handle, app: &Made, of: impl IntoIterator<Item = u64>) -> Result<u64, sde::Error> {
    sde.par_map(app, &list(of))
        .into_iter()
        .map(|map| y(&map?))
        .sum()
}

/// Three levels: each run of a level runs all of the level below, which they share, in parallel.
fn levels() -> [Made; 3] {
    let leaf = number(
        "leaf",
        |_, n| Ok((0..200).fold(n, |n, i| n * 31 % 1009 + i)),
    );
    let middle = {
        let leaf = leaf.clone();
        number("middle", move |sde, n| {
            Ok(sum(sde, &leaf, (0..8).map(|i| (i + n) % 8))?)
        })
    };
    let top = {
        let middle = middle.clone();
        number("top", move |sde, n| {
            let (a, b) = sde.join(
                |sde| sum(sde, &middle, (0..6).map(|i| (i + n) % 6)),
                |sde| sum(sde, &middle, (0..6).rev()),
            );
            Ok(a? + b?)
        })
    };
    [leaf, middle, top]
}

/// All of it at once.
fn program(sde: &Sde, [leaf, middle, top]: &[Made; 3]) {
    let all: Vec<u64> = sde.par_each(&(0..24).collect::<Vec<u64>>(), |sde, i| {
        match i % 3 {
            0 => sum(sde, top, 0..4),
            1 => sum(sde, middle, 0..6),
            _ => sum(sde, leaf, 0..8),
        }
        .expect("no error")
    });
    for (i, value) in all.iter().enumerate() {
        assert_eq!(*value, all[i % 3]);
    }
}

fn each_key_once(sde: &Sde) {
    let total = sde.stats().total;
    assert_eq!((total.computed, total.duplicates), (8 + 6 + 4, 0));
}

#[test]
fn nothing_is_computed_twice() {
    let _dog = Watchdog::new("par_map in par_map", LIMIT);
    let levels = levels();
    for threads in [1, 2, 3, 4, 8, 16] {
        for _ in 0..10 {
            let sde = patient(threads);
            program(&sde, &levels);
            each_key_once(&sde);
        }
    }
}

#[test]
#[ignore = "long: a thousand runs"]
fn nothing_is_computed_twice_in_a_thousand_runs() {
    let levels = levels();
    for threads in 1..=16 {
        let _dog = Watchdog::new("par_map in par_map", 5 * LIMIT);
        for _ in 0..63 {
            let sde = patient(threads);
            program(&sde, &levels);
            each_key_once(&sde);
        }
    }
    println!(
        "par_map in par_map: {} runs at 1 to 16 threads, 0 hangs, 0 duplicates",
        63 * 16
    );
}

#[test]
fn nothing_is_computed_twice_on_rayon_workers() {
    let _dog = Watchdog::new("par_map on rayon's workers", LIMIT);
    let levels = levels();
    for workers in [1, 4, 16] {
        let pool = ThreadPoolBuilder::new()
            .num_threads(workers)
            .build()
            .expect("a pool");
        for _ in 0..10 {
            let sde = patient(3);
            pool.install(|| program(&sde, &levels));
            each_key_once(&sde);
            let sde = patient(3);
            pool.scope(|scope| {
                let (sde, levels) = (&sde, &levels);
                for _ in 0..workers {
                    scope.spawn(move |_| program(sde, levels));
                }
            });
            each_key_once(&sde);
        }
    }
}

#[test]
fn equal_inputs_run_once_and_results_keep_their_order() {
    let sde = patient(4);
    let square = number("square", |_, n| Ok(n * n));
    let order: Vec<u64> = (0..500).map(|i| (i * 7) % 50).collect();
    let results: Vec<u64> = sde
        .par_map(&square, &list(order.iter().copied()))
        .into_iter()
        .map(|map| y(&map.expect("no error")).expect("a result"))
        .collect();
    assert_eq!(results, order.iter().map(|n| n * n).collect::<Vec<_>>());
    let total = sde.stats().total;
    assert_eq!((total.computed, total.hits(), total.waits), (50, 0, 0));
}

#[test]
fn an_error_does_not_stop_the_others() {
    let sde = patient(4);
    let even = number("even", |_, n| match n % 2 {
        0 => Ok(n),
        _ => Err(sde::AppError::message("odd")),
    });
    let results = sde.par_map(&even, &list(0..100));
    for (n, result) in results.iter().enumerate() {
        assert_eq!(result.is_ok(), n % 2 == 0);
    }
    assert_eq!(sde.stats().total.computed, 50);
}

/// A cycle is found although its pieces are on helper threads.
#[test]
fn a_cycle_through_par_map() {
    let _dog = Watchdog::new("a cycle through par_map", LIMIT);
    let sde = patient(3);
    for (name, next) in [("A", "B"), ("B", "A")] {
        let app = number(name, move |sde, n| {
            let results = sde.par_map(next, &list([n, (n + 1) % 3, (n + 2) % 3]));
            results.into_iter().map(|map| Ok(y(&map?)?)).sum()
        });
        sde.apps().register(name, app).expect("a new name");
    }
    let error = sde.run("A", &x(1)).expect_err("a cycle");
    let path = super::cycle(&error).expect("a cycle");
    assert!(path.len() > 2 && path.first() == path.last(), "{path:?}");
}
