//! Which of several helpers a name leads to.
//!
//! Found by attacking it: of two helpers of one name both counted, whichever was called, so that
//! `use v1::step` could be changed to `use v2::step`, and the old results stood.
//!
//! A program before and after an edit stand beside one another here, as two modules. The apps in them have one
//! name and one text: only what is around them can tell their codes apart.

#![allow(
    clippy::let_and_return,
    clippy::match_like_matches_macro,
    clippy::unnecessary_map_on_constructor,
    clippy::useless_conversion,
    non_upper_case_globals,
    reason = "each names a helper in another place of a program"
)]

use sde::App;

/// What an app's code comes to.
fn code(app: &impl App) -> String {
    format!("{:?}", app.info().code())
}

mod v1 {
    #[sde::helper]
    pub(super) fn advanced(x: f64) -> f64 {
        x + FACTOR
    }

    #[sde::helper]
    pub(super) fn widened<T: Into<f64>>(x: T) -> f64 {
        x.into()
    }

    #[sde::helper]
    pub(super) const FACTOR: f64 = 1.0;

    #[sde::helper]
    pub(super) const LOWEST: i8 = -1;

    #[sde::helper]
    pub(super) const _HIDDEN: i8 = -1;

    #[sde::helper]
    pub(super) const lowest: i8 = -1;
}

mod v2 {
    #[sde::helper]
    pub(super) fn advanced(x: f64) -> f64 {
        x + FACTOR
    }

    #[sde::helper]
    pub(super) fn widened<T: Into<f64>>(x: T) -> f64 {
        2.0 * x.into()
    }

    #[sde::helper]
    pub(super) static FACTOR: f64 = 2.0;

    #[sde::helper]
    pub(super) const LOWEST: i8 = 1;

    #[sde::helper]
    pub(super) const _HIDDEN: i8 = 1;

    #[sde::helper]
    pub(super) const lowest: i8 = 1;
}

mod unmarked {
    pub(super) fn advanced(x: f64) -> f64 {
        x
    }
}

macro_rules! joined {
    ({ $($head:tt)* } $($rest:tt)*) => { $($head)* $($rest)* };
}

/// Declares each app twice, each time after what stands around it; and a function that gives the codes of all.
macro_rules! edits {
    ($codes:ident $head:tt $(
        $edit:ident: { $($before:tt)* } { $($after:tt)* } $parameters:tt -> $result:tt $body:tt
    )*) => {
        $(mod $edit {
            pub(super) mod before {
                $($before)*
                joined! { $head $parameters -> $result $body }
            }

            pub(super) mod after {
                $($after)*
                joined! { $head $parameters -> $result $body }
            }
        })*

        fn $codes() -> Vec<(&'static str, String, String)> {
            vec![$((stringify!($edit), code(&$edit::before::app), code(&$edit::after::app))),*]
        }
    };
}

