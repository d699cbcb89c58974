//! Functions and constants that count as code of the apps that name them.
//!
//! Found by using it: a program whose app called a plain function got the old numbers after that function was
//! edited, without a word. It was documented, and the commonest wrong answer all the same.

use std::path::Path;
use std::process::Command;

use sde::{Handle, Sde};

/// What a program says of itself.
fn said(program: &str, store: &Path) -> String {
    let output = Command::new(program)
        .arg(store)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn an_edited_helper_has_the_apps_that_name_it_computed_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let before = env!("CARGO_BIN_EXE_helped_before");
    let after = env!("CARGO_BIN_EXE_helped_after");
    let first = said(before, &store);
    let computed = "caller: 3 Computed\ndoubled: 3 Memory\nversioned: 3 Computed\nalias: 6 Computed\n\
        size: 4.5 Computed\norder: 3 Computed\nimported: 2.5 Computed\n\
        edited: 1.5 Computed\nscaled: 3 Computed\nwhole_file: 1.5 Computed\nlow: 1.5\n";
    assert_eq!(first, computed);
    let again = said(before, &store);
    assert_eq!(
        again,
        computed
            .replace("Computed", "Loaded")
            .replace("Memory", "Loaded")
    );

    let edited = said(after, &store);
    let (difference, results) = edited.split_once('\n').expect("lines");
    let (part, digests) = difference.split_once(": ").expect("a difference");
    assert_eq!(part, "helper \"scale\"", "{edited}");
    assert!(
        digests.starts_with("source ") && digests.contains(" -> source "),
        "{edited}"
    );
    let (difference, results) = results.split_once('\n').expect("lines");
    assert_eq!(
        difference,
        "helper \"crate::stepped: use step\": crate::v1::step -> crate::v2::step"
    );
    // The caller rests on what is edited. A version is raised by hand.
    assert_eq!(
        results,
        "caller: 30 Computed\ndoubled: 30 Memory\nversioned: 3 Loaded\nalias: 12 Computed\n\
        size: 6 Computed\norder: 1.5 Computed\nimported: 3.5 Computed\n\
        edited: 15 Computed\nscaled: 30 Computed\nwhole_file: 150 Computed\nlow: 3\n"
    );
    // Taken back, the app finds what it had made. The caller's result is the one made with the edit.
    let back = said(before, &store);
    assert_eq!(
        back,
        "caller: 3 Computed\ndoubled: 3 Memory\nversioned: 3 Loaded\nalias: 6 Loaded\n\
        size: 4.5 Loaded\norder: 3 Loaded\nimported: 2.5 Loaded\n\
        edited: 1.5 Loaded\nscaled: 3 Loaded\nwhole_file: 1.5 Loaded\nlow: 1.5\n"
    );
}

mod shapes {
    /// As a method, generic, in an `impl` of a generic type.
    pub(super) struct Of<T>(pub(super) T);

    impl<T: Copy + Into<f64>> Of<T> {
        #[sde::helper]
        pub(super) fn widened_method(&self) -> f64 {
            self.0.into()
        }

        #[sde::helper]
        pub(super) const ASSOCIATED: f64 = 0.25;
    }

    pub(super) trait Provided {
        #[sde::helper]
        fn provided_method(&self) -> f64 {
            1.0
        }
    }

    impl Provided for u8 {}

    #[sde::helper]
    pub(super) fn generic_function<T: Into<f64>>(x: T) -> f64 {
        x.into() + f64::from(TABLE[1])
    }

    #[sde::helper]
    static TABLE: [u8; 2] = [1, 2];

    #[sde::helper]
    pub(super) const fn at_compile_time() -> f64 {
        4.0
    }
}

#[sde::app]
fn uses_shapes(x: u8) -> f64 {
    use shapes::Provided;
    let of = shapes::Of(x);
    let methods = of.widened_method() + x.provided_method() + shapes::Of::<u8>::ASSOCIATED;
    methods + shapes::generic_function(x) + shapes::at_compile_time()
}

/// The helpers that count for the app that ran last.
fn counted(run: impl FnOnce(&Handle)) -> Vec<String> {
    let sde = Sde::new();
    run(&sde);
    let records = sde_tests::records(&sde);
    let helpers = &records.last().expect("it ran").setup.helpers;
    helpers
        .iter()
        .map(|helper| helper.name.to_string())
        .collect()
}

