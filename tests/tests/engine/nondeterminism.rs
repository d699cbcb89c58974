//! Apps that give another result each time are recorded, never looked up, and so
//! are those that run them.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use sde::archiver::MemoryArchiver;
use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, ResultMap, ResultSpec, Sde, Slot, Source,
    inputs,
};
use sde_tests::{Counter, Gate};

use super::watched;

static DRAWN: AtomicU64 = AtomicU64::new(0);

#[sde::app(name = "chance.draw", nondeterministic)]
fn draw() -> u64 {
    DRAWN.fetch_add(1, Ordering::Relaxed)
}

#[sde::app(name = "chance.twice")]
fn twice(sde: &Handle) -> Result<u64, sde::Error> {
    Ok(2 * *draw.call(sde)?)
}

#[sde::app(name = "chance.outermost")]
fn outermost(sde: &Handle) -> Result<u64, sde::Error> {
    Ok(1 + *twice.call(sde)?)
}

/// What is in its slot decides whether it is deterministic.
#[derive(Fingerprint)]
struct Holder;

impl App for Holder {
    fn info(&self) -> AppInfo {
        AppInfo::new("chance.Holder", "1")
            .slot(Slot::new("source", draw))
            .result(ResultSpec::new::<u64>("drawn"))
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let drawn = sde
            .run(&sde.sub_app("source")?, inputs)?
            .get::<u64>("result")?;
        Ok(ResultMap::new().with("drawn", *drawn))
    }
}

#[test]
fn it_is_run_each_time_and_recorded() {
    let sde = Sde::new();
    let first = *draw.call(&sde).unwrap();
    assert_ne!(*draw.call(&sde).unwrap(), first);
    let records = sde_tests::records(&sde);
    assert_eq!(records.len(), 1);
    assert!(records[0].nondeterministic);
}

/// Nobody is given what another drew, so nobody waits for it.
#[test]
fn two_draw_at_once() {
    static DRAWING: LazyLock<Counter> = LazyLock::new(Counter::new);

    #[sde::app(name = "chance.two", nondeterministic)]
    fn two() -> u64 {
        let before = DRAWING.add();
        DRAWING.reach(2);
        before as u64
    }
    let sde = Sde::new();
    std::thread::scope(|scope| {
        let draws = [
            scope.spawn(|| two.call(&sde)),
            scope.spawn(|| two.call(&sde)),
        ];
        let [one, other] = draws.map(|drawn| drawn.join().unwrap().unwrap());
        assert_ne!(one, other);
    });
}

/// That what they waited for is of no use to them is known when it is there: from then on they do not wait for one another.
#[test]
fn those_who_waited_draw_at_once() {
    static DRAWING: LazyLock<Counter> = LazyLock::new(Counter::new);
    static FIRST: LazyLock<Gate> = LazyLock::new(Gate::new);

    #[sde::app(name = "chance.through")]
    fn through(sde: &Handle) -> Result<u64, sde::Error> {
        match DRAWING.add() {
            0 => FIRST.pass(),
            _ => DRAWING.reach(3),
        }
        draw.call(sde).map(|drawn| *drawn)
    }
    let (sde, watch) = watched();
    std::thread::scope(|scope| {
        let draws = || scope.spawn(|| through.call(&sde).unwrap());
        let first = draws();
        FIRST.arrived(1);
        let others = [draws(), draws()];
        watch.waiting("chance.through", 2);
        FIRST.open();
        let [one, other] = others.map(|drawn| drawn.join().unwrap());
        assert_ne!(one, other);
        first.join().unwrap();
    });
}

#[test]
fn it_is_known_through_a_slot_and_observed_through_a_callee() {
    let sde = Sde::new();
    let of = |sde: &Sde| {
        *sde.run(&Holder, &inputs! {})
            .unwrap()
            .get::<u64>("drawn")
            .unwrap()
    };
    assert_ne!(of(&sde), of(&sde));
    assert_ne!(
        *outermost.call(&sde).unwrap(),
        *outermost.call(&sde).unwrap()
    );
    assert!(
        sde_tests::records(&sde)
            .iter()
            .all(|record| record.nondeterministic)
    );
    assert_eq!(sde.stats().total.hits(), 0);
}

#[test]
fn the_flag_outlives_the_process() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let before = *outermost.call(&sde).unwrap();
    sde.finish().unwrap();
    let later = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let outcome = later.request(&outermost, &inputs! {}).run().unwrap();
    assert_eq!(outcome.source, Source::Computed);
    assert_ne!(*outcome.results.get::<u64>("result").unwrap(), before);
}

#[test]
fn a_replica_number_keeps_samples_apart() {
    #[sde::app(name = "chance.sample")]
    fn sample(seed: u64, replica: u32) -> u64 {
        seed ^ (u64::from(replica) << 32)
    }
    let sde = Sde::new();
    let got = sample.call(&sde, 7, 1).unwrap();
    assert_ne!(got, sample.call(&sde, 7, 2).unwrap());
    assert_eq!(sde.stats().apps["chance.sample"].computed, 2);
}
