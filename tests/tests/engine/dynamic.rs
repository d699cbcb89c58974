//! Apps without a Rust type, as programs in other languages, commands and plug-ins make them.

use std::path::Path;

use sde::key::{Digest, commit};
use sde::record::{Changed, CodeId, Record};
use sde::store::DirStore;
use sde::{
    AnyArray, AppInfo, Data, DynApp, ErasedValue, Handle, Inputs, Parameter, Peek, ResultMap,
    ResultSpec, SavePolicy, Sde, Source, Tag, Value, inputs,
};
use sde_tests::{Gate, LIMIT, Watchdog, assert_kind, made, says};

use super::cycle;

fn digest(text: &str) -> Digest {
    commit(text).expect("a text has a key").digest()
}

/// The description of an app with this text.
fn info(name: &'static str, text: &str) -> AppInfo {
    AppInfo::with_code(name, CodeId::Source(digest(text)))
}

/// An app whose result is its input times this number.
fn times(factor: f64) -> DynApp {
    let app = DynApp::new(info("dynamic.times", "x * factor"), move |_, inputs| {
        let x = inputs.get::<f64>("x")?;
        Ok(ResultMap::new().with("result", Data::Float(x * factor)))
    });
    app.capturing("factor", Data::Float(factor))
}

fn sde_in(folder: &Path) -> Sde {
    let builder = Sde::builder().store(DirStore::open(folder).expect("a store"));
    builder
        .save(SavePolicy::OnRequest)
        .build()
        .expect("no error")
}

fn result(sde: &Handle, app: &DynApp, inputs: &Inputs) -> Result<f64, sde::Error> {
    Ok(*sde.run(app, inputs)?.get::<f64>("result")?)
}

/// Runs a dynamic app, which runs a function.
#[sde::app(name = "dynamic.outer")]
fn outer(sde: &Handle, x: f64) -> Result<f64, sde::Error> {
    result(sde, &calls_back("dynamic.inner"), &inputs! { x: x })
}

#[sde::app(name = "dynamic.inner")]
fn inner(x: f64) -> f64 {
    x + 1.0
}

fn calls_back(name: &'static str) -> DynApp {
    DynApp::new(info("dynamic.calls_back", name), move |sde, inputs| {
        let app = sde::Sde::new().apps().linked(name).ok_or("no such app")?;
        let made = sde.run(&app, inputs)?.get::<Data>("result")?;
        let made = *made.get::<f64>().ok_or("no float")?;
        Ok(ResultMap::new().with("result", Data::Float(2.0 * made)))
    })
}

#[test]
fn a_rust_app_calls_a_dynamic_one_and_back() {
    let sde = Sde::new();
    assert_eq!(*outer.call(&sde, 1.5).unwrap(), 5.0);
    let calls: Vec<_> = sde_tests::records(&sde)
        .iter()
        .map(|record| record.calls.len())
        .collect();
    assert_eq!(calls.iter().sum::<usize>(), 2, "{calls:?}");
    assert_eq!(*outer.call(&sde, 1.5).unwrap(), 5.0);
    assert_eq!(sde.stats().total.computed, 3);
}

/// `looped` runs a dynamic app, which runs `looped`.
#[sde::app(name = "dynamic.looped")]
fn looped(sde: &Handle, x: f64) -> Result<f64, sde::Error> {
    result(sde, &calls_back("dynamic.looped"), &inputs! { x: x })
}

#[test]
fn a_cycle_through_both_kinds_is_told() {
    let _dog = Watchdog::new("a cycle", LIMIT);
    let error = looped.call(&Sde::new(), 1.0).unwrap_err();
    let path = cycle(&error).expect("a cycle");
    assert_eq!(
        path,
        ["dynamic.looped", "dynamic.calls_back", "dynamic.looped"]
    );
}

