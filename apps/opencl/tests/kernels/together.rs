//! Many programs at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sde::Sde;
use sde_opencl::driver::simulated::{Simulated, device};
use sde_opencl::{
    Context, Descriptor, Error, Event, KernelDir, KernelStore, ProgramSpec, Settings, StoreError,
    StoredProgram, Turn, Wanted,
};

use crate::fixture::{context, copy, folder, quiet};
use crate::own_store::Own;

fn on(driver: &Simulated, own: &Own) -> Context {
    quiet(driver).keep_in(own.clone()).build().unwrap()
}

fn ten(context: &Context) -> Vec<Descriptor> {
    let spec = |n| ProgramSpec::source(format!("kernel void k{n}() {{}}"));
    let all = (0..10).map(|n| context.describe(0, &spec(n)).unwrap());
    all.collect()
}

/// Has the kernel of each of them, and launches it.
fn launch_ten(sde: &Sde, context: &Context) {
    for (n, program) in ten(context).iter().enumerate() {
        let kernel = context.kernel(sde, 0, program, &format!("k{n}")).unwrap();
        kernel.launch().unwrap().enqueued();
    }
}

#[test]
fn programs_that_are_not_live_are_asked_for_in_one_call() {
    let own = Own::default();
    let driver = Simulated::new();
    let first = on(&driver, &own);
    let all = ten(&first);
    let programs = first.programs(&Sde::new(), 0, &all);
    assert!(programs.iter().all(Result::is_ok));
    assert_eq!(driver.counts().builds, 10);
    // Each looks again once it has the turn to build, and is kept when it was built.
    let (gets, puts) = own.calls();
    assert_eq!((gets[0], gets.len()), (10, 11));
    assert_eq!(puts, [1; 10]);
    drop((programs, first));

    let driver = Simulated::new();
    let second = on(&driver, &own);
    let (sde, all) = (Sde::new(), ten(&second));
    let live = second.program(&sde, 0, &all[3]).unwrap();
    own.calls();
    let programs = second.programs(&sde, 0, &all);
    for (n, program) in programs.iter().enumerate() {
        let names = program.as_ref().unwrap().kernel_names();
        assert_eq!(names, [format!("k{n}")]);
    }
    assert!(sde::Value::ptr_eq(programs[3].as_ref().unwrap(), &live));
    assert_eq!(own.calls(), (vec![9], vec![]));
    let stats = second.stats();
    assert_eq!((stats.builds, stats.loads), (0, 10));
    // All are live now.
    second.programs(&sde, 0, &all);
    assert_eq!(own.calls(), (vec![], vec![]));
}

/// A device that is like another has its programs by way of that one.
#[test]
fn a_twin_asks_for_what_the_first_device_has_not() {
    let own = Own::default();
    let twins = || Simulated::with(vec![device("twin", "1"), device("twin", "1")]);
    for builds in [10, 0] {
        let driver = twins();
        let context = on(&driver, &own);
        let programs = context.programs(&Sde::new(), 1, &ten(&context));
        assert!(programs.iter().all(Result::is_ok));
        assert_eq!(driver.counts().builds, builds);
        assert_eq!(own.calls().0[0], 10);
        drop((programs, context));
    }
}

#[test]
fn one_that_fails_keeps_no_other_from_being_had() {
    let driver = Simulated::new();
    let context = context(&driver);
    let mut all = ten(&context);
    let wrong = ProgramSpec::source("#error no");
    all.insert(4, context.describe(0, &wrong).unwrap());
    // What can't be remembered is built each time, beside the others.
    let now = ProgramSpec::source("kernel void k() { char *now = __TIME__; }");
    all.push(context.describe(0, &now).unwrap());
    let programs = context.programs(&Sde::new(), 0, &all);
    for (n, program) in programs.iter().enumerate() {
        match (n, program) {
            (4, Err(Error::Build { .. })) => {}
            (n, Ok(_)) if n != 4 => {}
            (n, other) => panic!("{n}: {other:?}"),
        }
    }
}

