//! Several processes that are at the same work with one store.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sde::{AppError, ErrorKind, Event, Handle, Sde, SharedWork};
use sde_tests::until;
use tempfile::tempdir;

use super::child::{Program, tell, wait};

/// Takes long enough to be shared.
#[sde::app]
fn slow(x: u64) -> u64 {
    static COMPUTED: AtomicU64 = AtomicU64::new(0);
    if COMPUTED.fetch_add(1, Ordering::Relaxed) == 10 {
        tell("in the midst of it");
    }
    std::thread::sleep(Duration::from_millis(50));
    x * x
}

/// Is made of what takes long.
#[sde::app]
fn scan(sde: &Handle, points: u64) -> Result<u64, sde::Error> {
    let squares = slow.par_call(sde, 0..points)?;
    Ok(squares.iter().map(|square| **square).sum())
}

/// Takes as long as the parent says, which may let it fail.
#[sde::app]
fn held_up(x: u64) -> Result<u64, AppError> {
    tell("at it");
    match wait().trim() {
        "fail" => Err(AppError::message("told to fail")),
        _ => Ok(x + 1),
    }
}

/// Of 0 it needs `pong`, which needs this.
#[sde::app]
fn ping(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    if x > 0 {
        std::thread::sleep(Duration::from_millis(25));
        return Ok(x);
    }
    tell("at it");
    wait();
    Ok(*pong.call(sde, x)?)
}

#[sde::app]
fn pong(sde: &Handle, x: u64) -> Result<u64, sde::Error> {
    if x > 0 {
        std::thread::sleep(Duration::from_millis(25));
        return Ok(x);
    }
    tell("at it");
    wait();
    Ok(*ping.call(sde, x)?)
}

/// An engine that tells for whom it waits.
fn engine(store: &Path, shared: SharedWork) -> Sde {
    let builder = sde::builder(store).unwrap().threads(1);
    let builder = builder.without_signals().shared_work(shared);
    let waits = |event: &Event| {
        if let Event::WaitingForProcess { process, .. } = event {
            tell(&format!("waits for {process}"));
        }
    };
    builder.observer(waits).build().unwrap()
}

/// Goes through a list when it is told to, and tells what it did.
pub fn sweeps(store: &Path, points: u64) {
    let sde = engine(store, SharedWork::On);
    tell("ready");
    wait();
    let squares = slow.par_call(&sde, 0..points).unwrap();
    let mut each = (0..points).zip(&squares);
    assert!(each.all(|(x, square)| **square == x * x));
    let of = sde.stats().total;
    assert_eq!(of.computed + of.loads, points);
    sde.finish().unwrap();
    tell(&format!("computed {}", of.computed));
    tell(&format!("in time {}", of.computed - of.beside_others));
}

/// Makes the one run that has all points in it.
pub fn scans(store: &Path) {
    let sde = engine(store, SharedWork::On);
    tell("ready");
    wait();
    assert_eq!(*scan.call(&sde, 200).unwrap(), 2_646_700);
    let stats = sde.stats();
    let computed = stats.apps.get("slow").map_or(0, |of| of.computed);
    sde.finish().unwrap();
    tell(&format!("computed {computed}"));
}

/// Makes one call, and tells how it got its result.
pub fn calls(store: &Path) {
    let sde = engine(store, SharedWork::On);
    let outcome = held_up.call(&sde, 1).map(|value| *value);
    let of = sde.stats().total;
    let counts = (of.computed, of.waited_for_others, of.beside_others);
    tell(&format!("{:?} {counts:?}", outcome.ok()));
    sde.finish().unwrap();
}

/// Begins at one place of a circle.
pub fn goes_round(store: &Path, begins_with_ping: bool) {
    let sde = engine(store, SharedWork::Within(Duration::from_secs(1)));
    // So that both are known to take long.
    let own = u64::from(std::process::id());
    assert_eq!(
        *ping.call(&sde, own).unwrap(),
        *pong.call(&sde, own).unwrap()
    );
    let result = match begins_with_ping {
        true => ping.call(&sde, 0),
        false => pong.call(&sde, 0),
    };
    let error = result.unwrap_err();
    let mut kinds = std::iter::successors(Some(error.kind()), |kind| match kind {
        ErrorKind::App { cause, .. } => cause.downcast_ref::<sde::Error>().map(sde::Error::kind),
        _ => None,
    });
    let is_cycle = kinds.any(|kind| matches!(kind, ErrorKind::Cycle { .. }));
    tell(if is_cycle {
        "a circle"
    } else {
        "something else"
    });
}

/// Starts processes, and lets all of them go on at once.
fn sweep(job: &str, store: &Path, processes: usize) -> Vec<Program> {
    let start = |_| Program::start(job, store);
    let mut programs: Vec<_> = (0..processes).map(start).collect();
    programs
        .iter_mut()
        .for_each(|program| program.told("ready"));
    programs.iter_mut().for_each(Program::go_on);
    programs
}