#[test]
fn whatever_has_a_body_can_be_a_helper() {
    let found = counted(|sde| assert_eq!(*uses_shapes.call(sde, 3).unwrap(), 13.25));
    let expected = [
        "ASSOCIATED",
        "TABLE",
        "at_compile_time",
        "generic_function",
        "provided_method",
        "widened_method",
    ];
    assert_eq!(
        found,
        expected.map(|name| format!("helpers::shapes::{name}"))
    );
}

/// One name in two modules is two helpers, and which is meant can't be told.
mod one {
    #[sde::helper]
    pub(super) fn ambiguous_helper() -> f64 {
        1.0
    }
}

mod two {
    #[sde::helper]
    pub(super) fn ambiguous_helper() -> f64 {
        2.0
    }
}

#[sde::app]
fn uses_one() -> f64 {
    let _ = two::ambiguous_helper;
    one::ambiguous_helper()
}

#[test]
fn all_of_one_name_count() {
    let found = counted(|sde| assert_eq!(*uses_one.call(sde).unwrap(), 1.0));
    let expected = ["one", "two"].map(|module| format!("helpers::{module}::ambiguous_helper"));
    assert_eq!(found, expected);
}

#[sde::app]
fn uses_another_crate(x: f64) -> f64 {
    sde_tests::a_linked_helper(x)
}

#[test]
fn those_of_another_crate_count() {
    let found = counted(|sde| assert_eq!(*uses_another_crate.call(sde, 1.0).unwrap(), 2.0));
    assert_eq!(found, ["made::a_linked_helper"]);
}

mod elsewhere {
    pub(super) use super::shapes::at_compile_time as renamed;
}

#[sde::app]
fn by_another_name() -> f64 {
    use elsewhere::*;
    renamed()
}

mod app_elsewhere {
    use super::elsewhere::*;

    #[sde::app]
    pub(super) fn by_another_name() -> f64 {
        renamed()
    }
}

#[test]
fn those_that_are_called_by_another_name_count() {
    let found = counted(|sde| assert_eq!(*app_elsewhere::by_another_name.call(sde).unwrap(), 4.0));
    assert_eq!(found, ["helpers::shapes::at_compile_time", "use renamed"]);
    // An import in the app is part of its text, but where it leads is not looked after.
    assert!(counted(|sde| assert_eq!(*by_another_name.call(sde).unwrap(), 4.0)).is_empty());
}

#[sde::app]
fn writes_a_constant(x: f64) -> String {
    format!("{x:.1} {WRITTEN}")
}

#[sde::helper]
const WRITTEN: u8 = 7;

#[test]
fn a_name_in_a_text_is_seen() {
    let found = counted(|sde| assert_eq!(**writes_a_constant.call(sde, 1.0).unwrap(), *"1.0 7"));
    assert_eq!(found, ["helpers::WRITTEN"]);
}

/// Where a helper is not seen, as the guide lists it. Each is called, and none of them counts.
mod blind_spots {
    use super::{Handle, counted};

    fn none_counts(run: impl FnOnce(&Handle)) {
        assert_eq!(counted(run), [""; 0]);
    }

    #[sde::helper]
    fn unseen(x: f64) -> f64 {
        x + 1.0
    }

    fn unmarked(x: f64) -> f64 {
        unseen(x)
    }

    #[sde::app]
    fn through_a_function(x: f64) -> f64 {
        unmarked(x)
    }

    #[test]
    fn an_unmarked_function_in_between() {
        none_counts(|sde| assert_eq!(*through_a_function.call(sde, 1.0).unwrap(), 2.0));
    }

    macro_rules! add_one {
        ($x:expr) => {
            unseen($x)
        };
    }

    #[sde::app]
    fn through_a_macro(x: f64) -> f64 {
        add_one!(x)
    }

    #[test]
    fn the_body_of_a_macro() {
        none_counts(|sde| assert_eq!(*through_a_macro.call(sde, 1.0).unwrap(), 2.0));
    }

    mod v1 {
        macro_rules! scaled {
            ($x:expr) => {
                1.0 * $x
            };
        }
        pub(super) use scaled;

