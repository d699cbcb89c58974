//! What apps say of themselves: to be read, to be cited, and no part of a key.

use sde::archiver::MemoryArchiver;
use sde::{
    App, AppError, AppInfo, Error, Fingerprint, Handle, Inputs, Parameter, ResultMap, ResultSpec,
    Sde, Slot, Tag, inputs,
};

/// Runs what is in its slot, and a function.
#[derive(Fingerprint)]
struct Citing;

impl App for Citing {
    fn info(&self) -> AppInfo {
        AppInfo::new("metadata.Citing", "1")
            .about("Sums up")
            .author("A. Author")
            .author("B. Writer")
            .citation("A. Author, J. Tests 1, 1 (2026)")
            .distributed()
            .parameter(Parameter::new("scale", 1.0_f64).about("a factor"))
            .parameter(Parameter::new("threads", 1_usize).transparent())
            .slot(Slot::new("inner", Inner).about("-> y"))
            .result(ResultSpec::new::<f64>("y"))
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let inner = sde.run(&sde.sub_app("inner")?, inputs)?;
        let y = *inner.get::<f64>("y")? + *called.call(sde, 1.0)?;
        Ok(ResultMap::new().with("y", y))
    }
}

#[derive(Fingerprint)]
struct Inner;

impl App for Inner {
    fn info(&self) -> AppInfo {
        AppInfo::new("metadata.Inner", "1")
            .citation("C. Inner, J. Tests 2, 2 (2026)")
            .result(ResultSpec::new::<f64>("y"))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("y", 2.0))
    }
}

#[sde::app(
    name = "metadata.called",
    version = "1",
    about = "Gives what it is given",
    author = "D. Caller",
    author = "E. Callee",
    citation = "D. Caller, J. Tests 3, 3 (2026)",
    citation = "D. Caller, J. Tests 4, 4 (2027)",
    distributed,
    not_thread_safe,
    tags(intermediate)
)]
fn called(x: f64) -> f64 {
    x
}

#[sde::app(name = "metadata.plain", version = "1")]
fn plain(x: f64) -> f64 {
    x
}

sde::link_app!(Citing, Inner);

#[test]
fn an_app_says_what_it_is() {
    let info = Citing.info();
    assert_eq!(info.name(), "metadata.Citing");
    assert_eq!(info.description(), "Sums up");
    let got = info.authors().collect::<Vec<_>>();
    assert_eq!(got, ["A. Author", "B. Writer"]);
    let cited: Vec<_> = info.citations().collect();
    assert_eq!(cited, ["A. Author, J. Tests 1, 1 (2026)"]);
    assert!(info.is_distributed() && info.is_thread_safe());
    assert!(!info.is_nondeterministic());
    let [scale, threads] = info.parameters() else {
        panic!("{:?}", info.parameters());
    };
    assert_eq!((scale.name(), scale.description()), ("scale", "a factor"));
    assert!(!scale.is_transparent() && threads.is_transparent());
    assert_eq!(info.slots()[0].description(), "-> y");
}

#[test]
fn the_macro_says_it_too() {
    let info = called.info();
    assert_eq!(info.description(), "Gives what it is given");
    let got = info.authors().collect::<Vec<_>>();
    assert_eq!(got, ["D. Caller", "E. Callee"]);
    assert_eq!(info.citations().count(), 2);
    assert!(info.is_distributed() && !info.is_thread_safe());
    assert!(info.results()[0].tags().contains(Tag::Intermediate));
    let info = plain.info();
    assert!(!info.is_distributed() && info.is_thread_safe());
    assert_eq!(info.authors().count() + info.citations().count(), 0);
}

#[test]
fn what_is_to_be_cited_is_found_through_slots_callees_and_the_store() -> Result<(), Error> {
    let all = ["metadata.Citing", "metadata.Inner", "metadata.called"];
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()?;
    assert!(sde.citations_used().is_empty());
    plain.call(&sde, 1.0)?;
    assert!(sde.citations_used().is_empty(), "it cites nothing");
    sde.run(&Citing, &inputs! {})?;
    let used = sde.citations_used();
    assert_eq!(used.keys().collect::<Vec<_>>(), all);
    assert_eq!(used["metadata.called"].len(), 2);
    sde.finish()?;
    // Of the entry that is loaded neither callee is in memory.
    let sde = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()?;
    assert!(sde.citations_used().is_empty());
    sde.run(&Citing, &inputs! {})?;
    assert_eq!(sde.stats().total.computed, 0);
    assert_eq!(sde.citations_used(), used);
    Ok(())
}
