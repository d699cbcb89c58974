//! Functions called with many arguments at once.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sde::ranks::ThreadGroup;
use sde::store::Cbor;
use sde::{AppError, ErrorKind, Event, Handle, InputFile, Sde, Value, inputs};
use sde_tests::{LIMIT, Watch, Watchdog};

use super::watched;

#[sde::app]
fn double(x: u64) -> u64 {
    2 * x
}

#[sde::app]
fn describe_all(label: &str, numbers: &[f64], at: Option<&str>, shared: Value<Vec<u8>>) -> String {
    format!("{label} {} {at:?} {}", numbers.len(), shared.len())
}

#[sde::app]
fn length(path: &Path) -> usize {
    path.as_os_str().len()
}

#[sde::app]
fn content(file: &InputFile) -> Result<String, std::io::Error> {
    std::fs::read_to_string(file.path())
}

#[test]
fn values_come_in_the_order_of_their_arguments_equal_ones_once() {
    let sde = Sde::builder().threads(4).build().unwrap();
    let all = double.par_call(&sde, (0..200).map(|i| i % 50)).unwrap();
    let expected: Vec<u64> = (0..200).map(|i| 2 * (i % 50)).collect();
    assert_eq!(all, expected);
    let total = sde.stats().total;
    assert_eq!((total.computed, total.waits, total.hits()), (50, 0, 0));
    assert!(double.par_call(&sde, []).unwrap().is_empty());
}

/// What is called with many arguments is what is called with one: the same keys.
#[test]
fn any_kind_of_argument_makes_the_key_that_a_call_makes() {
    let sde = Sde::new();
    let file = std::env::temp_dir().join(format!("sde-par-call-{}", std::process::id()));
    std::fs::write(&file, "content").unwrap();
    let shared = Value::new(vec![1_u8, 2]);
    let items = [("a", vec![1.0, 2.0], Some("b"), shared.clone())];
    let all = describe_all.par_call(&sde, items).unwrap();
    assert_eq!(*all[0], "a 2 Some(\"b\") 2");
    length.par_call(&sde, ["a/b"]).unwrap();
    length.par_call(&sde, [PathBuf::from("a/c")]).unwrap();
    content.par_call(&sde, [&file]).unwrap();
    let computed = sde.stats().total.computed;
    describe_all
        .call(&sde, "a", &[1.0, 2.0], Some("b"), shared)
        .unwrap();
    length.call(&sde, Path::new("a/b")).unwrap();
    length.call(&sde, Path::new("a/c")).unwrap();
    content.call(&sde, &InputFile::new(&file)).unwrap();
    assert_eq!(sde.stats().total.computed, computed);
    std::fs::remove_file(file).unwrap();
}

#[sde::app]
fn fails_at_ten(x: u64) -> Result<u64, AppError> {
    match x {
        10 => Err(AppError::message("no").permanent()),
        _ => Ok(x),
    }
}

fn item(error: &sde::Error) -> usize {
    let ErrorKind::Item { item, source, .. } = error.kind() else {
        panic!("{error}");
    };
    let kind = source.kind();
    assert!(
        matches!(kind, ErrorKind::App { .. } | ErrorKind::OnRank { .. }),
        "{source}"
    );
    *item
}

/// After an error what has begun is finished, and nothing more begins. The error names its item.
#[test]
fn the_first_error_ends_it() {
    let sde = Sde::builder().threads(3).build().unwrap();
    let error = fails_at_ten.par_call(&sde, 0..1_000).unwrap_err();
    assert_eq!(item(&error), 10);
    let said = format!("{error:#}");
    assert!(
        said.starts_with("item 10 (x = 10) failed: fails_at_ten ["),
        "{said}"
    );
    assert!(said.ends_with("failed: no"), "{said}");
    let mut seen = Vec::new();
    let error = fails_at_ten.par_call_each(&sde, 0..1_000_000_000, |at, _| seen.push(at));
    assert_eq!(item(&error.unwrap_err()), 10);
    assert!((0..10).all(|at| seen.contains(&at)) && !seen.contains(&10));

    // How many other threads begin meanwhile is chance; one begins nothing after the error.
    let alone = Sde::builder().threads(1).build().unwrap();
    assert!(fails_at_ten.par_call(&alone, 0..1_000).is_err());
    let total = alone.stats().total;
    assert_eq!((total.computed, total.failures), (10, 1));
}