/// An input has one key whether it is given as a Rust value or without its type, so the body must see one thing.
#[test]
fn a_body_sees_one_kind_of_input() {
    let app = DynApp::new(info("dynamic.kinds", "1"), |_, inputs| {
        let kinds = inputs
            .names()
            .map(|name| match &*inputs.value::<Data>(name)? {
                Data::Array(array) => Ok(array.numbers().rust_name().into()),
                other => Ok(Data::Text(format!("{other:?}"))),
            });
        let kinds: Result<Vec<Data>, sde::Error> = kinds.collect();
        Ok(ResultMap::new().with("result", Data::List(kinds?)))
    });
    let array = vec![1_u16, 2];
    let rust = inputs! { float: 1.5, int: -3_i64, text: "a", bytes: vec![1_u8], array: Value::new(array.clone()) };
    let data = inputs! {
        float: Data::Float(1.5), int: Data::Int(-3), text: Data::from("a"), bytes: Data::from(vec![1_u8]),
        array: Data::from(Value::new(Data::from(AnyArray::from(array))))
    };
    let (one, other) = (Sde::new(), Sde::new());
    let kinds = one
        .run(&app, &rust)
        .unwrap()
        .get::<Vec<String>>("result")
        .unwrap();
    assert_eq!(
        *kinds,
        ["Float(1.5)", "Int(-3)", "Text(\"a\")", "Bytes([1])", "u16"]
    );
    let others = other.run(&app, &data).unwrap().get::<Vec<String>>("result");
    assert_eq!(kinds, others.unwrap());
    assert_eq!(
        sde_tests::records(&one)[0].key,
        sde_tests::records(&other)[0].key
    );
}

#[test]
fn inputs_without_a_type_are_given_as_rust_types() {
    let inputs = inputs! { x: Data::Float(1.5), n: Data::Int(3), list: Data::from(AnyArray::from(vec![1_i32])), y: 2.5 };
    assert_eq!(inputs.get::<f64>("x").unwrap(), &1.5);
    assert_eq!(*inputs.value::<u8>("n").unwrap(), 3);
    assert_eq!(inputs.get::<Vec<i32>>("list").unwrap(), &[1]);
    says(&inputs.get::<u8>("x").unwrap_err(), "is a sde_engine::");
    assert!(inputs.get::<Data>("y").is_err());
    let erased = inputs.get_erased("x").unwrap();
    assert_eq!(erased.downcast_ref::<Data>(), Some(&Data::Float(1.5)));
    says(
        &inputs.get_erased("z").unwrap_err(),
        "it has: x, n, list, y",
    );
}

#[test]
fn a_captured_value_counts() {
    let sde = Sde::new();
    assert_eq!(result(&sde, &times(2.0), &inputs! { x: 3.0 }).unwrap(), 6.0);
    assert_eq!(result(&sde, &times(3.0), &inputs! { x: 3.0 }).unwrap(), 9.0);
    assert_eq!(result(&sde, &times(2.0), &inputs! { x: 3.0 }).unwrap(), 6.0);
    assert_eq!(sde.stats().total.computed, 2);
    let peek = sde.peek(&times(4.0), &inputs! { x: 3.0 }).unwrap();
    says(&peek, "factor");
}

fn missed(peek: Peek) -> Vec<Changed> {
    let Peek::Miss { nearest, .. } = peek else {
        unreachable!("{peek:?} is no miss");
    };
    let differences = nearest.expect("a run before").differences;
    differences
        .into_iter()
        .map(|difference| difference.part)
        .collect()
}

