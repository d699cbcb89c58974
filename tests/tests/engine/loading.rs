//! Taking another store, with runs going on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use sde::archiver::{Batch, MemoryArchiver};
use sde::{AppInfo, Peek, Policy, ResultMap, ResultSpec, SavePolicy, Sde, Source, inputs};
use sde_tests::{Before, Gate, LIMIT, Watchdog, assert_kind, made, number, number_info, x, y};

/// A result that tells when it is let go, and holds up the thread that lets it go.
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
    let builder = Sde::builder()
        .store(MemoryArchiver::new())
        .save(SavePolicy::OnRequest);
    let sde = builder.build().expect("a store");
    let gate = Gate::new();
    let info = AppInfo::new("loading.holder", "1").result(ResultSpec::unsaved::<Held>("held"));
    let holder = made(info, move |_, _| {
        Ok(ResultMap::new().with("held", Held(gate)))
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
        assert_kind!(error, NotRemembered);
    });
    // Nobody marked it in the new store.
    let again = sde.request(&marked, &x(1)).run().expect("no error");
    assert_eq!(again.source, Source::Computed);
    let again = sde.request(&marked, &x(1)).run().expect("no error");
    let got = (again.source, y(&again.results).expect("a result"));
    assert_eq!(got, (Source::Memory, 2));
}

/// A computation that was marked in the old store alone may be used from the new one.
#[test]
fn what_the_new_store_says_counts_afterwards() {
    let old = MemoryArchiver::new();
    let app = number("loading.app", |_, n| Ok(n + 1));
    let sde = Sde::builder()
        .store(old.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .expect("a store");
    let ask = || sde.request(&app, &x(1)).run().expect("no error");
    let made = ask();
    sde.finish().expect("saved");
    let new = old.archive_only();
    sde.invalidate(&made.key, "a test").expect("an entry");
    sde.load(new.clone()).expect("a store");
    let loaded = ask();
    let got = (loaded.source, loaded.made_by);
    assert_eq!(got, (Source::Loaded, made.made_by));

    sde.invalidate(&made.key, "a test").expect("an entry");
    sde.checkpoint().expect("saved");
    sde.load(MemoryArchiver::new()).expect("a store");
    sde.load(new).expect("a store");
    assert_eq!(ask().source, Source::Computed);
}

/// Found by reading: a stored result was read and decoded before it was found that an app that it called is another now.
#[test]
fn what_is_stale_is_not_read() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(from = "u64")]
    struct Counted(u64);
    impl From<u64> for Counted {
        fn from(n: u64) -> Self {
            READ.fetch_add(1, Ordering::Relaxed);
            Self(n)
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = |version| {
        let store = sde::store::DirStore::open(folder.path()).expect("a store");
        let sde = Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .build()
            .expect("a store");
        let callee = number("loading.callee", |_, n| Ok(n))
            .described(|_| number_info("loading.callee", version));
        // It is known which one this program has.
        sde.run(&callee, &x(0)).expect("no error");
        let info = AppInfo::new("loading.caller", "1").result(ResultSpec::new::<Counted>("y"));
        let caller = made(info, move |sde, inputs| {
            let y = y(&sde.run(&callee, inputs)?)?;
            Ok(ResultMap::new().with("y", Counted(y)))
        });
        let outcome = sde.request(&caller, &x(7)).names(&["y"]).run();
        sde.finish().expect("saved");
        outcome.expect("no error").source
    };
    assert_eq!(program("1"), Source::Computed);
    assert_eq!(program("1"), Source::Loaded);
    let read = READ.load(Ordering::Relaxed);
    assert_eq!(program("2"), Source::Computed);
    assert_eq!(READ.load(Ordering::Relaxed), read);
}

#[test]
fn another_store_is_taken_and_what_was_there_forgotten() {
    let full = MemoryArchiver::new();
    let app = number("loading.app", |_, n| Ok(n + 1));
    let sde = Sde::builder()
        .store(full.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .expect("a store");
    let made = sde.request(&app, &x(1)).run().expect("no error");
    sde.finish().expect("saved");
    sde.load(MemoryArchiver::new()).expect("a store");
    let peek = || sde.peek(&app, &x(1)).expect("a key");
    assert!(matches!(peek(), Peek::Miss { .. }));
    sde.load(full).expect("a store");
    assert!(matches!(peek(), Peek::Load { made_by, .. } if made_by == made.made_by));
    let again = sde.request(&app, &x(1)).run().expect("no error");
    assert_eq!(again.made_by, made.made_by);
}

/// Found by an attack: the parts of a long save that came after `load` went to the old store, and left the lists of the new one. A
/// mark among them was lost, and what was invalidated was loaded.
#[test]
fn what_is_new_after_a_load_goes_to_no_store_that_a_save_still_writes_to() {
    let _dog = Watchdog::new("another store during a save", LIMIT);
    let app = number("loading.during_a_save", |_, n| Ok(n + 1));
    let new = MemoryArchiver::new();
    let filled = Sde::builder()
        .store(new.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let key = filled.request(&app, &x(7)).run().unwrap().key;
    filled.finish().unwrap();
    let job: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>> = Arc::default();
    let (saves, jobs) = (AtomicUsize::new(0), Arc::clone(&job));
    let before = move |_: &Batch| {
        if saves.fetch_add(1, Ordering::Relaxed) == 1 {
            std::thread::scope(|scope| drop(scope.spawn(|| jobs.get().unwrap()())));
        }
        Ok(())
    };
    let old = Before(MemoryArchiver::new(), before);
    let builder = Sde::builder().store(old).save(SavePolicy::OnRequest);
    let sde = builder.build().unwrap();
    (100..500).for_each(|n| drop(sde.run(&app, &x(n)).unwrap()));
    let (other, to) = (sde.clone(), new.clone());
    let load = move || {
        other.load(to.clone()).unwrap();
        other.invalidate(&key, "a test").unwrap();
        (1000..1010).for_each(|n| drop(other.run(&app, &x(n)).unwrap()));
    };
    assert!(job.set(Box::new(load)).is_ok());
    sde.checkpoint().unwrap();
    sde.finish().unwrap();
    let later = Sde::builder()
        .store(new)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let app = number("loading.during_a_save", |_, n| Ok(n + 1));
    let source = |n| later.request(&app, &x(n)).run().unwrap().source;
    assert_eq!(source(7), Source::Computed);
    assert!((1000..1010).all(|n| source(n) == Source::Loaded));
}