edits! {
    seen { #[sde::app(name = "edited")] pub(crate) fn app }
    imported:
        { use crate::helper_names::v1::advanced; } { use crate::helper_names::v2::advanced; }
        (x: f64) -> f64 { advanced(x) }
    generic:
        { use crate::helper_names::v1::widened; } { use crate::helper_names::v2::widened; }
        (x: f32) -> f64 { widened::<f32>(x) }
    renamed:
        { use crate::helper_names::v1::advanced as step; } { use crate::helper_names::v2::advanced as step; }
        (x: f64) -> f64 { step(x) }
    exchanged:
        { use crate::helper_names::v1::{advanced as first, widened as second}; }
        { use crate::helper_names::v1::{advanced as second, widened as first}; }
        (x: f64) -> f64 { first(x) - second(x) }
    glob:
        { use crate::helper_names::v1::*; } { use crate::helper_names::v2::*; }
        (x: f64) -> f64 { advanced(x) }
    exported_again:
        {
            mod inner { pub(super) use crate::helper_names::v1::advanced as step; }
            mod prelude { pub(super) use super::inner::*; }
            use prelude::*;
        } {
            mod inner { pub(super) use crate::helper_names::v2::advanced as step; }
            mod prelude { pub(super) use super::inner::*; }
            use prelude::*;
        }
        (x: f64) -> f64 { step(x) }
    constant:
        { use crate::helper_names::v1::FACTOR; } { use crate::helper_names::v2::FACTOR; }
        (x: f64) -> f64 { x * FACTOR }
    in_a_text:
        { use crate::helper_names::v1::FACTOR; } { use crate::helper_names::v2::FACTOR; }
        () -> String { format!("{FACTOR:.1}") }
    in_a_pattern:
        { use crate::helper_names::v1::LOWEST; } { use crate::helper_names::v2::LOWEST; }
        (x: i8) -> bool { matches!(x, LOWEST..) || match x { LOWEST => false, _ => true } }
    hidden_in_a_pattern:
        { use crate::helper_names::v1::_HIDDEN; } { use crate::helper_names::v2::_HIDDEN; }
        (x: i8) -> bool { match x { _HIDDEN => false, _ => true } }
    as_a_variable_in_a_pattern:
        { use crate::helper_names::v1::lowest; } { use crate::helper_names::v2::lowest; }
        (x: i8) -> bool { match x { lowest => false, _ => true } }
    given_on:
        { use crate::helper_names::v1::advanced; } { use crate::helper_names::v2::advanced; }
        (values: &[f64]) -> f64 { values.iter().copied().map(advanced).sum() }
    called_as_a_variable_is:
        { use crate::helper_names::v1::advanced; } { use crate::helper_names::v2::advanced; }
        (x: f64) -> f64 {
            let before = advanced(x);
            let advanced = before;
            advanced
        }
    marked_at_last:
        { use crate::helper_names::unmarked::advanced; } { use crate::helper_names::v1::advanced; }
        (x: f64) -> f64 { advanced(x) }
    in_another_crate:
        { use crate::helper_names::v1::advanced as linked; } { use sde_tests::a_linked_helper as linked; }
        (x: f64) -> f64 { linked(x) }
}

#[test]
fn an_edit_of_what_brings_a_helper_is_other_code() {
    let codes = seen();
    let alike = codes.iter().filter(|(_, before, after)| before == after);
    let alike: Vec<_> = alike.map(|(edit, ..)| *edit).collect();
    assert!(alike.is_empty(), "{alike:?}");
}

edits! {
    not_seen { #[sde::app(name = "edited")] pub(crate) fn app }
    shadowed:
        { use crate::helper_names::v1::*; }
        {
            #[allow(unused_imports, reason = "what it brought is shadowed")]
            use crate::helper_names::v1::*;
            fn advanced(x: f64) -> f64 { x }
        }
        (x: f64) -> f64 { advanced(x) }
    beside_a_variable:
        { use crate::helper_names::v1::advanced; } { use crate::helper_names::v2::advanced; }
        (x: f64) -> f64 {
            let made = Some(x).map(advanced);
            made.map_or(0.0, |advanced| advanced)
        }
    by_a_path:
        { use crate::helper_names::v1 as version; } { use crate::helper_names::v2 as version; }
        (x: f64) -> f64 { version::advanced(x) }
    renamed_at_the_end_of_a_path:
        { mod api { pub(super) use crate::helper_names::v1::advanced as step; } }
        { mod api { pub(super) use crate::helper_names::v2::advanced as step; } }
        (x: f64) -> f64 { api::step(x) }
    renamed_elsewhere_for_an_import_in_the_app:
        { mod api { pub(super) use crate::helper_names::v1::advanced as step; } }
        { mod api { pub(super) use crate::helper_names::v2::advanced as step; } }
        (x: f64) -> f64 {
            use api::step;
            step(x)
        }
    as_a_variable_in_a_pattern_and_beside:
        { use crate::helper_names::v1::lowest; } { use crate::helper_names::v2::lowest; }
        (x: i8) -> i8 { match x { lowest => lowest, _ => 0 } }
    a_generic_argument:
        { use crate::helper_names::widths::single::WIDTH; }
        { use crate::helper_names::widths::double::WIDTH; }
        () -> usize { crate::helper_names::widths::twice::<WIDTH>() }
    by_a_method:
        { use crate::helper_names::solvers::First as Solver; }
        { use crate::helper_names::solvers::Second as Solver; }
        () -> f64 { Solver.solved() }
    a_type:
        { use crate::helper_names::solvers::single::Real; }
        { use crate::helper_names::solvers::double::Real; }
        (x: f64) -> f64 { f64::from(x as Real) }
    found_by_name_only:
        { use crate::helper_names::solvers::single::cast; }
        { use crate::helper_names::solvers::double::cast; }
        (x: f64) -> f64 { cast(x) }
    exchanged_headers:
        {
            struct Calm;
            #[allow(dead_code, reason = "its method is named by none")]
            struct Wild;
            impl Wild {
                #[sde::helper]
                #[allow(dead_code, reason = "it is called after the edit")]
                fn headed(&self) -> f64 { 1.0 }
            }
            impl Calm {
                #[sde::helper]
                fn headed(&self) -> f64 { 2.0 }
            }
        } {
            struct Calm;
            #[allow(dead_code, reason = "its method is named by none")]
            struct Wild;
            impl Calm {
                #[sde::helper]
                fn headed(&self) -> f64 { 1.0 }
            }
            impl Wild {
                #[sde::helper]
                #[allow(dead_code, reason = "it was called before the edit")]
                fn headed(&self) -> f64 { 2.0 }
            }
        }
        () -> f64 { Calm.headed() }
}

mod solvers {
    pub(super) struct First;
    pub(super) struct Second;

    impl First {
        #[sde::helper]
        pub(crate) fn solved(&self) -> f64 {
            1.0
        }
    }

    impl Second {
        #[sde::helper]
        pub(crate) fn solved(&self) -> f64 {
            2.0
        }
    }

    pub(super) mod single {
        #[sde::helper]
        pub(crate) type Real = f32;

        #[sde::helper(by_name)]
        pub(crate) fn cast(x: f64) -> f64 {
            f64::from(x as Real)
        }
    }

    pub(super) mod double {
        #[sde::helper]
        pub(crate) type Real = f64;

        #[sde::helper(by_name)]
        pub(crate) fn cast(x: f64) -> f64 {
            x as Real
        }
    }
}

mod widths {
    pub(super) fn twice<const N: usize>() -> usize {
        2 * N
    }

    pub(super) mod single {
        #[sde::helper]
        pub(crate) const WIDTH: usize = 1;
    }

    pub(super) mod double {
        #[sde::helper]
        pub(crate) const WIDTH: usize = 2;
    }
}

/// As the guide lists it: both helpers count, and which is called does not.
#[test]
fn an_edit_that_is_not_seen() {
    let codes = not_seen();
    let seen = codes.iter().filter(|(_, before, after)| before != after);
    let seen: Vec<_> = seen.map(|(edit, ..)| *edit).collect();
    assert!(seen.is_empty(), "{seen:?}");
}

/// An import inside the function that an app stands in is out of reach.
#[test]
fn an_edit_around_an_app_in_a_function_is_not_seen() {
    fn before() -> String {
        use v1::advanced;
        #[sde::app(name = "edited")]
        fn app(x: f64) -> f64 {
            advanced(x)
        }
        code(&app)
    }
    fn after() -> String {
        use v2::advanced;
        #[sde::app(name = "edited")]
        fn app(x: f64) -> f64 {
            advanced(x)
        }
        code(&app)
    }
    assert_eq!(before(), after());
}

/// One inside the app is part of its text.
#[test]
fn an_edit_in_an_app_is_other_code() {
    #[sde::app(name = "edited")]
    fn before(x: f64) -> f64 {
        use v1::advanced;
        advanced(x)
    }
    mod other {
        use super::v2;

        #[sde::app(name = "edited")]
        pub(super) fn before(x: f64) -> f64 {
            use v2::advanced;
            advanced(x)
        }
    }
    assert_ne!(code(&before), code(&other::before));
}

/// A program of its own has other values of its conditions: this file is built for tests, that one is not.
#[path = "../../src/bin/helped/conditions.rs"]
mod conditions;

#[test]
fn a_condition_counts_with_its_value() {
    let store = tempfile::tempdir().expect("a folder");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_helped_before"))
        .arg(store.path())
        .arg("--conditions")
        .output()
        .expect("it starts");
    let said = String::from_utf8(output.stdout).expect("text");
    let there: Vec<_> = said.lines().collect();
    let here = conditions::codes();
    assert_eq!(there.len(), 3, "{said}");
    let names = ["in an expression", "as an attribute", "none"];
    for (i, name) in names.iter().enumerate() {
        assert_eq!(there[i] == here[i], *name == "none", "{name}");
    }
}
