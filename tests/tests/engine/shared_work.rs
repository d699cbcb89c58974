//! Two engines with one store each stand for two processes: neither sees what the other does.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sde::archiver::{Announced, ArchiveError, Archiver, Batch, Holder, MemoryArchiver};
use sde::store::DirStore;
use sde::store::inspect::{Inspection, Item};
use sde::{
    AppInfo, Builder, CancelToken, ErrorKind, Event, Key, Observer, Policy, Sde, SharedWork,
    Source, Tag,
};
use sde_tests::{
    Counter, Gate, LIMIT, Made, Watch, Watchdog, forward, number, number_info, until, x, y,
};
use tempfile::{TempDir, tempdir};

/// One of the two.
pub fn process(store: &Path, watch: &Watch) -> Builder {
    let store = DirStore::open(store).unwrap();
    let builder = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .observer(watch.clone());
    builder.threads(1).shared_work(SharedWork::On)
}

/// Waits at the gate for 2, and takes long enough to be shared for all else.
fn squares(gate: Gate) -> Made {
    number("squares", move |_, n| {
        match n {
            2 => gate.pass(),
            _ => thread::sleep(Duration::from_millis(25)),
        }
        Ok(n * n)
    })
}

pub fn is_for_a_process(event: &Event) -> bool {
    matches!(event, Event::WaitingForProcess { .. })
}

/// Has one engine be at 2 while another does something, after which the first may go on.
fn beside_one_at_two(with: impl FnOnce(&Path, &Made, Gate)) -> (Sde, TempDir) {
    let _dog = Watchdog::new("work shared by two", LIMIT);
    let folder = tempdir().unwrap();
    let (gate, asks) = (Gate::new(), DirStore::open(folder.path()).unwrap());
    // A process waits for ten times as long, however slow the machine is.
    let app = squares(gate).taking(Duration::from_secs(60));
    let first = process(folder.path(), &Watch::new()).build().unwrap();
    thread::scope(|scope| {
        let run = scope.spawn(|| first.run(&app, &x(2)).unwrap());
        gate.arrived(1);
        let key = first.peek(&app, &x(2)).unwrap().key();
        until("it is announced", || asks.announced_by(&key).is_some());
        with(folder.path(), &app, gate);
        gate.open();
        assert_eq!(y(&run.join().unwrap()).unwrap(), 4);
        until("it is given up", || asks.announced_by(&key).is_none());
    });
    (first, folder)
}

#[test]
fn what_another_is_at_comes_last() {
    beside_one_at_two(|store, app, gate| {
        let watch = Watch::new();
        let second = process(store, &watch).build().unwrap();
        let list: Vec<_> = (1..4).map(x).collect();
        thread::scope(|scope| {
            let run = scope.spawn(|| second.par_map(app, &list));
            watch.reach(1, is_for_a_process);
            assert_eq!(watch.sources("squares"), [Source::Computed; 2]);
            gate.open();
            let results = run.join();
            let squares = results
                .unwrap()
                .into_iter()
                .map(|one| y(&one.unwrap()).unwrap());
            assert_eq!(squares.collect::<Vec<_>>(), [1, 4, 9]);
        });
        let of = second.stats().apps["squares"];
        assert_eq!((of.computed, of.loads, of.waited_for_others), (2, 1, 1));
        assert_eq!((of.failures, of.beside_others), (0, 0));
        assert!(second.stats().to_string().contains("of others"));
    });
}

#[sde::app]
fn doubled(x: u64) -> u64 {
    // Whatever this process has to do for it takes longer.
    thread::sleep(Duration::from_millis(25));
    2 * x
}

/// Two that go through one stream of items, which begins at the same place for both.
#[test]
fn items_that_come_one_by_one_are_shared() {
    let folder = tempdir().unwrap();
    let engines = [(); 2].map(|()| process(folder.path(), &Watch::new()).build().unwrap());
    doubled.call(&engines[0], 1000).unwrap();
    doubled.call(&engines[1], 1001).unwrap();
    thread::scope(|scope| {
        for sde in &engines {
            scope.spawn(|| {
                let mut sum = 0;
                let each = |_, value: sde::Value<u64>| sum += *value;
                doubled.par_call_each(sde, 0..40, each).unwrap();
                assert_eq!(sum, 1560);
            });
        }
    });
    let computed = engines.each_ref().map(|sde| sde.stats().total.computed);
    assert!(computed.iter().sum::<u64>() <= 2 + 44, "{computed:?}");
}

/// An app that says that it takes long.
fn long() -> Made {
    number("long", |_, _| Ok(7)).taking(Duration::from_secs(1))
}

