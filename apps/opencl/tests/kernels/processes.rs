//! Many processes and one directory: one builds, nobody waits for the dead.

use std::path::Path;
use std::time::Duration;

use sde::{Event, Sde};
use sde_archives::Retention;
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{KernelDir, ProgramSpec, Settings};

use crate::child::{Worker, listen, tell};
use crate::fixture::{COPY, anew, copy, entries, folder, keeping, process, quiet};

/// How many kernels many processes ask for at once.
const PROGRAMS: usize = 64;

/// Builds when it is told to, and tells how often it compiled.
pub fn build(dir: &Path) {
    let driver = Simulated::new();
    let context = keeping(&driver, dir);
    let sde = Sde::new();
    tell("ready");
    listen();
    for n in 0..PROGRAMS {
        let spec = ProgramSpec::source(format!("kernel void k{n}() {{}}"));
        let program = context.describe(0, &spec).unwrap();
        context.kernel(&sde, 0, &program, &format!("k{n}")).unwrap();
    }
    tell(driver.counts().builds);
    drop((sde, context));
}

/// Is in the middle of a build for ever.
pub fn hold(dir: &Path) {
    let driver = Simulated::new();
    driver.in_build(|_| {
        tell("building");
        loop {
            std::thread::park();
        }
    });
    let context = keeping(&driver, dir);
    let _ = context.program(&Sde::new(), 0, &copy(&context));
}

/// Puts one program after another, until it is killed.
pub fn put_for_ever(dir: &Path) {
    let driver = Simulated::new();
    let context = keeping(&driver, dir);
    let sde = Sde::new();
    for n in 0.. {
        let spec = ProgramSpec::source(format!("kernel void p{n}() {{}} {}", COPY.repeat(20)));
        let program = context.describe(0, &spec).unwrap();
        context.program(&sde, 0, &program).unwrap();
        tell(n);
    }
}

#[test]
fn eight_processes_at_once_build_64_programs_64_times_and_keep_one_entry_of_each() {
    let kept = folder();
    let mut workers: Vec<_> = (0..8)
        .map(|_| Worker::start("build", kept.path(), &[]))
        .collect();
    workers
        .iter_mut()
        .for_each(|worker| assert_eq!(worker.next().as_deref(), Some("ready")));
    workers.iter_mut().for_each(Worker::say);
    let builds = workers
        .iter_mut()
        .map(|worker| worker.next().unwrap().parse::<usize>().unwrap());
    assert_eq!(builds.sum::<usize>(), PROGRAMS);
    assert_eq!(workers.iter_mut().filter_map(Worker::next).count(), 0);
    assert_eq!(entries(kept.path()).len(), PROGRAMS);
}

/// The holder is killed while another waits for it: that one builds. Without a lock that the system
/// drops, it would wait for ever, or the minute that it would at most.
#[test]
fn whoever_waits_for_a_builder_that_is_killed_builds() {
    let kept = folder();
    let mut holder = Worker::start("hold", kept.path(), &[]);
    assert_eq!(holder.next().as_deref(), Some("building"));
    let driver = Simulated::new();
    let hour = Settings::new()
        .dir(kept.path())
        .patience(Duration::from_secs(3600));
    let (at_it, comes) = std::sync::mpsc::channel();
    let observer = move |event: &Event| {
        if let Event::WaitingForProcess { .. } = event {
            at_it.send(()).unwrap();
        }
    };
    let dir = KernelDir::open_observed(hour, observer).unwrap();
    let context = quiet(&driver).keep_in_dir(&dir).build().unwrap();
    let program = copy(&context);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| context.program(&Sde::new(), 0, &program).map(|_| ()));
        comes.recv().unwrap();
        holder.kill();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(driver.counts().builds, 1);
    assert_eq!(anew(kept.path()).0.counts().builds, 0);
}

#[test]
fn nobody_waits_longer_than_his_patience() {
    let kept = folder();
    let mut holder = Worker::start("hold", kept.path(), &[]);
    assert_eq!(holder.next().as_deref(), Some("building"));
    let driver = Simulated::new();
    let settings = Settings::new()
        .dir(kept.path())
        .patience(Duration::from_millis(5));
    let dir = KernelDir::open(settings).unwrap();
    let context = quiet(&driver).keep_in_dir(&dir).build().unwrap();
    context.program(&Sde::new(), 0, &copy(&context)).unwrap();
    assert_eq!((driver.counts().builds, dir.stats().beside_others), (1, 1));
    holder.kill();
}

/// What is there is had while another process is at it.
#[test]
fn who_finds_what_he_wants_waits_for_nobody() {
    let kept = folder();
    anew(kept.path());
    let mut holder = Worker::start("announce", kept.path(), &[]);
    assert_eq!(holder.next().as_deref(), Some("announced"));
    let (driver, _) = anew(kept.path());
    assert_eq!(driver.counts().builds, 0);
    holder.kill();
}

/// A kill at any moment of a put leaves all that was told, and nothing half.
#[test]
fn a_process_that_is_killed_while_it_puts_leaves_whole_entries_only() {
    for turn in 0..12 {
        let kept = folder();
        let mut worker = Worker::start("put", kept.path(), &[]);
        let mut told = 0;
        for _ in 0..=turn {
            told = worker.next().unwrap().parse::<usize>().unwrap();
        }
        worker.kill();
        let (driver, context) = process(kept.path());
        let sde = Sde::new();
        for n in 0..=told {
            let spec = ProgramSpec::source(format!("kernel void p{n}() {{}} {}", COPY.repeat(20)));
            let program = context.describe(0, &spec).unwrap();
            context.program(&sde, 0, &program).unwrap();
        }
        let counts = (driver.counts().builds, driver.counts().damaged);
        assert_eq!(counts, (0, 0), "turn {turn}");
        assert_eq!(context.stats().unfit, 0);
    }
}

/// Somebody else's unfinished files are not anybody's to remove.
#[test]
fn a_live_process_loses_nothing_when_others_make_room() {
    let kept = folder();
    let dir = |bytes| {
        let settings = Settings::new().dir(kept.path()).capacity(bytes);
        KernelDir::open(settings).unwrap()
    };
    let writer = quiet(&Simulated::new())
        .keep_in_dir(&dir(1 << 30))
        .build()
        .unwrap();
    let sde = Sde::new();
    for n in 0..4 {
        let spec = ProgramSpec::source(format!("kernel void k{n}() {{}}"));
        let program = writer.describe(0, &spec).unwrap();
        writer.program(&sde, 0, &program).unwrap();
        // Another process that finds far too much.
        let all = Retention::new().capacity(1).results();
        dir(1).store().compact(&all).unwrap();
    }
    assert_eq!(writer.stats().store_failures, 0);
    assert_eq!(writer.stats().kept, 4);
    let (driver, context) = process(kept.path());
    let spec = ProgramSpec::source("kernel void k3() {}");
    context
        .program(&sde, 0, &context.describe(0, &spec).unwrap())
        .unwrap();
    assert_eq!(
        driver.counts().builds,
        0,
        "the last put is in a file that is being written"
    );
}
