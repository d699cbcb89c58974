//! Row 7: the engine's overhead when it runs an app that does nothing.

use crate::work::hash;
use sde::Sde;
use sde::key::{BuildKeyHasher, with_encoder};
use sde_benches::table::{Aim, Row};
use sde_benches::{Comparison, Run, Settings, repeat};
use std::sync::Arc;

const MISS: &str = "miss of an empty app, typed call";
const MOKA: &str = "BLAKE3 + moka `get_with` inserting";

#[sde::app]
fn nothing(step: u64) -> u64 {
    step
}

/// Row 7.
pub fn rows(settings: Settings) -> Vec<Row> {
    let sde = Sde::new();
    // Without a bound, as the engine has none: evictions are not to be measured.
    let moka = moka::sync::Cache::<sde::Key, Arc<u64>>::builder()
        .build_with_hasher(BuildKeyHasher::default());
    let settings = Settings {
        warm_up: 0,
        ..settings
    };
    let mut comparison = Comparison::new(settings);
    comparison.case(MISS, 1, |run: Run| {
        repeat(run, |step| nothing.call(&sde, step));
    });
    comparison.case(MOKA, 1, |run: Run| {
        repeat(run, |step| {
            let key = with_encoder(|to| {
                to.named("step", &step)?;
                Ok::<_, sde::key::FingerprintError>(hash(to.finish()?))
            });
            moka.get_with(key.unwrap(), || Arc::new(step))
        });
    });
    let measured = comparison.run();
    vec![Row {
        number: 7,
        work: MISS.to_owned(),
        reference: MOKA.to_owned(),
        ratio: measured.ratio(MISS, MOKA),
        aim: Aim::AtMost(1.6),
        time: measured.nanoseconds(MISS),
        reference_time: measured.nanoseconds(MOKA),
    }]
}