/// A store to which something happens when a key is announced, and that can announce nothing then.
struct Meanwhile<F>(DirStore, Mutex<Option<F>>);

impl<F: FnOnce() + Send> Archiver for Meanwhile<F> {
    forward!(0: save, find, find_scratch, marks, describe);

    fn announce(&self, _: &Key) -> Announced {
        let happens = self.1.lock().unwrap().take();
        happens.expect("it is announced once")();
        Announced::Unsupported
    }
    fn catch_up(&self, spares: Duration) {
        self.0.catch_up(spares);
    }
}

/// A store that does something before an announcement that comes late. The count of its `Arc` tells how many hold the store, or
/// announce with it.
struct Slow<F>(DirStore, F, Arc<()>);

impl<F: Fn() + Send + Sync> Archiver for Slow<F> {
    forward!(0: save, find, find_scratch, marks, describe);

    fn announce(&self, key: &Key) -> Announced {
        let _in_it = Arc::clone(&self.2);
        if thread::current().name() == Some("sde-share") {
            (self.1)();
        }
        self.0.announce(key)
    }
    fn announced_by(&self, key: &Key) -> Option<Holder> {
        self.0.announced_by(key)
    }
    fn write_through(&self, batch: &Batch) -> Result<(), ArchiveError> {
        self.0.write_through(batch)
    }
}

/// How many frames a store has of each key.
fn frames(store: &Path) -> BTreeMap<Key, usize> {
    let mut frames = BTreeMap::new();
    for segment in Inspection::open(store).unwrap().segments().unwrap() {
        let each = |item| {
            if let Item::Entry(entry) = item {
                *frames.entry(entry.record.key).or_default() += 1;
            }
        };
        segment.walk(each).unwrap();
    }
    frames
}

/// Found by using it: of ten results the store had eleven frames. A checkpoint came before the thread that shares results had written the last one, which then
/// wrote what was saved.
#[test]
fn what_was_saved_is_not_written_once_more_for_others() {
    let _dog = Watchdog::new("a result saved before it is shared", LIMIT);
    let (folder, late, body) = (tempdir().unwrap(), Gate::new(), Gate::new());
    let store = DirStore::open(folder.path()).unwrap();
    let store = Slow(store, move || late.pass(), Arc::default());
    let builder = Sde::builder()
        .shared_work(SharedWork::On)
        .save(sde::SavePolicy::OnRequest);
    let sde = builder.store(store).build().unwrap();
    let (app, asks) = (squares(body), DirStore::open(folder.path()).unwrap());
    thread::scope(|scope| {
        // It keeps the thread that shares results busy.
        scope.spawn(|| sde.run(&app, &x(2)).unwrap());
        late.arrived(1);
        sde.run(&long(), &x(2)).unwrap();
        let key = sde.peek(&long(), &x(2)).unwrap().key();
        sde.checkpoint().unwrap();
        late.open();
        body.open();
        until("it is given up", || asks.announced_by(&key).is_none());
        assert_eq!(frames(folder.path())[&key], 1);
    });
    sde.checkpoint().unwrap();
    assert!(frames(folder.path()).into_values().eq([1, 1]));
}

/// An observer that opens a gate when its engine ends.
struct OpensWhenGone(Gate);

impl Observer for OpensWhenGone {
    fn observe(&self, _: &Event) {}
}

impl Drop for OpensWhenGone {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// An engine that ends waits for its thread that announces; without that, the thread makes a store's folder anew that the program
/// has removed.
#[test]
fn nobody_uses_the_store_of_an_engine_that_is_gone() {
    let _dog = Watchdog::new("the end of an engine that announces", LIMIT);
    let (folder, late, body) = (tempdir().unwrap(), Gate::new(), Gate::new());
    let (used, app) = (Arc::new(()), squares(body));
    let store = DirStore::open(folder.path()).unwrap();
    let store = Slow(store, move || late.pass(), Arc::clone(&used));
    let builder = Sde::builder()
        .shared_work(SharedWork::On)
        .save(sde::SavePolicy::OnRequest);
    let builder = builder.observer(OpensWhenGone(late));
    let sde = builder.store(store).build().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| sde.run(&app, &x(2)).unwrap());
        late.arrived(1);
        body.open();
    });
    drop(sde);
    assert_eq!(Arc::strong_count(&used), 1);
}

