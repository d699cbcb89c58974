//! Builds that need themselves, and the end of everything under load.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use sde::{ErrorKind, MemoryBudget, Sde};
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Context, Error, ProgramSpec};

use crate::fixture::{copy, folder, keeping, simulated};

fn spec(n: usize) -> ProgramSpec {
    ProgramSpec::source(format!("kernel void k{n}() {{}}"))
}

fn ask(sde: &Sde, context: &Context, n: usize) -> Result<(), Error> {
    let program = context.describe(0, &spec(n))?;
    context.program(sde, 0, &program).map(|_| ())
}

/// The path that the error names; nothing if it is another error.
fn path_of(error: &Error) -> Option<&[String]> {
    let Error::Engine(error) = error else {
        return None;
    };
    match error.kind() {
        ErrorKind::Cycle { path, .. } => Some(path),
        _ => None,
    }
}

/// A build that asks for its own program, on its thread: SYCL's cache hangs there.
#[test]
fn a_build_that_needs_itself_is_an_error_with_the_path() {
    let (driver, context) = simulated();
    let sde = Sde::new();
    let inner = Arc::new(Mutex::new(None));
    let (told, own, engine) = (Arc::clone(&inner), context.clone(), sde.clone());
    driver.in_build(move |_| *told.lock().unwrap() = Some(ask(&engine, &own, 0)));
    ask(&sde, &context, 0).unwrap();
    let error = inner.lock().unwrap().take().unwrap().unwrap_err();
    let path = path_of(&error).unwrap_or_else(|| panic!("{error}"));
    assert!(
        path.iter()
            .all(|run| run.starts_with("sde_opencl.ProgramBuild [")),
        "{path:?}"
    );
    assert_eq!(driver.counts().builds, 1);
    driver.in_build(|_| {});
}

/// Two builds that ask for one another, on two threads: one is told, and both come to their end.
#[test]
fn builds_on_two_threads_that_need_one_another_are_an_error_with_the_path() {
    let (driver, context) = simulated();
    let sde = Sde::new();
    let both_build = Barrier::new(2);
    let errors = Arc::new(Mutex::new(Vec::new()));
    let asked = AtomicUsize::new(0);
    let (told, own, engine) = (Arc::clone(&errors), context.clone(), sde.clone());
    driver.in_build(move |text| {
        // Each of the two asks once; what takes over after an error does not ask again.
        if asked.fetch_add(1, Ordering::SeqCst) < 2 {
            both_build.wait();
            let other = usize::from(text.contains("k0"));
            if let Err(error) = ask(&engine, &own, other) {
                told.lock().unwrap().push(error);
            }
        }
    });
    thread::scope(|scope| {
        for n in 0..2 {
            let (sde, context) = (&sde, &context);
            scope.spawn(move || ask(sde, context, n).unwrap());
        }
    });
    let errors = errors.lock().unwrap();
    let [error] = &errors[..] else {
        panic!("one of them is told: {errors:?}");
    };
    let path = path_of(error).unwrap_or_else(|| panic!("{error}"));
    assert!(path.len() >= 2, "{path:?}");
    // The build that was told went on, but rests on an error that may pass: who waited for it builds for itself.
    assert_eq!(driver.counts().builds, 3);
    driver.in_build(|_| {});
}

/// Threads go on building, launching and letting go while whoever made the engine and the context leaves.
#[test]
fn the_end_under_load_gives_everything_back() {
    const THREADS: usize = 8;
    let kept = folder();
    let driver = Simulated::new();
    let all_at_work = Barrier::new(THREADS + 1);
    let sde = sde_opencl::memory_budget(Sde::builder(), MemoryBudget::bytes(300_000))
        .build()
        .unwrap();
    let context = keeping(&driver, kept.path());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (sde, context, all_at_work) = (sde.clone(), context.clone(), &all_at_work);
            scope.spawn(move || {
                let mut held = Vec::new();
                for n in 0..40 {
                    let program = context.describe(0, &spec((n + thread) % 12)).unwrap();
                    let name = format!("k{}", (n + thread) % 12);
                    let kernel = context.kernel(&sde, 0, &program, &name).unwrap();
                    held.push(kernel.launch().unwrap());
                    held.truncate(3);
                    if n == 5 {
                        all_at_work.wait();
                    }
                }
            });
        }
        all_at_work.wait();
        drop((sde, context));
    });
    let counts = driver.counts();
    assert!(counts.builds >= 12, "{counts:?}");
    assert_eq!((counts.programs, counts.kernels), (0, 0));
    // What was kept is whole.
    let again = Simulated::new();
    let context = keeping(&again, kept.path());
    let sde = Sde::new();
    for n in 0..12 {
        ask(&sde, &context, n).unwrap();
    }
    context.program(&sde, 0, &copy(&context)).unwrap();
    assert_eq!((again.counts().builds, context.stats().unfit), (1, 0));
}