#[test]
fn a_helper_that_changed_is_named() {
    let with = |info: AppInfo, solver: &str| {
        let info = info
            .helper("numpy", digest("2.1"))
            .helper("solver", digest(solver));
        DynApp::new(info, |_, _| Ok(ResultMap::new().with("result", Data::None)))
    };
    for info in [
        info("dynamic.helped", "text"),
        AppInfo::new("dynamic.helped", "7"),
    ] {
        let sde = Sde::new();
        sde.run(&with(info.clone(), "old"), &inputs! {}).unwrap();
        let names: Vec<_> = sde_tests::records(&sde)[0]
            .setup
            .helpers
            .iter()
            .map(|one| one.name.to_string())
            .collect();
        assert_eq!(names, ["numpy", "solver"]);
        let peek = sde.peek(&with(info.clone(), "new"), &inputs! {}).unwrap();
        assert_eq!(missed(peek), [Changed::Helper("solver".to_owned())]);
        // Neither their order nor an earlier one of the name counts.
        let again = info
            .clone()
            .helper("solver", digest("older"))
            .helper("solver", digest("old"));
        let again = DynApp::new(again.helper("numpy", digest("2.1")), |_, _| {
            unreachable!("it is remembered")
        });
        sde.run(&again, &inputs! {}).unwrap();
    }
    // A description that lacks its code is refused, whatever its helpers.
    let sde = Sde::new();
    let lacks = with(AppInfo::named("dynamic.lacks"), "old");
    says(&sde.run(&lacks, &inputs! {}).unwrap_err(), "has no version");
}

/// Runs what is made of this text, in a program that may have another text of it.
fn caller(text: &'static str) -> DynApp {
    DynApp::new(info("dynamic.caller", "calls"), move |sde, inputs| {
        let callee = DynApp::new(info("dynamic.callee", text), |_, _| {
            Ok(ResultMap::new().with("result", Data::Int(1)))
        });
        let made = sde.run(&callee, inputs)?.get::<Data>("result")?;
        Ok(ResultMap::new().with_value("result", made))
    })
}

#[test]
fn a_declared_app_keeps_its_callers() {
    let folder = tempfile::tempdir().unwrap();
    let first = sde_in(folder.path());
    first.run(&caller("first"), &inputs! {}).unwrap();
    first.finish().unwrap();

    let source = |sde: &Sde, text| {
        sde.request(&caller(text), &inputs! {})
            .run()
            .unwrap()
            .source
    };
    let unknown = sde_in(folder.path());
    says(
        &unknown.peek(&caller("first"), &inputs! {}).unwrap(),
        "give its description to",
    );
    let sde = sde_in(folder.path());
    sde.apps().declare(info("dynamic.callee", "first")).unwrap();
    assert_eq!(source(&sde, "first"), Source::Loaded);
    // Edited: the caller's result rests on what is no part of the program any more.
    sde.apps()
        .declare(info("dynamic.callee", "second"))
        .unwrap();
    let peek = sde.peek(&caller("second"), &inputs! {}).unwrap();
    says(&peek, "it ran dynamic.callee");
    assert_eq!(source(&sde, "second"), Source::Computed);
    assert_eq!(source(&sde, "second"), Source::Memory);

    let twice = info("dynamic.twice", "1")
        .parameter(Parameter::new("a", 1))
        .parameter(Parameter::new("a", 1));
    says(&sde.apps().declare(twice).unwrap_err(), "declared twice");
    // What the linker collected stays.
    sde.apps()
        .declare(info("dynamic.inner", "another"))
        .unwrap();
    inner.call(&sde, 1.0).unwrap();
    assert_eq!(*outer.call(&sde, 1.0).unwrap(), 4.0);
    sde.apps()
        .declare(info("dynamic.inner", "a third"))
        .unwrap();
    assert!(matches!(
        sde.peek(&outer, &inputs! { x: 1.0 }).unwrap(),
        Peek::Hit { .. }
    ));
}

