//! A helper may be called anything, and an app may name anything: the compiler refuses nothing of it, and no lint finds
//! what the macros make.

#![deny(
    dead_code,
    nonstandard_style,
    unused,
    unused_qualifications,
    unreachable_pub,
    missing_debug_implementations
)]

use std::fmt::Debug;

use Kind::{First, Second};
use energy::{energy, kinetic};
use first_glob::*;
use named_so::named_so;
use second_glob::*;

/// A module may be called as a function is, marked or not, and be imported with it.
mod energy {
    pub(super) fn energy(x: f64) -> f64 {
        x
    }

    #[sde::helper(by_name)]
    pub(super) fn kinetic(x: impl Into<f64>) -> f64 {
        x.into()
    }
}

mod kinetic {}

mod named_so {
    #[sde::helper]
    pub(super) fn named_so(x: f64) -> f64 {
        largest(x)
    }

    #[sde::helper]
    pub(in crate::odd_names::named_so) fn largest(x: f64) -> f64 {
        x
    }
}

/// Two globs bring what is ambiguous, so long as nobody names it.
mod first_glob {
    pub(super) mod shift {}
    #[sde::helper]
    pub(super) fn twice<T: Copy>(x: T) -> [T; 2] {
        [x, x]
    }
}

mod second_glob {
    pub(super) mod shift {}
    pub(super) fn größe(x: f64) -> f64 {
        x
    }
}

struct Pair<T>(T, T);

trait Show: Debug {
    #[sde::helper]
    fn provided() -> f64 {
        OFFSETS[1]
    }

    #[sde::helper]
    const IN_TRAIT: f64 = 1.0;
}

impl Show for f64 {}

#[derive(Clone, Copy)]
enum Kind {
    First,
    Second,
}

macro_rules! odd_step {
    ($x:expr) => {
        $x
    };
}

#[sde::helper]
fn odd_step(x: f64) -> f64 {
    odd_step!(x)
}

#[sde::helper]
type OddReal<const N: usize> = [f64; N];

#[sde::helper]
struct OddGrid {
    spacing: f64,
}

impl OddGrid {
    #[sde::helper]
    fn without_self(x: f64) -> f64 {
        x * Self::IN_IMPL
    }

    #[sde::helper]
    const IN_IMPL: f64 = 2.0;
}

trait OfSpacing {
    fn of_spacing(spacing: OddReal<1>) -> Self;
}

impl OfSpacing for OddGrid {
    #[sde::helper]
    fn of_spacing([spacing]: [f64; 1]) -> OddGrid {
        OddGrid { spacing }
    }
}

#[sde::helper]
static OFFSETS: OddReal<2> = [0.0; 2];

#[sde::helper]
const fn odd_recursive(n: u32) -> u32 {
    if n == 0 { 0 } else { odd_recursive(n - 1) }
}

#[sde::helper]
fn r#try<'a>(f: impl Fn(f64) -> f64, more: &'a [f64], _: &[f64]) -> (f64, &'a [f64]) {
    (f(1.0), more)
}

#[sde::helper]
extern "C" fn foreign() -> f64 {
    0.0
}

/// In an `impl` and out of it, which the attribute can't tell.
macro_rules! made {
    ($name:ident $body:expr) => {
        #[sde::helper]
        fn $name() -> f64 {
            $body
        }

        struct Made;

        impl Made {
            #[sde::helper]
            fn $name() -> f64 {
                $body
            }
        }
    };
}
made!(of_a_macro 1.0);

/// Found by attacking it: a generic argument and the first word of a path are looked for among traits first, so that
/// the hidden trait of the helper's name was found there.
mod named_as_else {
    #[sde::helper]
    const WIDTH: usize = 3;

    #[sde::helper]
    static OTHER: usize = 2;

    struct Row<T, const N: usize>([T; N]);

    fn zeros<const N: usize>() -> [f64; N] {
        [0.0; N]
    }

    #[sde::helper]
    fn std(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() + std::f64::consts::PI
    }

    #[sde::helper]
    fn u16(x: f64) -> u16 {
        x as u16
    }

    #[sde::helper]
    fn tempfile() -> bool {
        tempfile::tempdir().is_ok()
    }

    #[sde::app]
    pub(super) fn odd_widths(x: f64) -> f64 {
        let row: Row<Vec<f64>, WIDTH> = Row([vec![x], vec![], vec![]]);
        let width = row.0.len() + zeros::<WIDTH>().len() + OTHER;
        width as f64 + std(&row.0[0]) + f64::from(u16(x)) + f64::from(u8::from(tempfile()))
    }
}

#[sde::app]
fn odd(x: f64, r#type: f64) -> Result<f64, Box<dyn std::error::Error>> {
    fn nested<T: Debug>(x: T) -> T {
        x
    }
    let (shift, grow) = (1.0, |y: f64| y + r#type);
    let shift = match Some(shift) {
        Some(shift) => shift + 0.0,
        None => 0.0,
    };
    let kind = if x > 1.0 { First } else { Second };
    let order = match kind {
        First => odd_recursive(2),
        Second => 1,
    };
    'outer: loop {
        if order < u32::MAX {
            break 'outer;
        }
    }
    let odd_step =
        odd_step(x) + odd_step!(x) + energy(x) + kinetic(1_u8) + named_so(x) + größe(shift);
    let grid =
        OddGrid::without_self(1.0) + OddGrid::of_spacing([1.0]).spacing + <f64 as Show>::provided();
    let made = of_a_macro() + Made::of_a_macro() + f64::IN_TRAIT + foreign() + grow(nested(x));
    let (tried, more) = r#try(|x| x, &[1.0], &[]);
    let Pair(text, _) = Pair(format!("{x} {:?} {OFFSETS:?}", twice(x)), String::new());
    drop(text);
    Ok(odd_step + grid + made + tried + more[0] + OFFSETS[..1].iter().sum::<f64>())
}

#[test]
fn nothing_is_refused() {
    #[sde::helper]
    fn local(x: f64) -> f64 {
        x
    }
    #[sde::app]
    fn in_a_function(x: f64) -> f64 {
        local(x) + odd_step(x)
    }
    let sde = sde::Sde::new();
    assert_eq!(*in_a_function.call(&sde, 1.0).expect("no error"), 2.0);
    assert!(*odd.call(&sde, 0.5, 1.0).expect("no error") > 0.0);
    let widths = named_as_else::odd_widths.call(&sde, 0.0);
    assert!(*widths.expect("no error") > 9.0);
}

/// The macro's own variables had these names, and did not compile beside apps of that name.
mod named_as_variables_of_macros {
    #[sde::app(name = "odd_names.inner")]
    fn inner(x: u64) -> u64 {
        x
    }

    #[sde::app(name = "odd_names.inputs")]
    fn inputs(x: u64) -> u64 {
        x
    }

    #[test]
    fn they_are_called() {
        let sde = sde::Sde::new();
        let found = sde.run(&inner, &sde::inputs! { x: 1_u64 });
        assert_eq!(*found.unwrap().get::<u64>("result").unwrap(), 1);
        assert_eq!(*inputs.call(&sde, 2).unwrap(), 2);
    }
}
