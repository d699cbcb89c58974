//! What apps may fail with, and how it reads.
//!
//! Found by using it: "`?` works on any error", the guide said, and functions that returned `anyhow::Error`,
//! `Box<dyn Error>`, `Box<dyn Error + Send + Sync>` or a text did not compile, nor did `?` on one of these in a body that
//! returns `AppError`.

use std::error::Error as StdError;
use std::fmt::{Debug, Display};
use std::num::ParseIntError;

use sde::archiver::ArchiveError;
use sde::key::FingerprintError;
use sde::ranks::GroupError;
use sde::{AppError, Failure, Handle, InputFile, Sde, inputs};
use sde_tests::says;

/// Fails with an error of this type, for a text that is no number.
mod with {
    use super::{ParseIntError, StdError};

    pub(super) fn typed(text: &str) -> Result<i64, ParseIntError> {
        text.parse()
    }

    pub(super) fn shared(text: &str) -> Result<i64, Box<dyn StdError + Send + Sync>> {
        Ok(typed(text)?)
    }

    pub(super) fn context(text: &str) -> Result<i64, anyhow::Error> {
        use anyhow::Context;
        typed(text).context("no count")
    }

    pub(super) fn message(text: &str) -> Result<i64, String> {
        typed(text).map_err(|error| format!("{error:#}"))
    }

    pub(super) fn literal(_: &str) -> Result<i64, &'static str> {
        Err("no number")
    }
}

#[sde::app]
fn boxed(text: &str) -> Result<i64, Box<dyn StdError>> {
    Ok(with::typed(text)?)
}

#[sde::app]
fn boxed_and_shared(text: &str) -> Result<i64, Box<dyn StdError + Send + Sync>> {
    with::shared(text)
}

#[sde::app]
fn anyhow_error(text: &str) -> anyhow::Result<i64> {
    with::context(text)
}

#[sde::app]
fn message(text: &str) -> Result<i64, String> {
    with::message(text)
}

#[sde::app]
fn literal(text: &str) -> Result<i64, &'static str> {
    with::literal(text)
}

#[test]
fn a_function_may_fail_with_what_people_use() {
    let sde = Sde::new();
    let said = |result: sde::Result<sde::Value<i64>>| format!("{:#}", result.unwrap_err());
    let number = "invalid digit found in string";
    for (app, said, expected) in [
        ("boxed", said(boxed.call(&sde, "x")), number),
        (
            "boxed_and_shared",
            said(boxed_and_shared.call(&sde, "x")),
            number,
        ),
        (
            "anyhow_error",
            said(anyhow_error.call(&sde, "x")),
            &format!("no count: {number}"),
        ),
        ("message", said(message.call(&sde, "x")), number),
        ("literal", said(literal.call(&sde, "x")), "no number"),
    ] {
        assert!(said.starts_with(app), "{said}");
        assert!(said.ends_with(&format!("] failed: {expected}")), "{said}");
    }
    assert_eq!(*boxed.call(&sde, "7").unwrap(), 7);
}

#[sde::app]
fn each_by_question_mark(text: &str, which: usize) -> Result<i64, AppError> {
    Ok(match which {
        0 => with::typed(text)?,
        1 => with::shared(text)?,
        2 => with::context(text)?,
        3 => with::message(text)?,
        4 => with::literal(text)?,
        _ => Err("a text")?,
    })
}

#[test]
fn question_marks_take_each_of_them() {
    let sde = Sde::new();
    for which in 0..6 {
        assert!(each_by_question_mark.call(&sde, "x", which).is_err());
    }
    let error = each_by_question_mark.call(&sde, "x", 1).unwrap_err();
    assert!(
        error.app_error::<ParseIntError>().is_some(),
        "the type stays"
    );
}

#[sde::app]
fn fails_for_good() -> Result<i64, AppError> {
    Err(AppError::message("never").permanent())
}

#[sde::app]
fn passes_it_on_in_a_box(sde: &Handle) -> Result<i64, Box<dyn StdError>> {
    Ok(*fails_for_good.call(sde)?)
}

/// An error of the engine says for itself how long it lasts, also in a box.
#[test]
fn a_box_hides_no_error_of_the_engine() {
    let sde = Sde::new();
    for _ in 0..2 {
        let error = passes_it_on_in_a_box.call(&sde).unwrap_err();
        let inner = error.app_error::<sde::Error>().unwrap();
        let sde::ErrorKind::App { cause, .. } = inner.kind() else {
            panic!("{inner}");
        };
        assert_eq!(cause.failure(), Some(Failure::Permanent));
    }
}

/// Found by using it: an error that came out of `main` was printed as `Error: Archive { doing: .. }`, since that is
/// done by `Debug`.
#[test]
fn errors_out_of_main_read_as_sentences() {
    fn same<E: Debug + Display>(error: &E) {
        assert_eq!(format!("{error:?}"), format!("{error:#}"));
    }
    let io = ArchiveError::io("writing", "there", std::io::Error::other("no room"));
    same(&io);
    same(&sde::Error::from(io));
    same(&AppError::message("a text"));
    same(&FingerprintError::custom("no identity"));
    same(&GroupError::Other("no rank".to_owned()));
    let error = Sde::new().run("Rfh", &inputs! {}).unwrap_err();
    same(&error);
    same(error.kind());
    let gone = InputFile::new("there/is/none");
    let error = components.call(&Sde::new(), &gone).unwrap_err();
    same(&error);
    assert_eq!(format!("{error:#}").matches("there/is/none").count(), 1);
}