#[test]
fn what_was_stored_is_read_by_rust_and_by_data() {
    let folder = tempfile::tempdir().unwrap();
    let array = || AnyArray::from(vec![1.0_f32, 2.0]);
    let description = || {
        info("dynamic.stored", "text")
            .result(ResultSpec::data("any"))
            .result(ResultSpec::data("array"))
            .result(ResultSpec::new::<f64>("float"))
            .result(ResultSpec::new::<Vec<u32>>("list"))
    };
    let app = DynApp::new(description(), move |_, _| {
        let ints = Data::List(vec![Data::Int(1), Data::Int(2)]);
        // A Rust value where any is declared.
        let map = ResultMap::new()
            .with("any", "text".to_owned())
            .with("array", Data::from(array()));
        Ok(map.with("float", Data::Float(0.1)).with("list", ints))
    });
    let read = |results: &ResultMap| {
        assert_eq!(*results.get::<Data>("any").unwrap(), Data::from("text"));
        assert_eq!(*results.get::<String>("any").unwrap(), "text");
        assert_eq!(*results.get::<Data>("array").unwrap(), Data::from(array()));
        assert_eq!(*results.get::<Vec<f32>>("array").unwrap(), [1.0, 2.0]);
        assert_eq!(*results.get::<f64>("float").unwrap(), 0.1);
        assert_eq!(*results.get::<Data>("float").unwrap(), Data::Float(0.1));
        assert_eq!(*results.get::<Vec<u32>>("list").unwrap(), [1, 2]);
        assert_eq!(
            results.get_erased("list").unwrap().downcast_ref(),
            Some(&vec![1_u32, 2])
        );
        says(&results.get::<u8>("any").unwrap_err(), "not a u8");
    };
    let sde = sde_in(folder.path());
    read(&sde.run(&app, &inputs! {}).unwrap());
    sde.finish().unwrap();
    let later = sde_in(folder.path());
    let never = DynApp::new(description(), |_, _| unreachable!("it is stored"));
    read(&later.run(&never, &inputs! {}).unwrap());
}

#[test]
fn a_result_of_another_type_is_refused() {
    let wrong = |spec: ResultSpec, value: ErasedValue| {
        let app = DynApp::new(info("dynamic.wrong", "1").result(spec), move |_, _| {
            let map = ResultMap::new();
            Ok(match value.downcast::<Data>() {
                Some(data) => map.with_value("y", data),
                None => map.with("y", std::time::Duration::ZERO),
            })
        });
        Sde::new().run(&app, &inputs! {}).unwrap_err().to_string()
    };
    let text = || ErasedValue::new(Data::from("1.5"));
    says(&wrong(ResultSpec::new::<f64>("y"), text()), "f64");
    says(
        &wrong(ResultSpec::data("y"), ErasedValue::new(())),
        "Duration",
    );
}

mod one {
    #[sde::app]
    fn of_two_modules() -> u8 {
        1
    }
}

mod two {
    #[sde::app]
    fn of_two_modules() -> u8 {
        2
    }
}

#[derive(sde::Fingerprint)]
struct Typed;

