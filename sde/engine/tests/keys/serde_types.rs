//! Foreign types, by what they show serde.

use std::collections::{BTreeMap, HashMap};

use sde::Fingerprint;
use sde::key::{BySerde, commit};
use serde::Serialize;
use serde::ser::{Error as _, Serializer};

use super::digest;

#[derive(Serialize, Clone)]
struct Metres(f64);

#[derive(Serialize)]
struct Feet(f64);

#[derive(Serialize)]
enum Method {
    Plain,
    Damped { keep: f64 },
    Shifted(f64, f64),
}

#[derive(Serialize)]
struct Input {
    name: &'static str,
    lengths: Vec<Metres>,
    options: HashMap<String, i32>,
    bad: Option<Bad>,
}

struct Bad;

impl Serialize for Bad {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("it cannot be shown"))
    }
}

fn input(name: &'static str, bad: Option<Bad>) -> Input {
    let options = (0..20).map(|n| (format!("option {n}"), n)).collect();
    Input {
        name,
        lengths: vec![Metres(1.0); 3],
        options,
        bad,
    }
}

#[test]
fn types_are_told_apart_as_far_as_serde_shows_them() {
    let all = [
        digest(&BySerde(1_u8)),
        digest(&BySerde(1_i32)),
        digest(&BySerde(1.0_f32)),
        digest(&BySerde(1.0_f64)),
        digest(&BySerde(Metres(1.0))),
        digest(&BySerde(Feet(1.0))),
        digest(&BySerde((1_u8, 2_u8))),
        digest(&BySerde(vec![1_u8, 2_u8])),
        digest(&BySerde(Some(1_u8))),
        digest(&BySerde(None::<u8>)),
        digest(&BySerde(())),
        digest(&BySerde(Method::Plain)),
        digest(&BySerde(Method::Damped { keep: 1.0 })),
        digest(&BySerde(Method::Shifted(1.0, 2.0))),
        digest(&BySerde("Plain")),
        digest(&BySerde(BTreeMap::from([(1_u8, 2_u8)]))),
        digest(&BySerde(vec![(1_u8, 2_u8)])),
        digest(&BySerde(vec![vec![1_u8], vec![2]])),
        digest(&BySerde(vec![vec![1_u8, 2], vec![]])),
    ];
    for (i, a) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|b| a != b), "value {i}");
    }
}

#[test]
fn maps_have_no_order_and_long_values_no_limit() {
    let digests: Vec<_> = (0..20)
        .map(|_| digest(&BySerde(input("a", None))))
        .collect();
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
    assert_ne!(digests[0], digest(&BySerde(input("b", None))));
    let long = BTreeMap::from([("x".repeat(2000), vec![1.5; 5000])]);
    let mut other = long.clone();
    assert_eq!(digest(&BySerde(&long)), digest(&BySerde(&other)));
    other.values_mut().for_each(|list| list[4999] = 2.5);
    assert_ne!(digest(&BySerde(&long)), digest(&BySerde(&other)));
}

#[derive(Fingerprint)]
struct Job {
    #[fingerprint(serde)]
    input: Input,
}

#[test]
fn a_failure_names_the_path() {
    let error = commit(&Job {
        input: input("a", Some(Bad)),
    })
    .unwrap_err();
    assert_eq!(error.path(), ".input.bad");
    assert!(
        format!("{error:#}").contains("it cannot be shown"),
        "{error}"
    );
}
