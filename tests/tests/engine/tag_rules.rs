//! What follows from tags: gaps that are filled, values that live elsewhere, and what an app may
//! not say or return.

use sde::{
    App, AppInfo, DistArray, Error, ErrorKind, Event, EventLog, Handle, Observer, Parameter,
    ResultMap, ResultSpec, Sde, Tag, Tags, Value, inputs,
};
use sde_tests::{Made, assert_kind, made, says};

/// An app with one result of each kind.
fn kinds() -> Made {
    let result = |name, tags: Tags| ResultSpec::new::<Vec<u64>>(name).tagged(tags);
    let info = AppInfo::new("kinds", "1")
        .result(result("plain", Tags::NONE))
        .result(result("passing", Tag::Expendable.into()))
        .result(result("huge", Tag::NoCache.into()));
    made(info, |_, _| {
        let value = |n: u64| vec![n];
        Ok(ResultMap::new()
            .with("plain", value(1))
            .with("passing", value(2))
            .with("huge", value(3)))
    })
}

fn value(map: &ResultMap, name: &str) -> Result<Value<Vec<u64>>, Error> {
    map.get(name)
}

#[test]
fn a_result_that_is_not_kept_lives_while_somebody_holds_it() {
    let (sde, app) = (Sde::new(), kinds());
    let run = || sde.run(&app, &inputs! {}).unwrap();
    let held = value(&run(), "huge").unwrap();
    let again = value(&run(), "huge").unwrap();
    assert!(Value::ptr_eq(&held, &again));
    drop((held, again));
    let error = value(&run(), "huge").unwrap_err();
    assert_kind!(error, Gone);
    let text = format!("{error:#}");
    says(&text, "is tagged no_cache");
    says(&text, "request(&app, &inputs).names(&[\"huge\"]).run()?");
    assert_eq!(sde.stats().total.computed, 1);
}

/// The last of several callers let go of the value between the look that found it there and the one
/// that was to share it: the call failed, or gave a map without it.
#[test]
fn what_is_not_kept_is_given_to_all_who_ask_at_once() {
    #[sde::app(name = "tag_rules.fleeting", tags(no_cache))]
    fn fleeting(n: u64) -> u64 {
        n
    }
    const CALLS: usize = 30_000;
    let (sde, app) = (Sde::new(), kinds());
    let ask = || {
        for _ in 0..CALLS {
            let map = sde
                .request(&app, &inputs! {})
                .names(&["huge"])
                .run()
                .unwrap()
                .results;
            assert_eq!(*value(&map, "huge").unwrap(), [3]);
            drop(map);
            assert_eq!(*fleeting.call(&sde, 7).unwrap(), 7);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(ask);
        }
    });
}

#[test]
fn only_gaps_are_filled() {
    let (sde, app) = (Sde::new(), kinds());
    let first = sde.run(&app, &inputs! {}).unwrap();
    let plain = value(&first, "plain").unwrap();
    let passing = value(&first, "passing").unwrap();
    drop(first);
    let run_for = |names: &[&str]| {
        sde.request(&app, &inputs! {})
            .names(names)
            .run()
            .unwrap()
            .results
    };
    // Nothing is missing of these.
    run_for(&["plain", "passing"]);
    assert_eq!(sde.stats().total.computed, 1);
    let filled = run_for(&["huge"]);
    assert_eq!(*value(&filled, "huge").unwrap(), [3]);
    assert_eq!(sde.stats().total.computed, 2);
    assert!(Value::ptr_eq(&plain, &value(&filled, "plain").unwrap()));
    assert!(Value::ptr_eq(&passing, &value(&filled, "passing").unwrap()));
    sde.clear_tagged("kinds", [Tag::Expendable]).unwrap();
    let filled = run_for(&["passing"]);
    assert_eq!(sde.stats().total.computed, 3);
    assert!(Value::ptr_eq(&plain, &value(&filled, "plain").unwrap()));
    assert!(!Value::ptr_eq(
        &passing,
        &value(&filled, "passing").unwrap()
    ));
}

#[test]
fn names_that_the_app_does_not_return() {
    let (sde, app) = (Sde::new(), kinds());
    for policy_names in [&["hgue"][..], &["plain", "hgue"]] {
        let error = sde
            .request(&app, &inputs! {})
            .names(policy_names)
            .run()
            .unwrap_err();
        assert_kind!(error, UnknownName);
        let text = format!("{error:#}");
        says(&text, "no result \"hgue\"");
        says(&text, "it has: plain, passing, huge");
    }
    assert_eq!(sde.stats().total.computed, 0);
}

/// What comes of publishing one result under this declaration.
fn publish(spec: ResultSpec, map: ResultMap) -> Result<ResultMap, Error> {
    let app = made(AppInfo::new("app", "1").result(spec), move |_, _| {
        Ok(map.clone())
    });
    Sde::new().run(&app, &inputs! {})
}