/// The end of an engine waited for the thread that announces, which a panic of the store had ended.
#[test]
fn an_engine_ends_whose_store_panicked_at_an_announcement() {
    let _dog = Watchdog::new("the end of an engine whose store panicked", LIMIT);
    let (folder, panics, body) = (tempdir().unwrap(), Counter::new(), Gate::new());
    let app = squares(body);
    let store = DirStore::open(folder.path()).unwrap();
    let first = move || assert_eq!(panics.add(), usize::MAX, "a test");
    let builder = Sde::builder()
        .shared_work(SharedWork::On)
        .save(sde::SavePolicy::OnRequest);
    let sde = builder.store(Slow(store, first, Arc::default()));
    let sde = sde.build().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| sde.run(&app, &x(2)).unwrap());
        panics.reach(1);
        body.open();
    });
    drop(sde);
}

/// Found by use: ten results made eleven frames, since a checkpoint and the thread that shares results both wrote the last.
#[test]
fn ten_results_are_ten_frames() {
    let folder = tempdir().unwrap();
    let sde = process(folder.path(), &Watch::new()).build().unwrap();
    for x in 0..10 {
        doubled.call(&sde, x).unwrap();
    }
    sde.checkpoint().unwrap();
    drop(sde);
    assert!(frames(folder.path()).into_values().eq([1; 10]));
}

/// Eight processes that came to one key after another tried to announce it so often that they gave that up, and computed what was there by then.
#[test]
fn what_can_not_be_announced_is_looked_for_once_more() {
    let folder = tempdir().unwrap();
    let other = process(folder.path(), &Watch::new()).build().unwrap();
    let computes = move || {
        other.run(&long(), &x(2)).unwrap();
        other.checkpoint().unwrap();
    };
    let store = DirStore::open(folder.path()).unwrap();
    let builder = Sde::builder()
        .shared_work(SharedWork::On)
        .save(sde::SavePolicy::OnRequest);
    let sde = builder.store(Meanwhile(store, Mutex::new(Some(computes))));
    let sde = sde.build().unwrap();
    assert_eq!(y(&sde.run(&long(), &x(2)).unwrap()).unwrap(), 7);
    let total = sde.stats().total;
    assert_eq!((total.computed, total.loads), (0, 1));
}

#[test]
fn who_waits_can_give_up() {
    beside_one_at_two(|store, app, _| {
        let watch = Watch::new();
        let second = process(store, &watch).build().unwrap();
        let token = CancelToken::new();
        thread::scope(|scope| {
            let run = scope.spawn(|| second.with_cancel(&token).request(app, &x(2)).run());
            watch.reach(1, is_for_a_process);
            token.cancel();
            let error = run.join().unwrap().unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Cancelled { .. }));
        });
    });
}

/// A store in which another process is at each key without end. It counts how often that was asked.
struct Busy(MemoryArchiver, Counter);

impl Archiver for Busy {
    forward!(0: save, find, find_scratch, marks, describe);

    fn announced_by(&self, _: &Key) -> Option<Holder> {
        self.1.add();
        Some(Holder::new("far", 7))
    }
}

/// Found by reading: a waiter looked every 20 ms. A thousand tasks that waited for one made 50,000 rounds of system calls a second.
#[test]
fn who_waits_looks_less_and_less_often() {
    let looks = Counter::new();
    let builder = Sde::builder().shared_work(SharedWork::Within(Duration::from_secs(1)));
    let builder = builder.save(sde::SavePolicy::OnRequest);
    let store = Busy(MemoryArchiver::new(), looks);
    let sde = builder.store(store).build().unwrap();
    sde.run(&squares(Gate::new()), &x(3)).unwrap();
    assert_eq!(sde.stats().total.beside_others, 1);
    // When it is called, when it begins to wait, then after 20 ms, 40 and so on, and at the end.
    assert!(looks.get() <= 8, "{} looks in a second", looks.get());
}

/// Which of them waits for the other process, and which for that one, is chance.
#[test]
fn who_gives_up_takes_nobody_with_it() {
    (0..10).for_each(|_| five_of_six_give_up());
}

fn five_of_six_give_up() {
    beside_one_at_two(|store, app, gate| {
        let watch = Watch::new();
        let second = process(store, &watch).build().unwrap();
        let call = |token: &CancelToken| second.with_cancel(token).request(app, &x(2)).run();
        let tokens = [(); 6].map(|()| CancelToken::new());
        thread::scope(|scope| {
            let runs = tokens.each_ref().map(|token| scope.spawn(|| call(token)));
            watch.reach(5, |event| matches!(event, Event::Waiting { .. }));
            let [last, others @ ..] = runs;
            for (run, token) in others.into_iter().zip(&tokens[1..]) {
                token.cancel();
                let error = run.join().unwrap().unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Cancelled { .. }));
            }
            gate.open();
            assert_eq!(y(&last.join().unwrap().unwrap().results).unwrap(), 4);
        });
    });
}

