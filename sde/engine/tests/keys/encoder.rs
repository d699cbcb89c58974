//! The encoder by itself: framing, failure, re-entry.

use sde::Fingerprint;
use sde::key::{
    Digest, Encoder, FingerprintError, FingerprintErrorKind, INLINE_LIMIT, commit, keyed,
    with_encoder,
};

use super::digest;

/// A value that writes several items without saying how many: the encoder must frame them.
struct Careless(Vec<u8>);

impl Fingerprint for Careless {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        for number in &self.0 {
            to.u8(*number);
        }
        Ok(())
    }
}

#[test]
fn a_value_of_several_items_is_framed() {
    let careless = |lists: [&[u8]; 2]| digest(&lists.map(|list| Careless(list.to_vec())));
    assert_ne!(careless([&[1, 2], &[3]]), careless([&[1], &[2, 3]]));
    assert_ne!(careless([&[], &[1]]), careless([&[1], &[]]));
    assert_ne!(digest(&Careless(vec![])), digest(&()));
    assert_ne!(digest(&Careless(vec![1, 2])), digest(&(1_u8, 2_u8)));
    assert_eq!(digest(&Careless(vec![1])), digest(&1_u8));
    // Around the length where a digest takes over, and far beyond.
    let mut seen = std::collections::HashSet::new();
    for count in (500..520).chain([100_000, 100_001]) {
        assert!(
            seen.insert(digest(&Careless(vec![7; count]))),
            "{count} items"
        );
    }
}

struct Failing;

impl Fingerprint for Failing {
    fn fingerprint(&self, _: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        Err(FingerprintError::custom("it has no identity"))
    }
}

/// Goes on after a part has failed, as if it had not.
struct Dropping;

impl Fingerprint for Dropping {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.u8(1);
        let _ = to.value(&Failing);
        Ok(())
    }
}

#[derive(Fingerprint)]
struct Molecule {
    name: String,
    atoms: Vec<(u8, Option<Failing>)>,
}

#[test]
fn a_failure_names_the_path_and_leaves_no_key() {
    let molecule = Molecule {
        name: "H2O".into(),
        atoms: vec![(8, None), (1, Some(Failing))],
    };
    assert_eq!(molecule.name, "H2O");
    let error = commit(&molecule).unwrap_err();
    assert_eq!(error.path(), ".atoms[1].1");
    let got = format!("{error:#}");
    assert_eq!(got, "cannot fingerprint `.atoms[1].1`: it has no identity");
    with_encoder(|to| {
        let error = to.named("geometry", &molecule).unwrap_err();
        assert_eq!(error.path(), ".geometry.atoms[1].1");
        assert!(matches!(
            to.finish().unwrap_err().kind(),
            FingerprintErrorKind::Abandoned
        ));
    });
}

#[test]
fn a_dropped_failure_leaves_no_key() {
    for error in [commit(&Dropping), commit(&vec![Dropping])].map(Result::unwrap_err) {
        let kind = error.kind();
        assert!(matches!(kind, FingerprintErrorKind::Abandoned), "{error}");
    }
}

/// Says a length, gives another.
struct Miscounting(usize);

impl Fingerprint for Miscounting {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.elements(self.0, &[1_u8, 2, 3])
    }
}

#[test]
fn a_wrong_count_is_an_error() {
    assert_eq!(digest(&Miscounting(3)), digest(&[1_u8, 2, 3]));
    for wrong in [0, 2, 4] {
        let error = commit(&Miscounting(wrong)).unwrap_err();
        assert!(
            matches!(error.kind(), FingerprintErrorKind::Count { declared, found: 3, .. } if *declared == wrong)
        );
    }
}

#[test]
fn what_is_finished_is_short() {
    let app = Digest::from_bytes([1; 32]);
    let mut keys = std::collections::HashSet::new();
    for inputs in [0, 1, 2, 50, 100, 101, 102, 103, 110, 10_000] {
        let key = with_encoder(|to| {
            for input in 0..inputs {
                to.named("x", &input).unwrap();
            }
            let bytes = to.finish().unwrap();
            assert!(bytes.len() <= INLINE_LIMIT);
            keyed(&app, bytes)
        });
        assert!(keys.insert(key), "{inputs} inputs");
    }
}

#[test]
fn one_value_and_a_list_of_its_items_differ() {
    // The same bytes, once as one long value, once as a long list of inputs.
    let (value, list) = (Careless(vec![7; 2_000]), vec![7_u8; 2_000]);
    let one = with_encoder(|to| {
        to.value(&value).unwrap();
        to.digest().unwrap()
    });
    let many = with_encoder(|to| {
        list.iter().for_each(|number| to.u8(*number));
        to.digest().unwrap()
    });
    assert_ne!(one, many);
}

#[test]
fn encoders_within_encoders_do_not_mix() {
    let outside = with_encoder(|to| {
        to.str("before");
        let inside = with_encoder(|to| {
            to.str("inside");
            to.digest().unwrap()
        });
        to.value(&inside).unwrap();
        to.str("after");
        to.digest().unwrap()
    });
    let again = with_encoder(|to| {
        to.str("inside");
        to.digest().unwrap()
    });
    let flat = with_encoder(|to| {
        to.str("before");
        to.value(&again).unwrap();
        to.str("after");
        to.digest().unwrap()
    });
    assert_eq!(outside, flat);
}

#[test]
fn what_was_in_the_buffer_is_no_matter() {
    let mut buffer = vec![0xff; 100];
    let mut to = Encoder::new(&mut buffer);
    to.value(&(1_u8, "x")).unwrap();
    let first = to.finish().unwrap().to_vec();
    let mut to = Encoder::new(&mut buffer);
    to.value(&(1_u8, "x")).unwrap();
    assert_eq!(first, to.finish().unwrap());
    // A tuple of a number and a text.
    assert_eq!(first, [0x38, 2, 0x10, 1, 0x31, 1, b'x']);
}

/// Nested so deeply that each level's bytes leave the buffer at another moment.
#[derive(Fingerprint)]
struct Nested {
    padding: Vec<String>,
    inner: Option<Box<Nested>>,
}

#[test]
fn many_open_long_values() {
    let nested = |marks: [usize; 6]| {
        let mut inner = None;
        for mark in marks {
            let padding = vec![format!("padding {mark}"); 1_500];
            inner = Some(Box::new(Nested { padding, inner }));
        }
        digest(&inner)
    };
    let base = nested([1, 2, 3, 4, 5, 6]);
    assert_eq!(base, nested([1, 2, 3, 4, 5, 6]));
    assert_ne!(base, nested([0, 2, 3, 4, 5, 6]));
    assert_ne!(base, nested([1, 2, 3, 4, 5, 0]));
    assert_ne!(base, nested([2, 1, 3, 4, 5, 6]));
}
