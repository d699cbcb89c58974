//! Keying a small input allocates nothing once the thread's buffer is there.

use std::hint::black_box;

use sde::key::{Digest, keyed, with_encoder};
use sde::{Fingerprint, Key, Value};

use super::allocations;

#[derive(Fingerprint)]
struct Settings {
    basis: String,
    thresholds: [f64; 3],
    spin: Option<u8>,
    method: Method,
}

#[derive(Fingerprint)]
enum Method {
    Damped { factor: f64 },
}

fn key(value: &dyn Fingerprint, long: &Value<Vec<f64>>) -> Key {
    let app = Digest::from_bytes([1; 32]);
    with_encoder(|to| {
        to.named("settings", value).unwrap();
        to.named(
            "pair",
            &("text", 1.5_f64, [1_u32, 2, 3], Some(vec![0_u8; 0])),
        )
        .unwrap();
        to.named("long", long).unwrap();
        keyed(&app, to.finish().unwrap())
    })
}

#[test]
fn a_small_input_is_keyed_without_an_allocation() {
    let settings = Settings {
        basis: "6-31G*".into(),
        thresholds: [1e-8, 1e-6, 1e-4],
        spin: None,
        method: Method::Damped { factor: 0.5 },
    };
    let long = Value::new(vec![1.0; 10_000]);
    // The first time makes the thread's buffer, and the digest of the long value.
    let first = key(&settings, &long);
    let again = || {
        for _ in 0..100 {
            assert!(black_box(key(black_box(&settings), &long)) == first);
        }
    };
    assert_eq!(allocations(again), 0);
}
