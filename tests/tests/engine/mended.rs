//! Faults that were found by reading, each with its story.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use sde::{
    App, AppError, AppInfo, CancelToken, EventLog, Fingerprint, Handle, Inputs, Instance,
    MemoryArchiver, Observer, Parameter, Policy, ResultMap, ResultSpec, Sde, Slot, Source, Tag,
    Value, inputs,
};

#[derive(Fingerprint)]
struct Level;

impl App for Level {
    fn info(&self) -> AppInfo {
        AppInfo::new("mended.Level", "1")
            .parameter(Parameter::new("level", 1_i64))
            .result(ResultSpec::new::<i64>("result"))
    }
    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("result", *sde.parameter::<i64>("level")?))
    }
}

#[derive(Fingerprint)]
struct Holder;

impl App for Holder {
    fn info(&self) -> AppInfo {
        AppInfo::new("mended.Holder", "1")
            .slot(Slot::new("inner", Level))
            .result(ResultSpec::new::<i64>("result"))
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let inner = sde.run(&sde.sub_app("inner")?, inputs)?;
        Ok(ResultMap::new().with_value("result", inner.get::<i64>("result")?))
    }
}

sde::link_app!(Level, Holder);

/// Puts a registered name into a slot of an app that it runs by value.
#[sde::app(name = "mended.by_slot")]
fn by_slot(sde: &Handle) -> Result<i64, sde::Error> {
    let holder = Instance::new(Holder).with_sub_app("inner", "method")?;
    Ok(*sde.run(&holder, &inputs! {})?.get::<i64>("result")?)
}

/// A name in a slot of a by-value callee was not among what its caller depends on:
/// another app under that name left the caller's result standing.
#[test]
fn a_name_in_a_callees_slot_counts() {
    let store = MemoryArchiver::new();
    for (level, expected) in [
        (1, Source::Computed),
        (2, Source::Computed),
        (2, Source::Loaded),
    ] {
        let sde = Sde::builder().store(store.clone()).build().unwrap();
        let method = Instance::new(Level).set("level", level as i64).unwrap();
        sde.apps().register("method", method).unwrap();
        let outcome = sde.request(&by_slot, &inputs! {}).run().unwrap();
        assert_eq!(*outcome.results.get::<i64>("result").unwrap(), level as i64);
        assert_eq!(outcome.source, expected);
        sde.finish().unwrap();
    }
}

static RISKY_FAILS: AtomicU32 = AtomicU32::new(1);

#[sde::app(name = "mended.risky", failures = "transient")]
fn risky() -> Result<u32, AppError> {
    match RISKY_FAILS.load(Ordering::SeqCst) {
        0 => Ok(1),
        _ => Err(AppError::message("busy")),
    }
}

#[sde::app(name = "mended.careful")]
fn careful(sde: &Handle) -> u32 {
    risky.call(sde).map_or(0, |value| *value)
}

/// A caller that went on after a failure that may go away was remembered for ever.
#[test]
fn a_fallback_after_a_fleeting_failure_is_not_looked_up() {
    let sde = Sde::new();
    assert_eq!(*careful.call(&sde).unwrap(), 0);
    RISKY_FAILS.store(0, Ordering::SeqCst);
    assert_eq!(*careful.call(&sde).unwrap(), 1);
}

/// A refreshed result that was cleaned before it was saved gave way to the older
/// one in the store.
#[test]
fn an_older_stored_result_does_not_come_back() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    #[sde::app(name = "mended.count", version = "1")]
    fn count() -> u32 {
        COUNT.fetch_add(1, Ordering::SeqCst)
    }
    let sde = Sde::builder().store(MemoryArchiver::new()).build().unwrap();
    let run = |policy| {
        let outcome = sde
            .request(&count, &inputs! {})
            .policy(policy)
            .run()
            .unwrap();
        *outcome.results.get::<u32>("result").unwrap()
    };
    assert_eq!(run(Policy::Use), 0);
    sde.checkpoint().unwrap();
    assert_eq!(run(Policy::Refresh), 1);
    sde.clean_cache("mended.count", []).unwrap();
    assert_eq!(run(Policy::Use), 2);
}

/// Holds its body until all who were told to wait do so.
struct Gate(Barrier);

impl Observer for &'static Gate {
    fn observe(&self, event: &sde::Event) {
        if matches!(event, sde::Event::Waiting { app, .. } if &**app == "mended.fleeting_value") {
            self.0.wait();
        }
    }
}

static GATE: Gate = Gate(Barrier::new(4));

#[sde::app(name = "mended.fleeting_value", tags(no_cache))]
fn fleeting_value() -> Vec<u8> {
    // The fourth: three wait for this run, or are about to.
    GATE.0.wait();
    vec![7]
}

/// Those who waited for a result that is not kept found it gone and computed it one
/// after the other.
#[test]
fn a_result_that_is_not_kept_reaches_all_who_waited() {
    let log = EventLog::new();
    let sde = Sde::builder()
        .observer(&GATE)
        .observer(log.clone())
        .build()
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(*fleeting_value.call(&sde).unwrap(), [7]));
        }
    });
    assert_eq!(log.started("mended.fleeting_value"), 1);
}

#[derive(Fingerprint)]
struct TwoResults;

impl App for TwoResults {
    fn info(&self) -> AppInfo {
        AppInfo::new("mended.TwoResults", "1")
            .result(ResultSpec::new::<u32>("kept"))
            .result(ResultSpec::new::<u32>("large").tagged(Tag::Expendable))
    }
    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        // A state that a run for one caller alone must not find.
        assert!(sde.scratch::<u32>().load()?.is_none());
        sde.scratch::<u32>().save(1_u32)?;
        Ok(ResultMap::new().with("kept", 1_u32).with("large", 2_u32))
    }
}

