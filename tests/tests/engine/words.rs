//! What a person reads.

use std::fmt::{Debug, Display};
use std::path::PathBuf;
use std::sync::Arc;

use sde::{
    App, AppError, AppInfo, ArchiveError, Event, EventLog, Fingerprint, FingerprintError,
    GroupError, Handle, InputFile, Inputs, ResultMap, ResultSpec, Sde, inputs,
};

/// Found by using it: an error that came out of `main` was printed as `Error: Archive { doing: .. }`, since that is
/// done by `Debug`.
#[test]
fn errors_out_of_main_read_as_sentences() {
    fn same<E: Debug + Display>(error: &E) {
        assert_eq!(format!("{error:?}"), error.to_string());
    }
    let io = ArchiveError::Io {
        doing: "writing",
        path: PathBuf::from("there"),
        source: Arc::new(std::io::Error::other("no room")),
    };
    same(&io);
    same(&sde::Error::from(io));
    same(&AppError::message("a text"));
    same(&FingerprintError::custom("no identity"));
    same(&GroupError::Other("no rank".to_owned()));
    let error = Sde::new().run("Rfh", &inputs! {}).unwrap_err();
    same(&error);
    same(error.kind());
    let gone = InputFile::new("there/is/none");
    let error = depth.call(&Sde::new(), &gone).unwrap_err();
    same(&error);
    assert_eq!(error.to_string().matches("there/is/none").count(), 1);
}

/// What led to an error is said too, and once.
#[test]
fn what_led_to_an_error_is_said_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("the outer")]
    struct Outer(#[source] std::num::ParseIntError);
    let error = AppError::from(Outer("x".parse::<u8>().unwrap_err()));
    assert_eq!(
        format!("{error:?}"),
        "the outer: invalid digit found in string"
    );
}

#[sde::app]
fn depth(file: &InputFile) -> usize {
    file.path().components().count()
}

/// Known when it has run, and not before.
#[derive(Fingerprint)]
struct ByTrait;

impl App for ByTrait {
    fn info(&self) -> AppInfo {
        AppInfo::new("words.ByTrait", "1").result(ResultSpec::new::<u8>("y"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", 1_u8))
    }
}

/// Found by using it: the name of an app was misspelt where its memory was limited, and nothing said that the limit was
/// none.
#[test]
fn a_limit_for_no_app_is_warned_of() {
    let log = EventLog::new();
    let sde = Sde::builder().observer(log.clone());
    let sde = sde.memory_limit("depthh", 1).memory_limit("depth", 1);
    let sde = sde.memory_limit("words.ByTrait", 1).build().unwrap();
    sde.run(&ByTrait, &inputs! {}).unwrap();
    let other = sde.clone();
    drop(sde);
    let warnings = || {
        let message = |event| match event {
            Event::Warning { message } => Some(message),
            _ => None,
        };
        log.events()
            .into_iter()
            .filter_map(message)
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings(), Vec::<String>::new(), "it may be shown yet");
    drop(other);
    let warnings = warnings();
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(warning.contains("memory limit of \"depthh\""), "{warning}");
    assert!(warning.contains("did you mean: depth"), "{warning}");
}
