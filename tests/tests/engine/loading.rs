//! Taking another store, with runs going on.

use sde::{AppInfo, ErrorKind, MemoryArchiver, Policy, ResultMap, ResultSpec, Sde, Source, inputs};
use sde_tests::{Gate, LIMIT, Watchdog, made, number, x, y};

/// A result that tells when it is let go, and holds up whoever lets it go.
struct Held(Gate);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.pass();
    }
}

/// The marks of the new store were taken before the entries of the old one were
/// forgotten: in between, an entry that was marked in the old one served again.
#[test]
fn what_the_old_store_marked_is_not_used_while_another_is_taken() {
    let _dog = Watchdog::new("another store", LIMIT);
    let sde = Sde::builder()
        .store(MemoryArchiver::new())
        .build()
        .expect("a store");
    let gate = Gate::new();
    let info = AppInfo::new("loading.holder", "1").result(ResultSpec::unsaved::<Held>("held"));
    let holder = made(info, {
        let gate = gate.clone();
        move |_, _| Ok(ResultMap::new().with("held", Held(gate.clone())))
    });
    // Its cache is emptied first.
    drop(sde.run(&holder, &inputs! {}).expect("no error"));
    let marked = number("loading.marked", |_, n| Ok(n + 1));
    let outcome = sde.request(&marked, &x(1)).run().expect("no error");
    sde.invalidate(&outcome.key, "a test").expect("an entry");

    std::thread::scope(|scope| {
        let loading = scope.spawn(|| sde.load(MemoryArchiver::new()));
        gate.arrived(1);
        let inputs = x(1);
        let request = sde.request(&marked, &inputs);
        let remembered = request.policy(Policy::OnlyIfRemembered).run();
        // First: what fails here must not leave the other thread waiting.
        gate.open();
        loading.join().expect("no panic").expect("a store");
        let error = remembered.expect_err("it is marked");
        assert!(
            matches!(error.kind(), ErrorKind::NotRemembered { .. }),
            "{error}"
        );
    });
    // Nobody marked it in the new store.
    let again = sde.request(&marked, &x(1)).run().expect("no error");
    assert_eq!(again.source, Source::Computed);
    let again = sde.request(&marked, &x(1)).run().expect("no error");
    assert_eq!(
        (again.source, y(&again.results).expect("a result")),
        (Source::LastValue, 2)
    );
}

/// A computation that was marked in the old store alone may be used from the new one.
#[test]
fn what_the_new_store_says_counts_afterwards() {
    let old = MemoryArchiver::new();
    let app = number("loading.app", |_, n| Ok(n + 1));
    let sde = Sde::builder().store(old.clone()).build().expect("a store");
    let ask = || sde.request(&app, &x(1)).run().expect("no error");
    let made = ask();
    sde.finish().expect("saved");
    let new = old.archive_only();
    sde.invalidate(&made.key, "a test").expect("an entry");
    sde.load(new.clone()).expect("a store");
    let loaded = ask();
    assert_eq!(
        (loaded.source, loaded.made_by),
        (Source::Loaded, made.made_by)
    );

    sde.invalidate(&made.key, "a test").expect("an entry");
    sde.checkpoint().expect("saved");
    sde.load(MemoryArchiver::new()).expect("a store");
    sde.load(new).expect("a store");
    assert_eq!(ask().source, Source::Computed);
}
