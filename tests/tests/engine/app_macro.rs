//! `#[sde::app]`: what a function becomes.

use std::path::{Path, PathBuf};

use sde::{AppError, EventLog, Handle, Sde, Source, Value, inputs};

/// Adds up.
#[sde::app]
fn total(values: &[f64]) -> f64 {
    values.iter().sum()
}

#[sde::app(
    name = "tests.scaled",
    version = "2",
    citation = "A. Author, J. Tests 1, 1 (2026)"
)]
fn scaled(sde: &Handle, values: &[f64], by: f64, label: &str) -> Result<f64, AppError> {
    if label.is_empty() {
        return Err(AppError::message("a label is needed"));
    }
    Ok(*total.call(sde, values)? * by)
}

#[sde::app]
fn shares(values: Value<Vec<f64>>) -> Value<Vec<f64>> {
    values
}

struct NotSaved(#[allow(dead_code, reason = "only its type matters")] std::sync::Mutex<u8>);

#[sde::app(tags(no_cache))]
fn opaque(seed: u8) -> NotSaved {
    NotSaved(std::sync::Mutex::new(seed))
}

#[sde::app(tags(expendable))]
fn owned(list: Vec<u32>, name: String) -> usize {
    list.len() + name.len()
}

/// Parameters may be called what the macro calls its own things.
#[sde::app]
fn named_like_ours(of: f64, call: f64, sde: f64, value: f64, inputs: f64, mut r#type: f64) -> f64 {
    r#type += of + call + sde + value + inputs;
    r#type
}

/// So may apps, and what is derived beside them.
mod called_like_ours {
    #[derive(
        Clone, Copy, Debug, PartialEq, sde::Fingerprint, serde::Serialize, serde::Deserialize,
    )]
    pub struct Pair {
        pub first: f64,
        pub second: f64,
    }

    macro_rules! apps {
        ($($name:ident)*) => {
            $(#[sde::app]
            pub fn $name(given: Pair, text: &str) -> Result<f64, sde::AppError> {
                match text {
                    "" => Err(sde::AppError::message("a text is needed")),
                    _ => Ok(given.first - given.second),
                }
            })*

            pub fn all(engine: &sde::Sde, pair: Pair) -> Vec<sde::Result<sde::Value<f64>>> {
                vec![$($name.call(engine, pair, "a"), $name.call(engine, pair, "")),*]
            }
        };
    }
    apps!(value error to out fields inputs call results listed summaries taken taken_1 handle);
}

#[test]
fn any_name_will_do_for_an_app() {
    let engine = Sde::new();
    let (first, second) = (3.0, 1.0);
    let pair = called_like_ours::Pair { first, second };
    for two in called_like_ours::all(&engine, pair).chunks(2) {
        assert_eq!(**two[0].as_ref().unwrap(), 2.0);
        assert!(two[1].is_err());
    }
    assert_eq!(engine.stats().apps.len(), 13);
}

#[sde::app]
fn nothing() {}

/// A path is a name: what is in the file does not count.
#[sde::app]
fn depth_of(#[allow(unused_mut, reason = "attributes are kept")] mut path: &Path) -> usize {
    path.components().count()
}

#[test]
fn any_name_will_do_for_a_parameter() {
    let sde = Sde::new();
    let sum = named_like_ours
        .call(&sde, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
        .unwrap();
    assert_eq!(*sum, 21.0);
    let given = inputs! {
        of: 1.0_f64, call: 2.0_f64, sde: 3.0_f64, value: 4.0_f64, inputs: 5.0_f64, r#type: 6.0_f64
    };
    sde.run(&named_like_ours, &given).unwrap();
    nothing.call(&sde).unwrap();
    assert_eq!(sde.stats().apps["named_like_ours"].computed, 1);
}

#[test]
fn a_path_is_borrowed_or_owned() {
    let sde = Sde::new();
    assert_eq!(*depth_of.call(&sde, Path::new("a/b")).unwrap(), 2);
    let given = inputs! { path: PathBuf::from("a/b") };
    let erased = sde.run(&depth_of, &given).unwrap();
    assert_eq!(*erased.get::<usize>("result").unwrap(), 2);
    let fresh = inputs! { path: PathBuf::from("a/b/c") };
    let erased = sde.run(&depth_of, &fresh).unwrap();
    assert_eq!(*erased.get::<usize>("result").unwrap(), 3);
    assert_eq!(sde.stats().apps["depth_of"].computed, 2);
}

#[test]
fn typed_and_erased_calls_are_the_same_run() {
    let log = EventLog::new();
    let sde = Sde::builder().observer(log.clone()).build().unwrap();
    assert_eq!(*scaled.call(&sde, &[1.0, 2.0], 3.0, "x").unwrap(), 9.0);
    let given = inputs! { values: vec![1.0_f64, 2.0], by: 3.0_f64, label: "x" };
    let erased = sde.run(&scaled, &given).unwrap();
    assert_eq!(*erased.get::<f64>("result").unwrap(), 9.0);
    assert_eq!(log.started("tests.scaled"), 1);
    assert_eq!(log.started("total"), 1);
}

#[test]
fn an_erased_call_computes_what_a_typed_one_does() {
    let sde = Sde::new();
    let given = inputs! { values: vec![1.0_f64, 2.0], by: 3.0_f64, label: "x".to_owned() };
    let erased = sde.run(&scaled, &given).unwrap();
    let typed = scaled.call(&sde, &[1.0, 2.0], 3.0, "x").unwrap();
    assert!(Value::ptr_eq(&erased.get("result").unwrap(), &typed));
    let shared = inputs! { list: vec![1_u32, 2], name: "ab".to_owned() };
    assert_eq!(
        *sde.request(&owned, &shared)
            .names(&["result"])
            .run()
            .unwrap()
            .results
            .get::<usize>("result")
            .unwrap(),
        4
    );
}

#[test]
fn a_shared_value_is_passed_on_and_not_copied() {
    let sde = Sde::new();
    let values = Value::new(vec![1.0, 2.0]);
    let same = shares.call(&sde, values.clone()).unwrap();
    assert!(Value::ptr_eq(&values, &same));
}

#[test]
fn a_result_that_is_not_kept_is_computed_again() {
    let log = EventLog::new();
    let sde = Sde::builder().observer(log.clone()).build().unwrap();
    let held = opaque.call(&sde, 1).unwrap();
    assert!(Value::ptr_eq(&held, &opaque.call(&sde, 1).unwrap()));
    drop(held);
    opaque.call(&sde, 1).unwrap();
    let got = log.sources("opaque");
    assert_eq!(got, [Source::Computed, Source::Memory, Source::Computed]);
}

#[test]
fn errors_come_with_their_type() {
    let error = scaled.call(&Sde::new(), &[], 1.0, "").unwrap_err();
    assert!(
        format!("{error:#}").contains("a label is needed"),
        "{error}"
    );
}
