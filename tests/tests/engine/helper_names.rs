//! Which of several helpers a name leads to.
//!
//! Found by attacking it: of two helpers of one name both counted, whichever was called, so that
//! `use v1::step` could be changed to `use v2::step`, and the old results stood.
//!
//! A program before and after an edit stand beside one another here, as two modules. The apps in them have one
//! name and one text: only what is around them can tell their codes apart.

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
}

mod unmarked {
    pub(super) fn advanced(x: f64) -> f64 {
        x
    }
}

/// Declares an app twice, each time after what stands around it.
macro_rules! edit {
    ($edit:ident: { $($before:tt)* } { $($after:tt)* } $($app:tt)*) => {
        mod $edit {
            pub(super) mod before {
                $($before)*
                $($app)*
            }

            pub(super) mod after {
                $($after)*
                $($app)*
            }
        }
    };
}

edit! {
    imported:
    { use crate::helper_names::v1::advanced; }
    { use crate::helper_names::v2::advanced; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { advanced(x) }
}

edit! {
    generic:
    { use crate::helper_names::v1::widened; }
    { use crate::helper_names::v2::widened; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f32) -> f64 { widened::<f32>(x) }
}

edit! {
    renamed:
    { use crate::helper_names::v1::advanced as step; }
    { use crate::helper_names::v2::advanced as step; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { step(x) }
}

edit! {
    exchanged:
    { use crate::helper_names::v1::{advanced as first, widened as second}; }
    { use crate::helper_names::v1::{advanced as second, widened as first}; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { first(x) - second(x) }
}

edit! {
    glob:
    { use crate::helper_names::v1::*; }
    { use crate::helper_names::v2::*; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { advanced(x) }
}

edit! {
    exported_again:
    {
        mod inner { pub(super) use crate::helper_names::v1::advanced as step; }
        mod prelude { pub(super) use super::inner::*; }
        use prelude::*;
    }
    {
        mod inner { pub(super) use crate::helper_names::v2::advanced as step; }
        mod prelude { pub(super) use super::inner::*; }
        use prelude::*;
    }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { step(x) }
}

edit! {
    constant:
    { use crate::helper_names::v1::FACTOR; }
    { use crate::helper_names::v2::FACTOR; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { x * FACTOR }
}

edit! {
    in_a_text:
    { use crate::helper_names::v1::FACTOR; }
    { use crate::helper_names::v2::FACTOR; }
    #[sde::app(name = "edited")]
    pub(crate) fn app() -> String { format!("{FACTOR:.1}") }
}

edit! {
    in_a_pattern:
    { use crate::helper_names::v1::LOWEST; }
    { use crate::helper_names::v2::LOWEST; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: i8) -> bool { matches!(x, LOWEST..) || match x { LOWEST => false, _ => true } }
}

edit! {
    given_on:
    { use crate::helper_names::v1::advanced; }
    { use crate::helper_names::v2::advanced; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(values: &[f64]) -> f64 { values.iter().copied().map(advanced).sum() }
}

edit! {
    called_as_a_variable_is:
    { use crate::helper_names::v1::advanced; }
    { use crate::helper_names::v2::advanced; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 {
        let before = advanced(x);
        let advanced = before;
        advanced
    }
}

edit! {
    shadowed:
    { use crate::helper_names::v1::*; }
    {
        #[allow(unused_imports, reason = "what it brought is shadowed")]
        use crate::helper_names::v1::*;
        fn advanced(x: f64) -> f64 { x }
    }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { advanced(x) }
}

edit! {
    marked_at_last:
    { use crate::helper_names::unmarked::advanced; }
    { use crate::helper_names::v1::advanced; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { advanced(x) }
}

edit! {
    in_another_crate:
    { use crate::helper_names::a_linked_helper; }
    { use sde_tests::a_linked_helper; }
    #[sde::app(name = "edited")]
    pub(crate) fn app(x: f64) -> f64 { a_linked_helper(x) }
}

#[sde::helper]
fn a_linked_helper(x: f64) -> f64 {
    x
}

#[test]
fn an_edit_of_what_brings_a_helper_is_other_code() {
    macro_rules! codes {
        ($($edit:ident)*) => {
            [$((stringify!($edit), code(&$edit::before::app), code(&$edit::after::app))),*]
        };
    }
    let codes = codes![
        imported generic renamed exchanged glob exported_again constant in_a_text in_a_pattern given_on
        called_as_a_variable_is shadowed marked_at_last in_another_crate
    ];
    let alike = codes.iter().filter(|(_, before, after)| before == after);
    let alike: Vec<_> = alike.map(|(edit, ..)| *edit).collect();
    assert!(alike.is_empty(), "{alike:?}");
}