fn refusal(spec: ResultSpec, map: ResultMap) -> String {
    let error = publish(spec, map).unwrap_err();
    // What is described wrong, or returned other than described.
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Refused { .. } | ErrorKind::Undeclared { .. }
        ),
        "{error}"
    );
    format!("{error:#}")
}

#[test]
fn tags_that_exclude_one_another() {
    let kept = [Tag::Intermediate, Tag::Expendable, Tag::NoCache];
    let map = || ResultMap::new().with("r", 1_u64);
    for a in kept {
        for b in kept.into_iter().filter(|b| *b != a) {
            let text = refusal(ResultSpec::new::<u64>("r").tagged(a | b), map());
            says(&text, "exclude one another");
            // The same, said by the run and not by the description.
            let said = ResultMap::new().with_tagged("r", 1_u64, a | b);
            let text = refusal(ResultSpec::new::<u64>("r"), said);
            assert!(text.contains(a.name()) && text.contains(b.name()), "{text}");
        }
        publish(ResultSpec::new::<u64>("r").tagged(a), map()).unwrap();
    }
}

/// A tag does not make parts of what is whole, nor a tag that is left out a whole of parts.
#[test]
fn what_is_declared_to_have_parts_is_tagged_so_and_nothing_else() {
    let whole = || ResultSpec::new::<u64>("r");
    let parts = || ResultSpec::distributed::<DistArray<u64>>("r");
    for tags in [
        Tag::Distributed.into(),
        Tag::Distributed | Tag::Intermediate,
    ] {
        let map = ResultMap::new().with("r", 1_u64);
        let text = refusal(whole().tagged(tags), map);
        says(&text, "how a u64 is put together");
        let map = ResultMap::new().with_tagged("r", 1_u64, tags);
        let text = refusal(whole(), map);
        says(&text, "how a u64 is put together");
    }
    let text = refusal(parts(), ResultMap::new());
    says(&text, "the app is not `distributed`");
    let got = parts().tagged(Tag::Intermediate).tags();
    assert_eq!(got, Tag::Distributed | Tag::Intermediate);
    let info = AppInfo::new("app", "1").distributed().result(parts());
    let app = made(info, |sde, _| {
        let array = DistArray::from_fn(sde, &[1], |_| 2_u64)?;
        Ok(ResultMap::new().with_tagged("r", array, Tag::Expendable))
    });
    let made = Sde::new().run(&app, &inputs! {}).unwrap();
    assert_eq!(made.tags("r"), Some(Tag::Distributed | Tag::Expendable));
}

#[test]
fn a_result_that_cannot_be_saved_must_not_have_to_be() {
    let spec = || ResultSpec::unsaved::<std::sync::Mutex<u8>>("r");
    let map = || ResultMap::new().with("r", std::sync::Mutex::new(1_u8));
    for tags in [Tag::Expendable, Tag::NoCache] {
        publish(spec().tagged(tags), map()).unwrap();
    }
    publish(spec(), map()).unwrap();
    for tags in [Tags::NONE, Tag::Intermediate.into()] {
        let text = refusal(spec().tagged(tags), map());
        says(&text, "can't be saved");
    }
}

#[test]
fn what_is_returned_must_be_what_was_declared() {
    let spec = || ResultSpec::new::<u64>("r");
    let text = refusal(spec(), ResultMap::new().with("r", 1_u64).with("s", 2_u64));
    says(&text, "\"s\" is not declared (declared are: r)");
    let text = refusal(spec(), ResultMap::new());
    says(&text, "\"r\" is declared and was not returned");
    let text = refusal(spec(), ResultMap::new().with("r", 1_u32));
    says(&text, "declared as u64 and was returned as u32");
}

#[test]
fn asking_for_what_is_not_there_or_is_something_else() {
    let sde = Sde::new();
    let results = sde.run(&kinds(), &inputs! {}).unwrap();
    let text = format!("{:#}", results.get::<f64>("plain").unwrap_err());
    says(&text, "not a f64");
    let text = format!("{:#}", results.get::<f64>("plane").unwrap_err());
    says(&text, "it has: plain, passing, huge");
    says(&text, "kinds [");
}

/// A parameter declared twice was in the key by one declaration and out of it by the other.
#[test]
fn an_app_that_contradicts_itself() {
    let info = AppInfo::new("app", "1")
        .parameter(Parameter::new("p", 1.0_f64).transparent())
        .parameter(Parameter::new("p", 2.0_f64));
    let app = made(info, |_, _| Ok(ResultMap::new()));
    let error = Sde::new().run(&app, &inputs! {}).unwrap_err();
    let text = format!("{error:#}");
    says(&text, "parameter \"p\" is declared twice");
}

struct BySource;

