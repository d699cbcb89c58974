//! Rows 5 and 6: large data, where only the speed and the number of hashings count.

use sde::key::{Digest, commit, keyed, set_hash_threads, with_encoder};
use sde::{Sde, Value};
use sde_benches::table::{Aim, Row};
use sde_benches::{Comparison, Measured, Run, Settings, repeat};
use std::sync::{Mutex, PoisonError};

/// 64 MiB.
const NUMBERS: usize = 8 << 20;

const ONE: &str = "BLAKE3 `update`";
const ALL: &str = "BLAKE3 `update_rayon`";
const KEY_ONE: &str = "keying 64 MiB of f64, one thread";
const KEY_ALL: &str = "keying 64 MiB of f64, all threads";
const PUBLISH_ONE: &str = "publishing 64 MiB and keying it once, one thread";
const PUBLISH_ALL: &str = "publishing 64 MiB and keying it once, all threads";
const AGAIN: &str = "keying a published result of 64 MiB again";

/// The result of the app, made before, so that publishing is measured and not filling memory.
static MADE: Mutex<Option<Vec<f64>>> = Mutex::new(None);

#[sde::app]
fn field(step: u64) -> Vec<f64> {
    let _ = step;
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner).take();
    made.unwrap_or_default()
}

fn numbers() -> Vec<f64> {
    (0..NUMBERS).map(|number| number as f64 * 0.25).collect()
}

fn bytes(numbers: &[f64]) -> &[u8] {
    bytemuck::cast_slice(numbers)
}

/// The key of a run with this value as its one input.
fn key_of(value: &Value<Vec<f64>>) -> sde::Key {
    let app = Digest::from_bytes([7; 32]);
    let key = with_encoder(|to| {
        to.named("field", value)?;
        Ok::<_, sde::key::FingerprintError>(keyed(&app, to.finish()?))
    });
    key.unwrap()
}

/// Publishes 64 MiB and keys it, then takes the memory back for the next call.
fn publish(sde: &Sde, step: u64) -> sde::Key {
    let value = field.call(sde, step).unwrap();
    assert_eq!(value.len(), NUMBERS);
    let key = key_of(&value);
    sde.clear_app("field").unwrap();
    *MADE.lock().unwrap() = Value::try_unwrap(value).ok();
    key
}

fn measure(settings: Settings) -> Measured {
    let sde = Sde::new();
    let data = numbers();
    *MADE.lock().unwrap() = Some(numbers());
    let mut comparison = Comparison::new(settings);
    comparison.case(ONE, 1, |run: Run| {
        repeat(run, |_| {
            blake3::Hasher::new().update(bytes(&data)).finalize()
        });
    });
    comparison.case(ALL, 1, |run: Run| {
        repeat(run, |_| {
            blake3::Hasher::new().update_rayon(bytes(&data)).finalize()
        });
    });
    for (name, threads) in [(KEY_ONE, 1), (KEY_ALL, 0)] {
        let data = &data;
        comparison.case(name, 1, move |run: Run| {
            set_hash_threads(threads);
            repeat(run, |_| commit(data).unwrap());
        });
    }
    for (name, threads) in [(PUBLISH_ONE, 1), (PUBLISH_ALL, 0)] {
        let sde = &sde;
        comparison.case(name, 1, move |run: Run| {
            set_hash_threads(threads);
            repeat(run, |step| publish(sde, step));
        });
    }
    comparison.run()
}

fn measure_again(settings: Settings) -> Measured {
    let value = Value::new(numbers());
    key_of(&value);
    let mut comparison = Comparison::new(settings);
    comparison.case(AGAIN, 1, |run: Run| repeat(run, |_| key_of(&value)));
    comparison.run()
}

/// Rows 5 and 6. An operation takes tens of milliseconds, so there are fewer rounds.
pub fn rows(settings: Settings) -> Vec<Row> {
    let few = Settings {
        rounds: settings.rounds.min(31),
        warm_up: 0,
        ..settings
    };
    let measured = measure(few);
    // Row 5 compares rates, the others times.
    let row = |number, work: &str, reference: &str, aim| Row {
        number,
        work: work.to_owned(),
        reference: reference.to_owned(),
        ratio: match aim {
            Aim::AtLeast(_) => measured.ratio(reference, work),
            _ => measured.ratio(work, reference),
        },
        aim,
        time: measured.nanoseconds(work),
        reference_time: measured.nanoseconds(reference),
    };
    let mut rows = vec![
        row(5, KEY_ONE, ONE, Aim::AtLeast(0.95)),
        row(5, KEY_ALL, ALL, Aim::AtLeast(0.9)),
        row(6, PUBLISH_ONE, ONE, Aim::AtMost(1.05)),
        row(6, PUBLISH_ALL, ALL, Aim::AtMost(1.05)),
    ];
    rows.push(Row {
        number: 6,
        work: AGAIN.to_owned(),
        reference: "-".to_owned(),
        ratio: None,
        aim: Aim::Nanoseconds(150.0),
        time: measure_again(settings).nanoseconds(AGAIN),
        reference_time: None,
    });
    rows
}
