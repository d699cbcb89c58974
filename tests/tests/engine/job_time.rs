//! Sweeps of a job whose time is short.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sde::store::DirStore;
use sde::{Builder, Error, ErrorKind, Event, Handle, Sde, Value, inputs};
use sde_tests::{Watch, assert_kind, number, x, y};
use tempfile::tempdir;

const HOUR: Duration = Duration::from_secs(3600);

#[sde::app]
fn triple(x: u64) -> u64 {
    3 * x
}

/// Says that it takes so many seconds.
#[sde::app]
fn lasting(sde: &Handle, x: u64, seconds: u64) -> u64 {
    sde.took(Duration::from_secs(seconds));
    x
}

fn within(limit: Duration) -> Builder {
    Sde::builder().threads(2).time_limit(limit)
}

fn counts(error: &Error) -> (usize, Option<usize>) {
    match error.kind() {
        ErrorKind::OutOfTime { done, left, .. } => (*done, *left),
        _ => panic!("{error}"),
    }
}

#[test]
fn without_time_what_is_remembered_is_given_and_nothing_begins() {
    let watch = Watch::new();
    let sde = within(Duration::ZERO)
        .observer(watch.clone())
        .build()
        .unwrap();
    // A call by itself is no sweep.
    for x in [1, 3] {
        triple.call(&sde, x).unwrap();
    }
    let all = triple.try_par_call(&sde, [0, 1, 2, 3, 1]);
    let values = all.iter().map(|one| one.as_ref().ok().map(|x| **x));
    assert_eq!(
        values.collect::<Vec<_>>(),
        [None, Some(3), None, Some(9), Some(3)]
    );
    for error in all.iter().filter_map(|one| one.as_ref().err()) {
        assert_kind!(error, NotStarted);
        assert_eq!(error.exit_code(), 75);
    }
    let list: Vec<_> = (0..4_u64).map(|x| inputs! { x: x }).collect();
    let mapped = sde.par_map(&triple, &list);
    assert_eq!(
        mapped.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [false, true, false, true]
    );
    assert_kind!(mapped[0].as_ref().unwrap_err(), NotStarted);
    assert_eq!(triple.par_call(&sde, [1, 3]).unwrap(), [3, 9]);

    let error = triple.par_call(&sde, [1, 3, 0, 2, 2]).unwrap_err();
    let (done, left) = counts(&error);
    assert!(done <= 2 && left == Some(5 - done), "{error}");
    assert_eq!(error.exit_code(), 75);
    let mut given = Vec::new();
    let ends = triple.par_call_each(&sde, [1, 0, 2], |at, _| given.push(at));
    let (done, left) = counts(&ends.unwrap_err());
    assert_eq!((done, left), (given.len(), Some(3 - given.len())));
    assert_eq!(
        counts(&triple.par_call_each(&sde, 4.., |_, _| ()).unwrap_err()),
        (0, None)
    );
    let total = sde.stats().total;
    assert_eq!((total.computed, total.failures), (2, 0));
    assert_eq!(
        watch.count(|event| matches!(event, Event::Failed { .. })),
        0
    );
    // The bar of each sweep has come to its end.
    let last = watch
        .events()
        .into_iter()
        .rev()
        .find_map(|event| match event {
            Event::Progress { done, total, .. } => Some((done, total)),
            _ => None,
        });
    assert!(last.is_some_and(|(done, total)| done == total), "{last:?}");
}

/// An error is more than a want of time, and a function that has enough wants none.
#[test]
fn what_ends_a_sweep_before_the_time_does_is_told() {
    #[sde::app]
    fn fails(x: u64) -> Result<u64, sde::AppError> {
        Err(sde::AppError::message(format!("{x}")).permanent())
    }
    let sde = within(Duration::ZERO).threads(1).build().unwrap();
    fails.call(&sde, 1).unwrap_err();
    let error = fails.par_call(&sde, [1, 2]).unwrap_err();
    assert_kind!(error, Item);
    assert_eq!(error.exit_code(), 1);
    triple.call(&sde, 1).unwrap();
    let enough = |_, _| ControlFlow::Break(());
    triple.par_call_each(&sde, [1, 2], enough).unwrap();
}

