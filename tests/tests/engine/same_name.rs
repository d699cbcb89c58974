//! Functions of one name in one program.
//!
//! Two functions of one name and one text in two modules were one app: the second was
//! given the first's results, though the helper it calls is another. Now the module
//! counts for those that were given no name, and the others are refused.

use sde::record::CodeId;
use sde::{
    App, AppError, AppInfo, Error, Handle, Inputs, ResultMap, ResultSpec, Sde, Value, inputs,
};
use sde_tests::assert_kind;

mod doubling {
    use sde::{App, AppError, AppInfo, Handle, Inputs, ResultMap, ResultSpec};

    fn scale(x: f64) -> f64 {
        2.0 * x
    }

    #[sde::app]
    pub(super) fn scaled(x: f64) -> f64 {
        scale(x)
    }

    #[sde::app(name = "same_name.named")]
    pub(super) fn named(x: f64) -> f64 {
        scale(x)
    }

    #[sde::app(name = "same_name.versioned", version = "1")]
    pub(super) fn versioned(x: f64) -> f64 {
        scale(x)
    }

    /// By the name and the text of another module's.
    #[derive(sde::Fingerprint)]
    pub(super) struct Model;

    #[sde::app]
    impl App for Model {
        fn info(&self) -> AppInfo {
            AppInfo::named("same_name.Model").result(ResultSpec::new::<f64>("y"))
        }

        fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
            Ok(ResultMap::new().with("y", scale(1.0)))
        }
    }
}

mod tripling {
    use sde::{App, AppError, AppInfo, Handle, Inputs, ResultMap, ResultSpec};

    fn scale(x: f64) -> f64 {
        3.0 * x
    }

    #[sde::app]
    pub(super) fn scaled(x: f64) -> f64 {
        scale(x)
    }

    #[sde::app(name = "same_name.named")]
    pub(super) fn named(x: f64) -> f64 {
        scale(x)
    }

    #[sde::app(name = "same_name.versioned", version = "1")]
    pub(super) fn versioned_too(x: f64) -> f64 {
        scale(x)
    }

    /// By the name and the text of another module's.
    #[derive(sde::Fingerprint)]
    pub(super) struct Model;

    #[sde::app]
    impl App for Model {
        fn info(&self) -> AppInfo {
            AppInfo::named("same_name.Model").result(ResultSpec::new::<f64>("y"))
        }

        fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
            Ok(ResultMap::new().with("y", scale(1.0)))
        }
    }
}

#[test]
fn one_text_in_two_modules_is_two_apps() {
    let sde = Sde::new();
    assert_eq!(*doubling::scaled.call(&sde, 1.0).unwrap(), 2.0);
    assert_eq!(*tripling::scaled.call(&sde, 1.0).unwrap(), 3.0);
    let erased = sde.run(&tripling::scaled, &inputs! { x: 1.0_f64 }).unwrap();
    assert_eq!(*erased.get::<f64>("result").unwrap(), 3.0);
    assert_eq!(sde.stats().apps["scaled"].computed, 2);
}

#[test]
fn two_functions_declared_to_be_one_app_are_refused() {
    let sde = Sde::new();
    let refused = |result: Result<Value<f64>, Error>| {
        let error = result.unwrap_err();
        assert_kind!(error, NameTaken);
        let text = format!("{error:#}");
        for part in [
            "the name \"same_name.",
            "same_name::doubling (",
            "same_name::tripling (",
            "same_name.rs:",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    };
    refused(doubling::versioned.call(&sde, 1.0));
    refused(tripling::versioned_too.call(&sde, 1.0));
    refused(doubling::named.call(&sde, 1.0));
    refused(tripling::named.call(&sde, 1.0));
    assert!(sde.peek(&doubling::named, &inputs! { x: 1.0_f64 }).is_err());
}

/// Found by attack: the module of a marked type did not count, and two of one name and text shared their results.
#[test]
fn one_text_of_types_in_two_modules_is_two_apps() {
    let sde = Sde::new();
    let y = |results: sde::ResultMap| *results.get::<f64>("y").unwrap();
    assert_eq!(y(sde.run(&doubling::Model, &inputs! {}).unwrap()), 2.0);
    assert_eq!(y(sde.run(&tripling::Model, &inputs! {}).unwrap()), 3.0);
}

/// Found by attack: the mark took the place of the code that the description gave.
#[test]
fn the_code_that_a_marked_type_gives_counts() {
    #[derive(sde::Fingerprint)]
    struct Read(#[fingerprint(skip)] &'static str);
    #[sde::app]
    impl App for Read {
        fn info(&self) -> AppInfo {
            let text = sde::key::commit(self.0).unwrap().digest();
            AppInfo::with_code("same_name.Read", CodeId::Source(text))
                .result(ResultSpec::new::<String>("text"))
        }

        fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
            Ok(ResultMap::new().with("text", self.0.to_owned()))
        }
    }
    let sde = Sde::new();
    for text in ["one", "other"] {
        let results = sde.run(&Read(text), &inputs! {}).unwrap();
        assert_eq!(*results.get::<String>("text").unwrap(), text);
    }
}