#[sde::app]
impl sde::App for Typed {
    fn info(&self) -> AppInfo {
        AppInfo::named("dynamic.Typed").result(ResultSpec::new::<u8>("y"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, sde::AppError> {
        Ok(ResultMap::new().with("y", 7_u8))
    }
}

sde::link_app!(Typed, Typed);

#[test]
fn linked_apps_are_found_by_name() {
    let sde = Sde::new();
    let found = sde.apps().linked("dynamic.inner").expect("a function");
    let results = sde.run(&found, &inputs! { x: 1.0 }).unwrap();
    assert_eq!(*results.get::<f64>("result").unwrap(), 2.0);
    let typed = sde.apps().linked("dynamic.Typed").expect("a type");
    assert_eq!(
        *sde.run(&typed, &inputs! {})
            .unwrap()
            .get::<u8>("y")
            .unwrap(),
        7
    );
    assert!(sde.apps().linked("of_two_modules").is_none());
    assert!(sde.apps().linked("dynamic.nothing").is_none());
}

#[test]
fn tags_of_a_call() {
    let (sde, inputs) = (Sde::new(), inputs! { x: 1.0 });
    let app = times(2.0);
    let tagged = |tag| {
        let made = sde
            .request(&app, &inputs)
            .tags("result", Tag::NoCache)
            .tags("result", tag);
        let outcome = made.run().unwrap();
        (outcome.results.tags("result").unwrap(), outcome.source)
    };
    assert_eq!(
        tagged(Tag::Intermediate),
        (Tag::Intermediate.into(), Source::Computed)
    );
    // What is remembered keeps its tags.
    assert_eq!(
        tagged(Tag::Expendable),
        (Tag::Intermediate.into(), Source::Memory)
    );
    let other = inputs! { x: 2.0 };
    let unknown = sde
        .request(&app, &other)
        .tags("reslt", Tag::Intermediate)
        .run();
    says(&unknown.unwrap_err(), "no result \"reslt\"");
    let distributed = sde
        .request(&app, &other)
        .tags("result", Tag::Distributed)
        .run();
    says(&distributed.unwrap_err(), "distributed");
}

#[test]
fn try_get_never_waits() {
    let _dog = Watchdog::new("try_get", LIMIT);
    let (sde, gate, inputs) = (Sde::new(), Gate::new(), inputs! { x: 1.0 });
    let app = DynApp::new(info("dynamic.held", "1"), move |_, _| {
        gate.pass();
        Ok(ResultMap::new().with("result", Data::Int(5)))
    });
    std::thread::scope(|scope| {
        let running = scope.spawn(|| sde.run(&app, &inputs).unwrap());
        gate.arrived(1);
        let got = sde.try_get(&app, &inputs);
        gate.open();
        assert!(got.is_none());
        running.join().unwrap();
    });
    let got = sde.try_get(&app, &inputs).expect("it is in memory");
    assert_eq!(*got.get::<i64>("result").unwrap(), 5);
    assert_eq!(sde.stats().total.computed, 1);
    sde.invalidate(&sde_tests::records(&sde)[0].key, "a test")
        .unwrap();
    assert!(sde.try_get(&app, &inputs).is_none());
    assert!(sde.try_get("no such app", &inputs).is_none());
}

/// The state of the cache is in no key.
#[test]
fn a_body_that_asks_for_it_is_not_looked_up() {
    let sde = Sde::new();
    let asking = DynApp::new(info("dynamic.asking", "1"), |sde, inputs| {
        let known = sde.try_get(&times(2.0), inputs).is_some();
        Ok(ResultMap::new().with("result", known))
    });
    let known = || {
        *sde.run(&asking, &inputs! { x: 1.0 })
            .unwrap()
            .get::<bool>("result")
            .unwrap()
    };
    assert!(!known());
    result(&sde, &times(2.0), &inputs! { x: 1.0 }).unwrap();
    assert!(known());
    let is_asking = |record: &&Record| &*record.app == "dynamic.asking";
    let records = sde_tests::records(&sde);
    let asking = records.iter().find(is_asking).expect("a record");
    assert!(asking.nondeterministic);
}

#[test]
fn an_error_of_a_body_names_its_app() {
    let app = DynApp::new(info("dynamic.fails", "1"), |_, inputs| {
        inputs.get::<f64>("y")?;
        Ok(ResultMap::new())
    });
    let error = Sde::new().run(&app, &inputs! { x: 1.0 }).unwrap_err();
    assert_kind!(error, App);
    says(&error, "dynamic.fails");
}

/// Found by attack: the inputs of a body kept the key of the Rust values that it does not see.
#[test]
fn inputs_that_are_passed_on_have_the_key_of_what_they_are() {
    let sees = made(
        AppInfo::new("dynamic.sees", "1").result(ResultSpec::new::<bool>("is_rust")),
        |_, inputs| {
            let is_rust = inputs.get::<i32>("x").is_ok();
            Ok(ResultMap::new().with("is_rust", is_rust))
        },
    );
    let called = sees.clone();
    let passes = DynApp::new(info("dynamic.passes", "on"), move |sde, inputs| {
        let seen = *sde.run(&called, inputs)?.get::<bool>("is_rust")?;
        Ok(ResultMap::new().with("result", Data::Bool(seen)))
    });
    let (sde, given) = (Sde::new(), inputs! { x: 5_i32 });
    assert!(
        !*sde
            .run(&passes, &given)
            .unwrap()
            .get::<bool>("result")
            .unwrap()
    );
    assert!(
        *sde.run(&sees, &given)
            .unwrap()
            .get::<bool>("is_rust")
            .unwrap()
    );
}
