//! Short texts: one line, bounded, without control characters.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::Path;
use std::time::Duration;

use sde::Fingerprint;
use sde::key::{BySerde, InputFile, Rounded, Short, describe};

#[derive(Fingerprint)]
struct Molecule {
    name: String,
    charge: i32,
    positions: Vec<[f64; 3]>,
}

#[test]
fn each_kind_of_value_says_what_it_is() {
    assert_eq!(describe(&2.5), "2.5");
    assert_eq!(describe(&1e-300), "1e-300");
    assert_eq!(describe(&-3_i8), "-3");
    assert_eq!(describe("6-31G*"), "\"6-31G*\"");
    assert_eq!(describe(&'x'), "'x'");
    assert_eq!(describe(&true), "true");
    assert_eq!(describe(&()), "()");
    assert_eq!(describe(&(1, "a")), "(1, \"a\")");
    assert_eq!(describe(&Some(2.0)), "Some(2.0)");
    assert_eq!(describe(&None::<u8>), "None");
    assert_eq!(describe(&Err::<u8, _>("no")), "Err(\"no\")");
    assert_eq!(describe(&vec![1.0, 2.0]), "[f64; 2] 1.0, 2.0");
    assert_eq!(describe(&vec![String::from("a")]), "[String; 1] \"a\"");
    assert_eq!(describe(&BTreeMap::from([(1, 2)])), "{map of 1}");
    assert_eq!(describe(Path::new("a/b")), "path \"a/b\"");
    assert_eq!(describe(&InputFile::new("a/b")), "content of \"a/b\"");
    assert_eq!(describe(&Duration::from_millis(1500)), "1.5s");
    assert_eq!(describe(&(1..5)), "1..5");
    assert_eq!(describe(&(..=5)), "..=5");
    assert_eq!(describe(&(5..)), "5..");
    assert_eq!(describe(&Rounded::new(0.5, 3)), "0.5 to 3 digits");
    assert_eq!(describe(&BySerde(vec![1])), "Vec<i32> by serde");
    assert_eq!(describe(&PhantomData::<String>), "String");
    let water = Molecule {
        name: "water".into(),
        charge: 0,
        positions: vec![],
    };
    assert_eq!(
        describe(&water),
        "Molecule { name: \"water\", charge: 0, positions: [[f64; 3]; 0] }"
    );
}

#[test]
fn a_long_value_is_cut() {
    let long = [
        describe(&vec![1.0; 100_000]),
        describe(&"x".repeat(100_000)),
        describe(&vec![vec!["text"; 50]; 50]),
        describe(&"é".repeat(100)),
    ];
    for text in long {
        assert_eq!(text.chars().count(), 80, "{text}");
        assert!(text.ends_with('…'), "{text}");
    }
    assert_eq!(describe(&"x".repeat(77)).chars().count(), 79);
    let mut short = Short::new();
    short.show("x".repeat(79));
    assert!(!short.is_full());
    short.show("x");
    assert!(short.is_full());
}

#[test]
fn no_control_character_comes_through() {
    let hostile = "\u{1b}[31mred\n\r\t\0\u{7f}\u{202e}evil\u{200b}\u{feff}";
    let text = describe(hostile);
    assert!(
        text.chars()
            .all(|c| c.is_ascii_graphic() || c == ' ' || c == '…'),
        "{text:?}"
    );
    assert!(text.starts_with("\"\\u{1b}[31mred\\u{a}"), "{text}");
}