/// What led to an error is said too, and once.
#[test]
fn what_led_to_an_error_is_said_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("the outer")]
    struct Outer(#[source] std::num::ParseIntError);
    let error = AppError::from(Outer("x".parse::<u8>().unwrap_err()));
    let got = format!("{error:?}");
    assert_eq!(got, "the outer: invalid digit found in string");
}

#[sde::app]
fn components(file: &InputFile) -> usize {
    file.path().components().count()
}

#[sde::app]
fn asks_for_it(sde: &Handle, text: &str) -> Result<i64, AppError> {
    Ok(*typed_here.call(sde, text)?)
}

#[sde::app]
fn typed_here(text: &str) -> Result<i64, ParseIntError> {
    text.parse()
}

/// What failed first is found through the items of a sweep and the runs above, which is what a program acts on.
#[test]
fn the_first_error_is_found_beneath_others() {
    let sde = Sde::new();
    let error = asks_for_it.par_call(&sde, ["1", "x"]).unwrap_err();
    assert!(error.app_error::<ParseIntError>().is_some());
    assert!(error.app_error::<std::io::Error>().is_none());
    let failed = sde
        .peek(&typed_here, &inputs! { text: "x" })
        .expect("a key");
    assert_eq!(error.key(), Some(&failed.key()));
    let missing = sde.run(&inner_key::Needs, &inputs! {}).unwrap_err();
    assert_eq!(missing.key(), Some(&inner_key::key(&sde)));
    assert!(!error.is_cancelled() && !matches!(error.root().kind(), sde::ErrorKind::Item { .. }));
}

mod inner_key {
    use sde::{App, AppError, AppInfo, Fingerprint, Handle, Inputs, Key, ResultMap, Sde, inputs};

    #[derive(Fingerprint)]
    pub(super) struct Needs;

    #[sde::app]
    impl App for Needs {
        fn info(&self) -> AppInfo {
            AppInfo::named("errors.Needs")
        }

        fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
            inputs.get::<f64>("x")?;
            Ok(ResultMap::new())
        }
    }

    pub(super) fn key(sde: &Sde) -> Key {
        sde.peek(&Needs, &inputs! {}).expect("a key").key()
    }
}

/// A reporter walks `source` and prints each `Display`: no text is told twice, and none is missing.
#[test]
fn each_level_tells_what_is_its_own() {
    let error = asks_for_it.par_call(&Sde::new(), ["x"]).unwrap_err();
    let mut levels = vec![error.to_string()];
    let mut next = error.source();
    while let Some(source) = next {
        levels.push(source.to_string());
        next = source.source();
    }
    let key = |app: &str| levels.iter().position(|level| level.starts_with(app));
    assert_eq!(key("item 0"), Some(0), "{levels:?}");
    assert!(key("asks_for_it [") < key("typed_here ["), "{levels:?}");
    assert_eq!(levels.last().unwrap(), "invalid digit found in string");
    assert_eq!(levels.len(), 4, "{levels:?}");
    assert_eq!(format!("{error:#}"), levels.join(": "));
    assert_eq!(format!("{error:?}"), levels.join(": "));
}

/// A program that asks people for names tells them which it has.
#[test]
fn a_wrong_name_or_type_is_told_with_what_is_there() {
    let sde = Sde::new();
    let results = sde.run(&typed_here, &inputs! { text: "7" }).unwrap();
    let error = results.get::<i64>("resalt").unwrap_err();
    let sde::ErrorKind::UnknownName {
        what, name, known, ..
    } = error.kind()
    else {
        panic!("{error}");
    };
    assert_eq!(
        (*what, &**name, &**known),
        ("result", "resalt", &["result".to_owned()][..])
    );
    says(&error, "did you mean: result");
    let error = results.get::<u8>("result").unwrap_err();
    let sde::ErrorKind::TypeMismatch { is, wanted, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!((&**is, &**wanted), ("i64", "u8"));
}

/// Found by attack: what a program asks of an error was hidden by an error of its own around it.
#[test]
fn an_error_of_ones_own_hides_no_other() {
    #[derive(Debug, thiserror::Error)]
    #[error("a step failed")]
    struct Step(#[from] sde::Error);
    #[sde::app(failures = "permanent")]
    fn steps(sde: &Handle, text: &str) -> Result<i64, Step> {
        Ok(*typed_here.call(sde, text)?)
    }
    let error = steps.call(&Sde::new(), "x").unwrap_err();
    assert!(error.app_error::<Step>().is_some());
    assert!(error.app_error::<ParseIntError>().is_some());
    let inner = typed_here.call(&Sde::new(), "x").unwrap_err();
    assert_eq!(
        (error.root().key(), error.key()),
        (inner.key(), inner.key())
    );
    let token = sde::CancelToken::new();
    token.cancel();
    #[sde::app(failures = "permanent")]
    fn cancelled(sde: &Handle) -> Result<i64, Step> {
        let token = sde::CancelToken::new();
        token.cancel();
        Ok(*typed_here.call(&sde.with_cancel(&token), "7")?)
    }
    let sde = Sde::new();
    for _ in 0..2 {
        assert!(cancelled.call(&sde).unwrap_err().is_cancelled());
    }
    assert_eq!(sde.stats().apps["cancelled"].computed, 0);
    assert_eq!(
        sde.stats().total.failures,
        4,
        "a cancelled call is not remembered as a failure"
    );
}