/// A run that leaves the cache alone left its scratch to the next.
#[test]
fn bypassing_runs_share_no_scratch() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::EveryResult)
        .build()
        .unwrap();
    for _ in 0..3 {
        sde.request(&TwoResults, &inputs! {})
            .policy(Policy::Bypass)
            .run()
            .unwrap();
    }
    assert!(store.saved_scratch().is_empty());
}

/// Filling a gap replaced values that were held.
#[test]
fn filling_a_gap_leaves_what_is_held() {
    let sde = Sde::new();
    let before = sde.run(&TwoResults, &inputs! {}).unwrap();
    sde.clean_cache("mended.TwoResults", [Tag::Expendable])
        .unwrap();
    let after = sde.run_for(&TwoResults, &inputs! {}, &["large"]).unwrap();
    let kept = |map: &ResultMap| map.get::<u32>("kept").unwrap();
    assert!(Value::ptr_eq(&kept(&before), &kept(&after)));
    assert_eq!(*after.get::<u32>("large").unwrap(), 2);
}

/// A request that is cancelled before it begins computes nothing.
#[test]
fn a_cancelled_request_does_not_begin() {
    let token = CancelToken::new();
    token.cancel();
    let sde = Sde::new();
    let error = sde
        .request(&TwoResults, &inputs! {})
        .cancel(&token)
        .run()
        .unwrap_err();
    assert!(
        matches!(error.kind(), sde::ErrorKind::Cancelled { .. }),
        "{error}"
    );
}

/// An observer that panicked between claiming and computing left the key claimed for
/// ever: whoever asked next waited without end.
#[test]
fn an_observer_that_panics_holds_up_nobody() {
    let sde = Sde::builder()
        .observer(|event: &sde::Event| {
            assert!(!matches!(
                event,
                sde::Event::Stale { .. } | sde::Event::Started { .. }
            ));
        })
        .build()
        .unwrap();
    let made = sde.request(&TwoResults, &inputs! {}).run().unwrap();
    sde.invalidate(&made.key, "a test").unwrap();
    assert_eq!(
        sde.request(&TwoResults, &inputs! {}).run().unwrap().source,
        Source::Computed
    );
}

#[sde::app(name = "mended.permanent", failures = "permanent")]
fn permanent(sde: &Handle) -> Result<i64, sde::Error> {
    Ok(*sde.run("later", &inputs! {})?.get::<i64>("result")?)
}

/// A failure that was declared permanent outlived its cause.
#[test]
fn a_permanent_failure_lasts_as_long_as_its_cause() {
    let sde = Sde::new();
    assert!(permanent.call(&sde).is_err());
    sde.apps().register("later", Level).unwrap();
    assert_eq!(*permanent.call(&sde).unwrap(), 1);
}

#[sde::app(name = "mended.second_engine")]
fn second_engine(depth: u32) -> Result<u32, sde::Error> {
    match depth {
        0 => Ok(0),
        // The same run, but in an engine of its own.
        _ => Ok(1 + *second_engine.call(&Sde::new(), depth - 1)?),
    }
}

/// A second engine inside an app was taken for the first.
#[test]
fn two_engines_do_not_see_one_another() {
    #[sde::app(name = "mended.same_key")]
    fn same_key(first: bool) -> Result<bool, sde::Error> {
        static ONCE: AtomicU32 = AtomicU32::new(0);
        if ONCE.fetch_add(1, Ordering::SeqCst) == 0 {
            return Ok(*same_key.call(&Sde::new(), first)?);
        }
        Ok(first)
    }
    let sde = Sde::new();
    assert!(*same_key.call(&sde, true).unwrap());
    assert_eq!(*second_engine.call(&sde, 3).unwrap(), 3);
}

#[derive(Fingerprint)]
struct Twice;

impl App for Twice {
    fn info(&self) -> AppInfo {
        AppInfo::new("mended.Twice", "1")
            .parameter(Parameter::new("p", 1.0_f64).transparent())
            .parameter(Parameter::new("p", 2.0_f64))
            .result(ResultSpec::new::<f64>("result"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("result", 0.0_f64))
    }
}

/// A parameter declared twice was in the key by one declaration and out of it by the
/// other.
#[test]
fn an_app_that_contradicts_itself_is_refused() {
    let error = Sde::new().run(&Twice, &inputs! {}).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("parameter \"p\" is declared twice"),
        "{error}"
    );
}

/// A gigabyte given bare was hashed for the key, and once more for the record.
#[derive(Clone)]
struct Bulk(Vec<f64>);

static BULK_ENCODED: AtomicU32 = AtomicU32::new(0);

impl Fingerprint for Bulk {
    fn fingerprint(&self, to: &mut sde::Encoder<'_>) -> Result<(), sde::FingerprintError> {
        BULK_ENCODED.fetch_add(1, Ordering::SeqCst);
        self.0.fingerprint(to)
    }
}

#[sde::app(name = "mended.bulk")]
fn bulk(values: &Bulk, label: &str) -> usize {
    values.0.len() + label.len()
}

#[test]
fn what_is_long_is_hashed_once_for_a_miss() {
    let (values, sde) = (Bulk(vec![1.0; 1000]), Sde::new());
    let digest = *sde::key::commit(&values).unwrap().digest().as_bytes();
    BULK_ENCODED.store(0, Ordering::SeqCst);
    bulk.call(&sde, &values, "typed").unwrap();
    assert_eq!(BULK_ENCODED.load(Ordering::SeqCst), 1);
    let given = inputs! { values: values, label: "erased" };
    sde.run(&bulk, &given).unwrap();
    assert_eq!(BULK_ENCODED.load(Ordering::SeqCst), 2);
    for record in sde.records() {
        assert_eq!(record.inputs[0].digest, digest.into());
    }
}
