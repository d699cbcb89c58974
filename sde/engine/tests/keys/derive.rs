//! `#[derive(Fingerprint)]`: what it writes and what it leaves out.

use sde::Fingerprint;
use sde::key::commit;

use super::{differ, same};

#[derive(Fingerprint)]
struct Metres(f64);

#[derive(Fingerprint)]
struct Feet(f64);

#[derive(Fingerprint)]
#[fingerprint(name = "Metres")]
struct Meters(f64);

#[derive(Fingerprint)]
struct Settings {
    basis: String,
    #[fingerprint(skip)]
    #[allow(dead_code, reason = "only its key is looked at")]
    threads: usize,
    #[fingerprint(round = 3)]
    radius: f64,
}

#[derive(Fingerprint)]
enum Method<T> {
    Plain,
    Damped { keep: T },
    Shifted(T, T),
}

fn settings(basis: &str, threads: usize, radius: f64) -> Settings {
    Settings {
        basis: basis.to_owned(),
        threads,
        radius,
    }
}

#[test]
fn types_are_told_apart_by_their_declared_names() {
    assert_ne!(commit(&Metres(2.0)).unwrap(), commit(&Feet(2.0)).unwrap());
    assert_eq!(commit(&Metres(2.0)).unwrap(), commit(&Meters(2.0)).unwrap());
}

#[test]
fn skipped_fields_do_not_count_and_rounded_ones_count_rounded() {
    let one = commit(&settings("6-31G", 1, 1.0001)).unwrap();
    assert_eq!(one, commit(&settings("6-31G", 8, 1.0002)).unwrap());
    assert_ne!(one, commit(&settings("6-31G", 1, 1.01)).unwrap());
    assert_ne!(one, commit(&settings("3-21G", 1, 1.0001)).unwrap());
}

#[test]
fn variants_and_type_arguments_count() {
    let all = [
        commit(&Method::<f64>::Plain).unwrap(),
        commit(&Method::<f32>::Plain).unwrap(),
        commit(&Method::Damped { keep: 0.5_f64 }).unwrap(),
        commit(&Method::Shifted(0.5_f64, 0.5)).unwrap(),
        commit(&Method::Shifted(0.5_f64, 0.25)).unwrap(),
    ];
    for (i, a) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|b| a != b));
    }
}

#[test]
fn a_short_text_shows_the_fields_that_count() {
    let text = sde::key::describe(&settings("6-31G", 4, 1.5));
    assert!(
        text.contains("basis") && !text.contains("threads"),
        "{text}"
    );
}

#[derive(Fingerprint)]
struct Matrix<const ROWS: usize, const COLUMNS: usize> {
    elements: Vec<f64>,
}

fn matrix<const ROWS: usize, const COLUMNS: usize>() -> Matrix<ROWS, COLUMNS> {
    Matrix {
        elements: vec![1.0; ROWS * COLUMNS],
    }
}

#[test]
fn constants_among_the_arguments_count() {
    same(&matrix::<2, 3>(), &matrix::<2, 3>());
    differ(&matrix::<2, 3>(), &matrix::<3, 2>());
    differ(&None::<Matrix<2, 3>>, &None::<Matrix<3, 2>>);
}

/// What reports progress is no part of the key, and its type needs no fingerprint.
#[derive(Fingerprint)]
#[allow(dead_code, reason = "only its key is looked at")]
struct Reporting<T, F> {
    r#type: T,
    #[fingerprint(skip)]
    report: F,
}

#[test]
fn a_type_in_skipped_fields_only_needs_no_fingerprint() {
    let loud = Reporting {
        r#type: 1_u8,
        report: |x: f64| x,
    };
    let quiet = Reporting {
        r#type: 1_u8,
        report: (),
    };
    assert_eq!(commit(&loud).unwrap(), commit(&quiet).unwrap());
    let other = Reporting {
        r#type: 1_u16,
        report: (),
    };
    assert_ne!(commit(&quiet).unwrap(), commit(&other).unwrap());
    assert!(sde::key::describe(&quiet).contains("type: 1"));
}

/// Types without a size, which stand behind a pointer.
#[derive(Fingerprint)]
struct Borrowed<'a, T: ?Sized>(&'a T);

#[derive(Fingerprint)]
struct Boxed<T>
where
    T: ?Sized,
{
    content: Box<T>,
}

/// The bound that the macro added was `Fingerprint` alone, and this did not compile.
#[test]
fn a_type_argument_may_have_no_size() {
    let text = commit(&Borrowed("6-31G*")).unwrap();
    assert_eq!(text, commit(&Borrowed(&"6-31G*".to_owned())).unwrap());
    assert_ne!(text, commit(&Borrowed(&b"6-31G*"[..])).unwrap());
    let list: Box<[f64]> = Box::new([1.0, 2.0]);
    let object: Box<dyn Fingerprint> = Box::new(Metres(2.0));
    let lists = commit(&Boxed { content: list }).unwrap();
    assert_ne!(lists, commit(&Boxed { content: object }).unwrap());
}