/// What an item needs is computed, also by sweeps.
#[test]
fn runs_within_an_item_are_never_refused() {
    #[sde::app]
    fn sum(sde: &Handle, to: u64) -> Result<u64, Error> {
        let values: Vec<Value<u64>> = triple.par_call(sde, 0..to)?;
        let each = sde.par_each(&[to], |sde, x| triple.call(sde, *x));
        each.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(values.iter().map(|value| **value).sum())
    }
    let sde = within(Duration::ZERO).build().unwrap();
    assert_eq!(*sum.call(&sde, 4).unwrap(), 18);
    // A closure is no run.
    let each = sde.par_each(&[1, 9], |sde, x| triple.par_call(sde, [*x]));
    assert!(each[0].is_ok());
    assert_eq!(counts(each[1].as_ref().unwrap_err()), (0, Some(1)));
}

/// A store with a record of runs that took so long.
fn recorded(store: &Path, seconds: &[u64]) {
    let sde = Sde::builder()
        .store(DirStore::open(store).unwrap())
        .build()
        .unwrap();
    for (x, seconds) in (0..).zip(seconds) {
        lasting.call(&sde, x, *seconds).unwrap();
    }
    sde.finish().unwrap();
}

#[test]
fn what_runs_took_before_says_what_fits() {
    let begins = |seconds: &[u64]| {
        let folder = tempdir().unwrap();
        recorded(folder.path(), seconds);
        let watch = Watch::new();
        let store = DirStore::open(folder.path()).unwrap();
        let builder = within(HOUR).store(store).observer(watch.clone());
        let sde = builder.build().unwrap();
        let all = lasting.try_par_call(&sde, [(100, 0), (101, 0)]);
        let warnings = watch.count(|event| matches!(event, Event::Warning { .. }));
        (all.iter().filter(|one| one.is_ok()).count(), warnings)
    };
    assert_eq!(begins(&[2000, 2000, 2000]), (2, 0));
    // A fifth more than that does not fit, and the person is told why nothing begins, once.
    assert_eq!(begins(&[3100, 3100, 3100]), (0, 1));
    // Two say too little.
    assert_eq!(begins(&[4000]), (2, 0));
    assert_eq!(begins(&[&[1; 18][..], &[4000]].concat()), (2, 0));
}

/// Runs that are longer than a job go on in the next: with their whole times no more of them would ever begin.
#[test]
fn runs_of_several_jobs_do_not_keep_the_next_from_beginning() {
    #[sde::app]
    fn iterating(sde: &Handle, x: u64) -> Result<u64, sde::AppError> {
        let state = sde.scratch::<u64>();
        if state.load()?.is_none() {
            state.save(x)?;
            return Err("its job has ended".into());
        }
        sde.took(2 * HOUR);
        Ok(x)
    }
    let sde = within(HOUR).build().unwrap();
    for x in 0..3 {
        iterating.call(&sde, x).unwrap_err();
        iterating.call(&sde, x).unwrap();
    }
    let error = iterating.par_call(&sde, [9]).unwrap_err();
    assert!(
        format!("{error:#}").contains("its job has ended"),
        "{error:#}"
    );
}

#[test]
fn what_runs_take_meanwhile_says_what_fits() {
    let sde = within(HOUR).threads(1).build().unwrap();
    let all = lasting.try_par_call(&sde, (0..9).map(|x| (x, 4000)));
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 3);
    // The time without limit is not looked at.
    let sde = Sde::builder().threads(1).build().unwrap();
    assert_eq!(sde.time_left(), None);
    lasting.par_call(&sde, (0..9).map(|x| (x, 4000))).unwrap();
}

/// The order of an app that is told by how it comes out, without time.
#[test]
fn an_app_whose_results_vary_is_refused_too() {
    let varies = number("varies", |_, n| Ok(n)).described(|info| info.nondeterministic());
    let sde = within(Duration::ZERO).build().unwrap();
    let all = sde.par_map(&varies, &[x(1)]);
    assert_kind!(all[0].as_ref().unwrap_err(), NotStarted);
    assert_eq!(y(&sde.run(&varies, &x(1)).unwrap()).unwrap(), 1);
}

