//! `#[derive(Results)]`: each field of what a function returns is a result of its own.

use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Policy, ResultMap, Sde, Source, Tag, Tags,
    Value, inputs,
};
use sde_tests::says;

/// A type that can't be saved.
struct Window(u32);

/// A small field.
#[derive(sde::Results)]
struct Scf {
    /// In hartree.
    energy: f64,
    #[result(intermediate, name = "C", about = "the orbitals")]
    orbitals: Value<Vec<f64>>,
    #[result(expendable)]
    window: Window,
    #[result(no_cache)]
    text: String,
    #[result(not_compared)]
    report: String,
}

#[sde::app(results)]
fn scf(x: f64) -> Scf {
    Scf {
        energy: -x,
        orbitals: Value::new(vec![x; 3]),
        window: Window(7),
        text: "gone".to_owned(),
        report: "done".to_owned(),
    }
}

#[sde::app(results)]
fn may_fail(x: f64) -> Result<Scf, AppError> {
    match x > 0.0 {
        true => Ok(Scf {
            energy: x,
            orbitals: Value::new(Vec::new()),
            window: Window(0),
            text: String::new(),
            report: String::new(),
        }),
        false => Err(AppError::message("not positive")),
    }
}

#[test]
fn each_field_is_a_result_with_its_tags() {
    let sde = Sde::new();
    let first = scf.call(&sde, 2.0).expect("a result");
    assert_eq!((*first.energy, first.orbitals.len()), (-2.0, 3));
    assert_eq!(first.window.as_deref().map(|window| window.0), Some(7));
    assert_eq!(first.text.as_deref().map(String::as_str), Some("gone"));
    let results = sde.run(&scf, &inputs! { x: 2.0 }).expect("a result");
    let names: Vec<_> = results.names().collect();
    assert_eq!(names, ["energy", "C", "window", "text", "report"]);
    assert_eq!(results.tags("energy"), Some(Tags::NONE));
    assert_eq!(results.tags("C"), Some(Tag::Intermediate.into()));
    assert_eq!(results.tags("window"), Some(Tag::Expendable.into()));
    assert!(Value::ptr_eq(
        &results.get::<Vec<f64>>("C").expect("the orbitals"),
        &first.orbitals
    ));
    let info = scf.info();
    let about: Vec<_> = info
        .results()
        .iter()
        .map(|spec| spec.description())
        .collect();
    assert_eq!(about, ["In hartree.", "the orbitals", "", "", ""]);
    assert_eq!(sde.stats().total.computed, 1);
}

/// A hit gives what there is. What nobody keeps is absent, and no reason to compute.
#[test]
fn an_expendable_field_may_be_gone() {
    let sde = Sde::new();
    drop(scf.call(&sde, 2.0).expect("a result"));
    let again = scf.call(&sde, 2.0).expect("a result");
    assert!(again.text.is_none() && again.window.is_some());
    sde.clear_tagged("scf", Tag::Expendable).expect("cleaned");
    let again = scf.call(&sde, 2.0).expect("a result");
    assert!(again.window.is_none());
    assert_eq!(*again.energy, -2.0);
    assert_eq!(sde.stats().total.computed, 1);
}

#[test]
fn many_arguments_and_failures() {
    let sde = Sde::new();
    let all = scf.par_call(&sde, [1.0, 2.0, 1.0]).expect("results");
    let energies: Vec<_> = all.iter().map(|one| *one.energy).collect();
    assert_eq!(energies, [-1.0, -2.0, -1.0]);
    let mut sum = 0.0;
    scf.par_call_each(&sde, [1.0, 3.0], |_, one| sum += *one.energy)
        .expect("results");
    assert_eq!((sum, sde.stats().total.computed), (-4.0, 3));
    assert_eq!(*may_fail.call(&sde, 1.0).expect("a result").energy, 1.0);
    let error = may_fail.call(&sde, -1.0).unwrap_err();
    says(&format!("{error:#}"), "not positive");
}

#[derive(sde::Results)]
struct Pair {
    low: f64,
    high: f64,
}

#[sde::app(name = "results.pair", version = "1", results)]
fn pair(x: f64) -> Pair {
    Pair {
        low: x,
        high: 2.0 * x,
    }
}

/// That app as an earlier program had it: the text of the function was the same, the struct had one field.
struct Earlier;

impl Fingerprint for Earlier {
    fn fingerprint(
        &self,
        to: &mut sde::key::Encoder<'_>,
    ) -> Result<(), sde::key::FingerprintError> {
        to.structure("results.pair", |_| Ok(()))
    }
}

impl App for Earlier {
    fn info(&self) -> AppInfo {
        AppInfo::new("results.pair", "1").result(sde::ResultSpec::new::<f64>("low"))
    }

    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("low", *inputs.get::<f64>("x")?))
    }
}

/// The struct's own text is not in the key. An entry without one of its results is no hit.
#[test]
fn a_result_that_was_not_there_is_computed() {
    let store = sde::archiver::MemoryArchiver::new();
    let builder = || {
        Sde::builder()
            .store(store.clone())
            .save(sde::SavePolicy::OnRequest)
    };
    let sde = builder().build().expect("an engine");
    let before = sde.request(&Earlier, &inputs! { x: 1.0 }).run();
    let key = before.expect("a result").key;
    sde.finish().expect("saved");
    let sde = builder().build().expect("an engine");
    let peek = sde.peek(&pair, &inputs! { x: 1.0 }).expect("a key");
    assert_eq!(peek.key(), key);
    let now = pair.call(&sde, 1.0).expect("a result");
    assert_eq!((*now.low, *now.high), (1.0, 2.0));
    assert_eq!(sde.stats().total.computed, 1);
}

#[derive(Fingerprint)]
struct Solver;

#[sde::app]
impl App for Solver {
    fn info(&self) -> AppInfo {
        AppInfo::named("results.Solver").results_of::<Scf>()
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let x = *inputs.get::<f64>("x")?;
        let inner = scf.call(sde, x)?;
        Ok(Scf {
            energy: 2.0 * *inner.energy,
            orbitals: inner.orbitals,
            window: Window(1),
            text: String::new(),
            report: String::new(),
        }
        .into())
    }
}

#[test]
fn a_type_declares_and_returns_them() {
    let sde = Sde::new();
    let x = inputs! { x: 2.0 };
    let results = sde.run(&Solver, &x).expect("a result");
    assert_eq!(*results.get::<f64>("energy").expect("the energy"), -4.0);
    let again = sde.request(&Solver, &x).policy(Policy::OnlyIfRemembered);
    assert_eq!(again.run().expect("a hit").source, Source::Memory);
}

/// Found by attack: under another name, a struct whose fields exchange their results was no edit.
#[test]
fn which_field_is_which_result_is_code_by_any_name() {
    mod rising {
        #[derive(sde::Results)]
        pub(super) struct Out {
            #[result(name = "low")]
            pub(super) a: f64,
            #[result(name = "high")]
            pub(super) b: f64,
        }
    }
    mod falling {
        #[derive(sde::Results)]
        pub(super) struct Out {
            #[result(name = "high")]
            pub(super) a: f64,
            #[result(name = "low")]
            pub(super) b: f64,
        }
    }
    macro_rules! bounds {
        ($of:ident) => {{
            use $of::Out as Bounds;
            #[sde::app(results, name = "results.bounds")]
            fn bounds(x: f64) -> Bounds {
                Bounds { a: x, b: x + 1.0 }
            }
            bounds.info().code().clone()
        }};
    }
    let codes = [bounds!(rising), bounds!(falling)];
    assert_ne!(codes[0], codes[1]);
}
