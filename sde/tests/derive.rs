//! `#[derive(Fingerprint)]`: what it writes and what it leaves out.

use sde::Fingerprint;
use sde::key::commit;

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
    #[allow(dead_code)]
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
    Settings { basis: basis.to_owned(), threads, radius }
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
    assert!(text.contains("basis") && !text.contains("threads"), "{text}");
}