impl sde::Fingerprint for BySource {
    fn fingerprint(
        &self,
        to: &mut sde::key::Encoder<'_>,
    ) -> Result<(), sde::key::FingerprintError> {
        to.structure("tag_rules.BySource", |_| Ok(()))
    }
}

/// A version that is raised by hand would have no effect beside a digest.
#[sde::app]
impl sde::App for BySource {
    fn info(&self) -> AppInfo {
        AppInfo::new("tag_rules.by_source", "1")
    }

    fn run(&self, _: &sde::Handle, _: &sde::Inputs) -> Result<ResultMap, sde::AppError> {
        Ok(ResultMap::new())
    }
}

#[test]
fn an_app_whose_code_is_not_known() {
    let sde = Sde::new();
    let app = made(AppInfo::named("app"), |_, _| Ok(ResultMap::new()));
    let text = sde.run(&app, &inputs! {}).unwrap_err().to_string();
    says(&text, "mark its `impl App` with `#[sde::app]`");
    let text = sde.run(&BySource, &inputs! {}).unwrap_err().to_string();
    says(&text, "and it has a version: write `AppInfo::named`");
}

/// Holds its body until all who were told to wait do so.
struct AllWait(std::sync::Barrier);

impl Observer for &'static AllWait {
    fn observe(&self, event: &Event) {
        if matches!(event, Event::Waiting { app, .. } if &**app == "tag_rules.fleeting_value") {
            self.0.wait();
        }
    }
}

static ALL_WAIT: AllWait = AllWait(std::sync::Barrier::new(4));

#[sde::app(name = "tag_rules.fleeting_value", tags(no_cache))]
fn fleeting_value() -> Vec<u8> {
    // The fourth: three wait for this run, or are about to.
    ALL_WAIT.0.wait();
    vec![7]
}

/// Those who waited for a result that is not kept found it gone and computed it one
/// after the other.
#[test]
fn a_result_that_is_not_kept_reaches_all_who_waited() {
    let log = EventLog::new();
    let builder = Sde::builder().observer(&ALL_WAIT).observer(log.clone());
    let sde = builder.build().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(*fleeting_value.call(&sde).unwrap(), [7]));
        }
    });
    assert_eq!(log.started("tag_rules.fleeting_value"), 1);
}

/// What no store can have.
struct Window;

#[derive(sde::Results)]
struct Field {
    #[result(intermediate)]
    values: DistArray<u64>,
    steps: u64,
    #[result(expendable)]
    window: Window,
}

#[test]
fn what_has_parts_follows_from_its_type() {
    fn array(sde: &Handle) -> Result<DistArray<u64>, sde::Error> {
        DistArray::from_fn(sde, &[1], |_| 2)
    }
    #[sde::app(distributed)]
    fn parts(sde: &Handle) -> Result<DistArray<u64>, sde::Error> {
        array(sde)
    }
    #[sde::app(distributed, tags(no_cache))]
    fn not_kept(sde: &Handle) -> Result<Value<DistArray<u64>>, sde::Error> {
        Ok(Value::new(array(sde)?))
    }
    #[sde::app(distributed)]
    fn whole(sde: &Handle) -> Result<u64, sde::Error> {
        Ok(array(sde)?.local()[0])
    }
    #[sde::app(distributed, tags(expendable))]
    fn open() -> Window {
        Window
    }
    #[sde::app(distributed, results)]
    fn field(sde: &Handle) -> Result<Field, sde::Error> {
        let (values, steps) = (array(sde)?, 3);
        let window = Window;
        Ok(Field {
            values,
            steps,
            window,
        })
    }
    #[sde::app(results)]
    fn alone(sde: &Handle) -> Result<Field, sde::Error> {
        Err(array(sde).map(drop).unwrap_err())
    }
    let tags = |app: &dyn App| -> Vec<_> {
        let info = app.info();
        info.results().iter().map(|spec| spec.tags()).collect()
    };
    assert_eq!(tags(&parts), [Tags::from(Tag::Distributed)]);
    assert_eq!(tags(&not_kept), [Tag::Distributed | Tag::NoCache]);
    assert_eq!(tags(&whole), [Tags::NONE]);
    assert_eq!(tags(&open), [Tags::from(Tag::Expendable)]);
    let of_fields = [
        Tag::Distributed | Tag::Intermediate,
        Tags::NONE,
        Tag::Expendable.into(),
    ];
    assert_eq!(tags(&field), of_fields);
    let sde = Sde::new();
    assert_eq!(parts.call(&sde).unwrap().local(), [2]);
    let made = field.call(&sde).unwrap();
    assert_eq!((made.values.local()[0], *made.steps), (2, 3));
    assert!(made.window.is_some());
    let text = format!("{:#}", alone.call(&sde).map(drop).unwrap_err());
    says(
        &text,
        "\"values\" lies on several ranks, and the app is not `distributed`",
    );
}