/// What comes in one call is checked as what comes alone.
#[test]
fn a_store_that_lies_or_fails_is_not_believed() {
    let own = Own::default();
    let driver = Simulated::new();
    let first = on(&driver, &own);
    first.programs(&Sde::new(), 0, &ten(&first));
    drop(first);
    {
        let mut kept = own.kept.lock().unwrap();
        let keys: Vec<_> = kept.keys().copied().collect();
        let other = kept[&keys[1]].clone();
        kept.get_mut(&keys[0]).unwrap().binary[6] ^= 1;
        kept.insert(keys[2], other);
    }
    let driver = Simulated::new();
    let second = on(&driver, &own);
    let programs = second.programs(&Sde::new(), 0, &ten(&second));
    for (n, program) in programs.iter().enumerate() {
        let names = program.as_ref().unwrap().kernel_names();
        assert_eq!(names, [format!("k{n}")]);
    }
    // Two were not fit, and were not when they were looked at again.
    let stats = second.stats();
    assert_eq!((stats.builds, stats.loads, stats.unfit), (2, 8, 4));
    assert_eq!((stats.replaced, driver.counts().damaged), (2, 0));
    *own.fails.lock().unwrap() = true;
    let driver = Simulated::new();
    let third = on(&driver, &own);
    let programs = third.programs(&Sde::new(), 0, &ten(&third));
    assert!(programs.iter().all(Result::is_ok));
    assert_eq!(driver.counts().builds, 10);
}

/// What was launched is put together: all in one call, and what there was no room for is not tried again.
#[test]
fn what_was_launched_is_kept_in_one_call() {
    let own = Own::default();
    let driver = Simulated::new();
    let told = Arc::new(Mutex::new(0));
    let observer = Arc::clone(&told);
    let context = quiet(&driver)
        .keep_in(own.clone())
        .observer(move |event: &Event| {
            *observer.lock().unwrap() += usize::from(matches!(event, Event::Kept { .. }));
        })
        .build()
        .unwrap();
    let sde = Sde::new();
    *own.room.lock().unwrap() = Some(0);
    launch_ten(&sde, &context);
    // There was no room when they were built, so they are not ours to keep.
    assert_eq!((context.keep_launched(), *told.lock().unwrap()), (0, 0));

    *own.room.lock().unwrap() = Some(7);
    sde.clean_cache("sde_opencl.Kernel", []).unwrap();
    sde.clean_cache("sde_opencl.ProgramBuild", []).unwrap();
    *own.fails.lock().unwrap() = true;
    launch_ten(&sde, &context);
    *own.fails.lock().unwrap() = false;
    own.calls();
    assert_eq!((context.keep_launched(), *told.lock().unwrap()), (7, 7));
    // Those that were left out are tried alone.
    assert_eq!(own.calls().1, [10, 1, 1, 1]);
    assert_eq!((context.keep_launched(), own.calls().1), (0, vec![]));
    let kept = own.kept.lock().unwrap();
    assert!(kept.values().all(|program| program.launched.len() == 1));
}

/// A store makes room for what is put. What there was none for in a batch, there may be for each.
#[test]
fn what_a_batch_had_no_room_for_is_put_alone() {
    let kept = folder();
    let driver = Simulated::new();
    driver.freeze_binaries();
    let settings = Settings::new().dir(kept.path()).capacity(300_000);
    let dir = KernelDir::open(settings).unwrap();
    let context = quiet(&driver).keep_in(dir).build().unwrap();
    let sde = Sde::new();
    let count = 40;
    for n in 0..count {
        let filling = "x".repeat(9_000);
        let spec = ProgramSpec::source(format!("kernel void k{n}() {{}} {filling}"));
        let program = context.describe(0, &spec).unwrap();
        let kernel = context.kernel(&sde, 0, &program, &format!("k{n}")).unwrap();
        kernel.launch().unwrap().enqueued();
    }
    assert_eq!(context.keep_launched(), count);
    assert_eq!(context.keep_launched(), 0);
}