/// One that waits for an item of this sweep does not wait for ever: it computes it.
#[test]
fn a_call_that_waits_for_a_refused_item_takes_it_over() {
    let sde = within(Duration::ZERO).build().unwrap();
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for x in 0..50_u64 {
            // One sweep may take over from another, and is refused too.
            for _ in 0..4 {
                let (sde, refused) = (&sde, &refused);
                scope.spawn(move || {
                    let all = triple.try_par_call(sde, [x]);
                    refused.fetch_add(usize::from(all[0].is_err()), Ordering::Relaxed);
                });
            }
            assert_eq!(*triple.call(&sde, x).unwrap(), 3 * x);
        }
    });
    assert_eq!(sde.stats().total.computed, 50);
}

/// A program of many jobs, as a batch script starts it.
fn leg(store: &Path, limit: &str) -> (Option<i32>, u64, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_legs"));
    let output = command
        .arg(store)
        .arg("40")
        .env("SDE_TIME_LIMIT", limit)
        .output();
    let output = output.unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let computed = out.lines().find_map(|line| line.strip_prefix("computed "));
    let computed = computed.map_or(0, |number| number.parse().unwrap());
    (output.status.code(), computed, out + &error)
}

#[test]
fn a_program_ends_in_time_and_the_next_job_computes_the_rest() {
    let folder = tempdir().unwrap();
    let (status, computed, said) = leg(folder.path(), "@1");
    assert_eq!((status, computed), (Some(75), 0), "{said}");
    assert!(
        said.contains("error: the job's time is up after 0 items, with 40 left; "),
        "{said}"
    );
    let (status, first, said) = leg(folder.path(), "1s");
    assert_eq!(status, Some(75), "{said}");
    let (status, rest, said) = leg(folder.path(), "none");
    assert_eq!((status, first + rest), (Some(0), 40), "{said}");
    assert!(said.contains("sum 20540"), "{said}");
    let (status, computed, said) = leg(folder.path(), "@1");
    assert_eq!((status, computed), (Some(0), 0), "{said}");
    let (status, _, said) = leg(folder.path(), "soon");
    assert_eq!(status, Some(1));
    assert!(
        said.contains("error: the time limit SDE_TIME_LIMIT=\"soon\" was refused: "),
        "{said}"
    );
}

#[sde::main]
fn boxed() -> Result<(), Box<dyn std::error::Error>> {
    Ok(ends(0)?)
}

#[sde::main]
fn boxed_for_threads() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Err(ends(1).unwrap_err().into())
}

#[sde::main]
fn anyhow() -> anyhow::Result<()> {
    use anyhow::Context;
    ends(2).context("the sweep")
}

#[sde::main]
fn within_another() -> Result<(), Wrapped> {
    Err(Wrapped(ends(3).unwrap_err()))
}

#[sde::main]
fn a_text() -> Result<(), String> {
    ends(4).map_err(|error| error.to_string())
}

#[sde::main]
fn another_error() -> Result<(), std::fmt::Error> {
    Err(std::fmt::Error)
}

#[sde::main]
fn well() -> sde::Result<()> {
    Ok(())
}

#[derive(Debug, thiserror::Error)]
#[error("wrapped")]
struct Wrapped(#[source] Error);

/// Fails for want of time, in an app that is called.
fn ends(x: u64) -> Result<(), Error> {
    #[sde::app]
    fn program(_sde: &Handle, x: u64) -> Result<u64, Error> {
        let other = within(Duration::ZERO).build()?;
        Ok(*triple.par_call(&other, [x])?[0])
    }
    program.call(&Sde::new(), x).map(drop)
}

#[test]
fn a_program_that_had_too_little_time_ends_with_75_whatever_its_error_is() {
    let code = |code: u8| format!("{:?}", std::process::ExitCode::from(code));
    let all = [boxed(), boxed_for_threads(), anyhow(), within_another()];
    assert!(
        all.iter().all(|ended| format!("{ended:?}") == code(75)),
        "{all:?}"
    );
    assert_eq!(format!("{:?}", a_text()), code(1));
    assert_eq!(format!("{:?}", another_error()), code(1));
    assert_eq!(format!("{:?}", well()), code(0));
}