/// Lets them come to their end; how much each computed.
fn computed(programs: Vec<Program>) -> Vec<u64> {
    numbers("computed", programs)
}

/// Lets them come to their end; the number that each tells of this.
fn numbers(what: &str, programs: Vec<Program>) -> Vec<u64> {
    let of_one = |program: Program| {
        let (status, out, error) = program.ended();
        assert!(status.success() && error.is_empty(), "{error}");
        let start = format!("> {what} ");
        let number = out.lines().find_map(|line| line.strip_prefix(&start));
        number.expect(&out).parse().unwrap()
    };
    programs.into_iter().map(of_one).collect()
}

#[test]
fn four_processes_share_a_sweep() {
    let folder = tempdir().unwrap();
    let each = computed(sweep("sweeps 200 points", folder.path(), 4));
    assert!((200..=208).contains(&each.iter().sum::<u64>()), "{each:?}");
    // So it takes a third of the time.
    assert!(each.iter().all(|computed| *computed <= 70), "{each:?}");
}

/// Nobody waits for the whole, of which there are parts to be done.
#[test]
fn four_processes_share_what_one_run_is_made_of() {
    let folder = tempdir().unwrap();
    let each = computed(sweep("scans 200 points", folder.path(), 4));
    assert!((200..=212).contains(&each.iter().sum::<u64>()), "{each:?}");
    assert!(each.iter().all(|computed| *computed <= 75), "{each:?}");
}

#[test]
fn sixty_four_processes_share_a_sweep() {
    let folder = tempdir().unwrap();
    // But for what a process whose patience ran out computed beside another: on a slow machine that is no fault.
    let each = numbers("in time", sweep("sweeps 640 points", folder.path(), 64));
    assert!((640..=672).contains(&each.iter().sum::<u64>()), "{each:?}");
}

#[test]
fn what_a_killed_process_was_at_is_taken_over() {
    let folder = tempdir().unwrap();
    let mut programs = sweep("sweeps 200 points", folder.path(), 4);
    programs[0].told("in the midst of it");
    programs[0].signal("KILL");
    let each = computed(programs.split_off(1));
    // Ten points of the other are there.
    assert!((150..=198).contains(&each.iter().sum::<u64>()), "{each:?}");
}

#[test]
fn a_process_that_is_stopped_holds_up_nobody() {
    let folder = tempdir().unwrap();
    let mut programs = sweep("sweeps 200 points", folder.path(), 4);
    programs[0].told("in the midst of it");
    programs[0].signal("STOP");
    let each = computed(programs.split_off(1));
    assert!((150..=198).contains(&each.iter().sum::<u64>()), "{each:?}");
}

/// Has a process wait for another that is at the same key.
fn one_waits(store: &Path) -> [Program; 2] {
    let mut first = Program::start("calls", store);
    first.told("at it");
    until("it is announced", || announced(store) == 1);
    let mut second = Program::start("calls", store);
    second.told(&format!("waits for {}", first.id()));
    [first, second]
}

/// How many keys are announced.
fn announced(store: &Path) -> usize {
    let names = std::fs::read_dir(store.join("work"));
    let names = names.into_iter().flatten().flatten();
    names
        .filter(|name| name.path().extension().is_none())
        .count()
}

#[test]
fn who_waits_gets_what_the_other_computed() {
    let folder = tempdir().unwrap();
    let [mut first, mut second] = one_waits(folder.path());
    first.go_on();
    first.told("Some(2) (1, 0, 0)");
    second.told("Some(2) (0, 1, 0)");
    assert!(first.ended().0.success() && second.ended().0.success());
    assert_eq!(
        std::fs::read_dir(folder.path().join("work"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn what_failed_is_given_to_who_waits() {
    let folder = tempdir().unwrap();
    let [mut first, mut second] = one_waits(folder.path());
    first.says("fail");
    first.told("None (0, 0, 0)");
    second.told("None (0, 1, 0)");
}

#[test]
fn what_was_killed_is_done_by_who_waits() {
    let folder = tempdir().unwrap();
    let [first, mut second] = one_waits(folder.path());
    first.signal("KILL");
    second.told("at it");
    second.go_on();
    second.told("Some(2) (1, 0, 0)");
}

#[test]
fn a_circle_over_two_processes_ends() {
    let folder = tempdir().unwrap();
    let mut programs = ["pings", "pongs"].map(|job| Program::start(job, folder.path()));
    programs
        .iter_mut()
        .for_each(|program| program.told("at it"));
    until("both are announced", || announced(folder.path()) == 2);
    let ids = programs.each_ref().map(Program::id);
    programs.iter_mut().for_each(|program| program.says("on"));
    programs[0].told(&format!("waits for {}", ids[1]));
    programs[1].told(&format!("waits for {}", ids[0]));
    // Each does what the other is at itself, and comes by where it began.
    programs
        .iter_mut()
        .for_each(|program| program.told("at it"));
    programs.iter_mut().for_each(Program::go_on);
    programs
        .iter_mut()
        .for_each(|program| program.told("a circle"));
}