        pub(super) trait Step {
            #[sde::helper]
            fn stepped(&self) -> f64 {
                1.0
            }
        }
        impl Step for f64 {}
    }

    mod v2 {
        macro_rules! scaled {
            ($x:expr) => {
                2.0 * $x
            };
        }
        pub(super) use scaled;

        pub(super) trait Step {
            #[sde::helper]
            fn stepped(&self) -> f64 {
                2.0
            }
        }
        impl Step for f64 {}
    }

    mod before {
        use super::v1::{Step as _, scaled};

        #[sde::app(name = "edited")]
        pub(super) fn app(x: f64) -> f64 {
            scaled!(x) + x.stepped()
        }
    }

    mod after {
        use super::v2::{Step as _, scaled};

        #[sde::app(name = "edited")]
        pub(super) fn app(x: f64) -> f64 {
            scaled!(x) + x.stepped()
        }
    }

    #[test]
    fn the_text_of_a_macro_and_which_trait_brings_a_method() {
        use sde::App;
        let codes = [before::app.info(), after::app.info()];
        let [before, after] = codes.map(|info| format!("{:?}", info.code()));
        assert_eq!(before, after);
    }

    mod api {
        pub(super) use super::unseen as go;
    }

    #[sde::app]
    fn by_a_path_to_another_name(x: f64) -> f64 {
        use self::api::go as gone;
        api::go(x) + gone(x)
    }

    #[test]
    fn another_name_at_the_end_of_a_path() {
        none_counts(|sde| assert_eq!(*by_a_path_to_another_name.call(sde, 1.0).unwrap(), 4.0));
    }

    struct Number(f64);

    impl std::ops::Add for Number {
        type Output = f64;

        #[sde::helper]
        fn add(self, other: Self) -> f64 {
            self.0 + other.0
        }
    }

    #[sde::app]
    fn by_an_operator(x: f64) -> f64 {
        Number(x) + Number(1.0)
    }

    #[test]
    fn an_operator() {
        none_counts(|sde| assert_eq!(*by_an_operator.call(sde, 1.0).unwrap(), 2.0));
    }

    struct Marked;
    struct Unmarked;

    impl Marked {
        #[sde::helper]
        fn of_two_types(&self) -> f64 {
            1.0
        }
    }

    impl Unmarked {
        fn of_two_types(&self) -> f64 {
            2.0
        }
    }

    #[sde::app]
    fn by_a_method() -> f64 {
        Unmarked.of_two_types()
    }

    /// The other, which is not called, counts.
    #[test]
    fn an_unmarked_method_of_equal_name() {
        assert_eq!(Marked.of_two_types(), 1.0);
        let found = counted(|sde| assert_eq!(*by_a_method.call(sde).unwrap(), 2.0));
        assert_eq!(found, ["helpers::blind_spots::of_two_types"]);
    }
}

/// Found by a hostile program: those that one macro call makes have one line and column, and were ordered by what they say: with
/// the texts of two exchanged the old result was used.
#[test]
fn what_a_macro_makes_is_known_by_its_order() {
    macro_rules! steps {
        ($first:expr, $second:expr) => {
            trait Step {
                fn step_of_a_macro(&self) -> f64;
            }
            impl Step for u8 {
                #[sde::helper]
                fn step_of_a_macro(&self) -> f64 {
                    $first
                }
            }
            impl Step for i8 {
                #[sde::helper]
                fn step_of_a_macro(&self) -> f64 {
                    $second
                }
            }
            pub(super) fn steps() -> [f64; 2] {
                [1_u8.step_of_a_macro(), 1_i8.step_of_a_macro()]
            }
        };
    }
    mod one_way {
        steps!(1.0, 2.0);
    }
    mod other_way {
        steps!(2.0, 1.0);
    }
    #[sde::app]
    fn steps(other: bool) -> f64 {
        let step_of_a_macro = other;
        if step_of_a_macro {
            other_way::steps()[0]
        } else {
            one_way::steps()[0]
        }
    }
    let sde = Sde::new();
    steps.call(&sde, true).expect("no error");
    let helpers = sde_tests::records(&sde)[0].setup.helpers.clone();
    assert_eq!(helpers.len(), 2, "{helpers:?}");
    assert_ne!(helpers[0].digest, helpers[1].digest);
}