/// One that could not be put alone is tried again, as one that could not be put at all.
#[test]
fn what_could_not_be_put_alone_is_tried_again() {
    let own = Own::default();
    let context = on(&Simulated::new(), &own);
    let sde = Sde::new();
    launch_ten(&sde, &context);
    own.kept.lock().unwrap().clear();
    *own.room.lock().unwrap() = Some(6);
    *own.fails_alone.lock().unwrap() = true;
    assert_eq!(context.keep_launched(), 6);
    *own.room.lock().unwrap() = None;
    *own.fails_alone.lock().unwrap() = false;
    assert_eq!(context.keep_launched(), 4);
}

/// Of two devices of equal identity each launched another kernel: each took the place of the other's binary for ever.
#[test]
fn twins_that_launch_different_kernels_do_not_replace_one_another() {
    let own = Own::default();
    let driver = Simulated::with(vec![device("twin", "1"), device("twin", "1")]);
    driver.freeze_binaries();
    let context = on(&driver, &own);
    let sde = Sde::new();
    for (device, name) in [(0, "copy"), (1, "move")] {
        let kernel = context.kernel(&sde, device, &copy(&context), name);
        kernel.unwrap().launch().unwrap().enqueued();
    }
    own.calls();
    assert_eq!(context.keep_launched(), 1);
    assert_eq!((context.keep_launched(), own.calls().1), (0, vec![1]));
    drop((sde, context));
    // Whoever loads it and launches what it lacks has both.
    let next = on(&driver, &own);
    let sde = Sde::new();
    let kernel = next.kernel(&sde, 0, &copy(&next), "move").unwrap();
    kernel.launch().unwrap().enqueued();
    assert_eq!(next.keep_launched(), 1);
    let kept = own.kept.lock().unwrap();
    assert_eq!(kept.values().next().unwrap().launched, ["copy", "move"]);
}

/// Each turn is an open file: held until the batch was put, they were more than a process may have.
#[test]
fn no_turn_is_held_when_a_batch_is_put() {
    #[derive(Clone, Default)]
    struct Turns {
        own: Own,
        held: Arc<AtomicUsize>,
        at_put: Arc<Mutex<Vec<usize>>>,
    }
    struct Held(Arc<AtomicUsize>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    impl KernelStore for Turns {
        fn get(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Option<StoredProgram>>, StoreError> {
            self.own.get(wanted)
        }
        fn put(&self, programs: &[StoredProgram]) -> Result<usize, StoreError> {
            self.at_put
                .lock()
                .unwrap()
                .push(self.held.load(Ordering::SeqCst));
            self.own.put(programs)
        }
        fn turn_at_once(&self, _: &Wanted<'_>) -> Option<Turn> {
            self.held.fetch_add(1, Ordering::SeqCst);
            Some(Turn {
                held: Some(Box::new(Held(Arc::clone(&self.held)))),
                waited: None,
            })
        }
        fn describe(&self) -> String {
            "a map with turns".to_owned()
        }
    }
    let store = Turns::default();
    let context = quiet(&Simulated::new()).keep_in(store.clone());
    let context = context.build().unwrap();
    let sde = Sde::new();
    launch_ten(&sde, &context);
    store.at_put.lock().unwrap().clear();
    assert_eq!(context.keep_launched(), 10);
    assert_eq!(*store.at_put.lock().unwrap(), [0]);
    assert_eq!(store.own.calls().1.last(), Some(&10));
}

/// It is the same program, whoever asked for it in which way.
#[test]
fn a_program_asked_for_twice_in_one_list_is_built_once() {
    let driver = Simulated::new();
    let context = context(&driver);
    let programs = vec![copy(&context); 5];
    let programs = context.programs(&Sde::new(), 0, &programs);
    assert!(programs.iter().all(Result::is_ok));
    assert_eq!(driver.counts().builds, 1);
}