/// A caller's failure lasts as long as that of the item.
/// A sweep of which one point failed was lost, or had to be written by hand.
#[test]
fn one_failed_point_ends_no_sweep() {
    let sde = Sde::builder().threads(2).build().unwrap();
    let all = fails_at_ten.try_par_call(&sde, [9, 10, 11, 10, 9]);
    let values: Vec<_> = all
        .iter()
        .map(|one| one.as_ref().ok().map(|x| **x))
        .collect();
    assert_eq!(values, [Some(9), None, Some(11), None, Some(9)]);
    let failed = all.iter().filter_map(|one| one.as_ref().err());
    assert_eq!(failed.map(item).collect::<Vec<_>>(), [1, 3]);
    let total = sde.stats().total;
    assert_eq!((total.computed, total.failures), (2, 1));
}

#[test]
fn it_goes_on_until_the_function_has_enough() {
    let sde = Sde::builder().threads(1).build().unwrap();
    let mut seen = Vec::new();
    let until_six = |_, value: Value<u64>| {
        seen.push(*value);
        match *value < 6 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    double.par_call_each(&sde, 0.., until_six).unwrap();
    assert_eq!(seen, [0, 2, 4, 6]);
    let mut seen = 0;
    let first = |_, _| {
        seen += 1;
        ControlFlow::Break(())
    };
    fails_at_ten.par_call_each(&sde, [9, 10], first).unwrap();
    assert_eq!(seen, 1);
    assert_eq!(sde.stats().total.failures, 0);
}

#[test]
fn a_failed_item_is_a_failed_callee() {
    #[sde::app]
    fn sum_all(sde: &Handle) -> Result<u64, sde::Error> {
        let all = fails_at_ten.par_call(sde, [1, 10])?;
        Ok(all.iter().map(|value| **value).sum())
    }
    let sde = Sde::new();
    let first = sum_all.call(&sde).unwrap_err();
    assert!(
        sum_all.call(&sde).unwrap_err().is_same(&first),
        "it is permanent"
    );
}

#[sde::app(tags(no_cache))]
fn large(x: u64) -> Vec<u64> {
    vec![x; 10]
}

/// Items are taken one by one, and each value is given away when it is there.
#[test]
fn each_value_is_given_away_as_it_comes() {
    let sde = Sde::builder().threads(4).build().unwrap();
    let taken = AtomicUsize::new(0);
    let mut given = 0;
    let mut sum = 0;
    let items = (0..500_u64).inspect(|_| {
        taken.fetch_add(1, Ordering::SeqCst);
    });
    large
        .par_call_each(&sde, items, |at, value| {
            assert_eq!(value[0], at as u64);
            given += 1;
            // Four are at work, and hold one each.
            assert!(taken.load(Ordering::SeqCst) <= given + 4);
            sum += value[9];
        })
        .unwrap();
    assert_eq!((given, sum), (500, 500 * 499 / 2));
}

fn progress(watch: &Watch) -> Vec<(String, usize, usize, bool)> {
    let told = |event: Event| match event {
        Event::Progress {
            label,
            done,
            total,
            nested,
            ..
        } => Some((label.to_string(), done, total, nested)),
        _ => None,
    };
    watch.events().into_iter().filter_map(told).collect()
}

/// Only the outermost work is for a person to see.
#[test]
fn progress_is_told_and_what_is_nested_says_so() {
    #[sde::app]
    fn outer(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
        Ok(double
            .par_call(sde, [x, x + 1])?
            .iter()
            .map(|value| **value)
            .sum())
    }
    let (sde, watch) = watched();
    outer.par_call(&sde, 0..2).unwrap();
    outer.par_call_each(&sde, 2..4, |_, _| ()).unwrap();
    let told = progress(&watch);
    assert!(
        told.iter()
            .all(|(label, .., nested)| *nested == (label == "double"))
    );
    let last = told
        .iter()
        .filter(|(.., nested)| !nested)
        .map(|(label, done, total, _)| (&**label, *done, *total));
    let last: Vec<_> = last.collect();
    assert_eq!(last.len(), 6);
    assert_eq!((last[0], last[3]), (("outer", 0, 2), ("outer", 0, 2)));
    assert!(last.contains(&("outer", 2, 2)));
}

#[test]
fn ranks_share_what_is_to_be_done() {
    let program = |group: ThreadGroup| -> Result<_, sde::Error> {
        let builder = Sde::builder().threads(2).process_group(group, Cbor);
        let sde = builder.build()?;
        let all = double.par_call(&sde, 0..40)?;
        let mut each = Vec::new();
        double.par_call_each(&sde, 40..100, |at, value| each.push((at, *value)))?;
        let two = |at, _| match at {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        double.par_call_each(&sde, 40..100, two)?;
        let failed = fails_at_ten.par_call(&sde, 5..15).unwrap_err();
        let tried = fails_at_ten.try_par_call(&sde, 9..12);
        assert!(tried[0].is_ok() && tried[1].is_err() && tried[2].is_ok());
        sde.finish()?;
        Ok((
            all.iter().map(|value| **value).sum::<u64>(),
            each,
            item(&failed),
            sde.stats().total.computed,
        ))
    };
    let of_ranks = ThreadGroup::run(3, program);
    let of_ranks: Vec<_> = of_ranks
        .into_iter()
        .map(|rank| rank.expect("no error"))
        .collect();
    let computed: u64 = of_ranks.iter().map(|(.., computed)| computed).sum();
    assert!(computed <= 110, "{computed}");
    for (sum, each, failed, _) in &of_ranks {
        assert_eq!((*sum, *failed), (2 * 40 * 39 / 2, 5));
        assert!(
            each.iter()
                .enumerate()
                .all(|(n, (at, value))| n == *at && *value == 2 * (40 + n as u64))
        );
        assert_eq!(each.len(), 60);
    }
}

/// A rank that alone had enough, or was cancelled alone, left the others waiting for it in the next block.
#[test]
fn all_ranks_end_where_one_has_enough() {
    let _dog = Watchdog::new("ranks of which one has enough", LIMIT);
    let program = |group: ThreadGroup| -> Result<_, sde::Error> {
        let builder = Sde::builder().threads(1).process_group(group, Cbor);
        let sde = builder.build()?;
        let (is_first, mut seen) = (sde.rank()? == 0, 0);
        let one_has_enough = |_, _| {
            seen += 1;
            match is_first {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        double.par_call_each(&sde, 0.., one_has_enough)?;
        // On one rank only what it has is given, on another nothing.
        let token = sde::CancelToken::new();
        let cancellable = sde.with_cancel(&token);
        if is_first {
            token.cancel();
        }
        let cancelled = double.par_call_each(&cancellable, 1000.., |_, _| ());
        assert!(cancelled.is_err());
        assert_eq!(double.par_call(&sde, 0..40)?.len(), 40);
        sde.finish()?;
        Ok(seen)
    };
    let of_ranks = ThreadGroup::run(2, program);
    let seen: Vec<_> = of_ranks.into_iter().map(|rank| rank.unwrap()).collect();
    assert_eq!(seen[0], 1);
    assert!(seen[1] > 1 && seen[1] < 100, "{seen:?}");
}

/// With `Inputs` it is the same run.
#[test]
fn it_is_the_run_that_inputs_name() {
    let sde = Sde::new();
    double.par_call(&sde, [7]).unwrap();
    let found = sde.request(&double, &inputs! { x: 7_u64 }).run().unwrap();
    assert!(found.source.is_hit());
}

/// Found by a hostile program: after a panic the rest was computed all the same, of an endless iterator for ever.
#[test]
fn a_panic_ends_it() {
    #[sde::app]
    fn third(x: u64) -> u64 {
        assert_ne!(x, 3, "as it is told to");
        x
    }
    let _dog = Watchdog::new("an endless sweep", LIMIT);
    let sde = Sde::builder().threads(4).build().unwrap();
    for items in [0..u64::MAX, 0..500] {
        let panics = AssertUnwindSafe(|| third.par_call_each(&sde, items, |_, _| {}));
        assert!(catch_unwind(panics).is_err());
    }
    let items = (0..u64::MAX).inspect(|x| assert_ne!(*x, 1, "as it is told to"));
    let panics = AssertUnwindSafe(|| double.par_call_each(&sde, items, |_, _| {}));
    assert!(catch_unwind(panics).is_err());
}

/// The text of the panic with which this ends.
fn panics<T>(ends: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(ends)).err().expect("a panic");
    *panic.downcast::<String>().expect("a text")
}

/// A sweep of hours ended with a panic that did not say by which of its items.
#[test]
fn a_panic_names_its_item() {
    #[sde::app]
    fn root(x: u64) -> u64 {
        assert_ne!(x, 7, "no root");
        x
    }
    #[sde::app]
    fn roots(sde: &Handle, from: u64) -> Result<u64, sde::Error> {
        Ok(root.par_call(sde, from..from + 3)?.len() as u64)
    }
    let text = "assertion `left != right` failed: no root\n  left: 7\n right: 7";
    for threads in [1, 3] {
        let sde = Sde::builder().threads(threads).build().unwrap();
        let items = [1, 1, 7, 2];
        let of_list = format!("item 2 (x = 7): {text}");
        assert_eq!(panics(|| root.par_call(&sde, items)), of_list);
        assert_eq!(panics(|| root.try_par_call(&sde, items)), of_list);
        assert_eq!(
            panics(|| root.par_call_each(&sde, items, |_, _| ())),
            of_list
        );
        // Those that are refused have their numbers too.
        let list = [
            inputs! { y: 1_u64 },
            inputs! { x: 1_u64 },
            inputs! { x: 7_u64 },
        ];
        assert_eq!(panics(|| sde.par_map(&root, &list)), of_list);
        let each = || sde.par_each(&[3, 7], |sde, x| root.call(sde, *x).unwrap());
        assert_eq!(panics(each), format!("item 1: {text}"));
        let nested = || roots.par_call(&sde, [1, 5]);
        assert_eq!(
            panics(nested),
            format!("item 1 (from = 5): item 2 (x = 7): {text}")
        );
    }
    let sde = Sde::new();
    // Only the program knows what something else means.
    let other = || sde.par_each(&[1], |_, _| std::panic::panic_any(7_u8));
    let panic = catch_unwind(AssertUnwindSafe(other)).unwrap_err();
    assert_eq!(*panic.downcast::<u8>().unwrap(), 7);
}

#[test]
fn progress_counts_what_failed() {
    let (sde, watch) = watched();
    fails_at_ten.try_par_call(&sde, [9, 10, 11]).truncate(0);
    let told = |event| match event {
        Event::Progress {
            done,
            failed,
            total,
            ..
        } => Some((done, failed, total)),
        _ => None,
    };
    let last = watch.events().into_iter().filter_map(told).max();
    assert_eq!(last, Some((3, 1, 3)));
    // All items may fail.
    let all = fails_at_ten.try_par_call(&sde, [10; 5]);
    assert!(all.iter().all(Result::is_err));
    let last = watch.events().into_iter().filter_map(told).last();
    assert_eq!(last, Some((1, 1, 1)));
}