/// Both results are saved, and each process keeps its own.
#[test]
fn no_wait_is_without_end() {
    for on_rayon in [false, true] {
        let mut kept = None;
        let (first, folder) = beside_one_at_two(|store, app, gate| {
            let builder = process(store, &Watch::new()).rayon_patience(Duration::ZERO);
            let longest = Duration::from_secs(if on_rayon { 3600 } else { 0 });
            let builder = builder.shared_work(SharedWork::Within(longest));
            let second = builder.build().unwrap();
            thread::scope(|scope| {
                let call = || second.request(app, &x(2)).run().unwrap();
                let run = scope.spawn(move || match on_rayon {
                    true => rayon::scope(|_| call()),
                    false => call(),
                });
                gate.arrived(2);
                gate.open();
                kept = Some(run.join().unwrap().made_by);
            });
            assert_eq!(second.stats().total.beside_others, 1);
            assert_eq!(Some(sde_tests::records(&second)[0].run), kept);
            second.finish().unwrap();
        });
        assert_ne!(Some(sde_tests::records(&first)[0].run), kept);
        first.finish().unwrap();
        let later = process(folder.path(), &Watch::new()).build().unwrap();
        let outcome = later.request(&squares(Gate::new()), &x(2)).run().unwrap();
        assert_eq!(outcome.source, Source::Loaded);
    }
}

#[test]
fn what_is_of_no_use_to_others_is_not_announced() {
    let result = sde::ResultSpec::new::<u64>("y").tagged(Tag::Expendable);
    let expendable = AppInfo::new("expendable", "1").result(result);
    let varies = number_info("varies", "1").nondeterministic();
    let gate = Gate::new();
    let apps = [
        squares(gate).described(|_| expendable),
        squares(gate).described(|_| varies),
        squares(gate),
    ];
    let policies = [Policy::Use, Policy::Use, Policy::Refresh];
    let folder = tempdir().unwrap();
    let sde = process(folder.path(), &Watch::new()).build().unwrap();
    let asks = DirStore::open(folder.path()).unwrap();
    thread::scope(|scope| {
        for (app, policy) in apps.iter().zip(policies) {
            let sde = &sde;
            scope.spawn(move || sde.request(app, &x(2)).policy(policy).run().unwrap());
        }
        gate.arrived(3);
        // Another that is begun later is.
        let mut later = 0;
        until("another is announced", || {
            later += 1;
            doubled.call(&sde, later).unwrap();
            folder.path().join("work").exists()
        });
        for app in &apps {
            let key = sde.peek(app, &x(2)).unwrap().key();
            assert_eq!(asks.announced_by(&key), None);
        }
        gate.open();
    });
}

/// Others had better take part in what a run is made of, unless it is known to take long itself.
#[test]
fn what_is_made_of_what_is_announced_is_not_announced() {
    let _dog = Watchdog::new("nested work", LIMIT);
    let (folder, begun, gate) = (tempdir().unwrap(), Gate::new(), Gate::new());
    let inner = squares(gate);
    let sum = number("sum", move |sde, _| {
        begun.pass();
        Ok(y(&sde.run(&inner, &x(2))?)?)
    });
    let sde = process(folder.path(), &Watch::new()).build().unwrap();
    let asks = DirStore::open(folder.path()).unwrap();
    let outer = sde.peek(&sum, &x(1)).unwrap().key();
    let inner = sde.peek(&squares(gate), &x(2)).unwrap().key();
    thread::scope(|scope| {
        scope.spawn(|| sde.run(&sum, &x(1)).unwrap());
        until("the outer is announced", || {
            asks.announced_by(&outer).is_some()
        });
        begun.open();
        until("the inner is announced", || {
            asks.announced_by(&inner).is_some()
        });
        until("the outer is not", || asks.announced_by(&outer).is_none());
        gate.open();
    });
}

#[test]
fn nothing_is_announced_unless_that_is_asked_for() {
    let folder = tempdir().unwrap();
    let builder = process(folder.path(), &Watch::new());
    let sde = builder.shared_work(SharedWork::Off).build().unwrap();
    doubled.par_call(&sde, 0..2).unwrap();
    assert!(!folder.path().join("work").exists());
}

/// A job that has no time left for an item does not wait for it either.
#[test]
fn without_time_nobody_waits_for_another_process() {
    beside_one_at_two(|store, app, gate| {
        let builder = process(store, &Watch::new()).time_limit(Duration::ZERO);
        let second = builder.build().unwrap();
        let all = second.par_map(app, &[x(1), x(2)]);
        for one in &all {
            sde_tests::assert_kind!(one.as_ref().unwrap_err(), NotStarted);
        }
        gate.open();
    });
}
