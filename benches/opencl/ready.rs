//! Row 18: live kernels, in a loop.
//!
//! Nothing in it asks the driver, so a simulated driver is enough.

use std::sync::Arc;

use dashmap::DashMap;
use sde::Sde;
use sde::key::FingerprintError;
use sde::key::{BuildKeyHasher, Key, with_encoder};
use sde_benches::table::{Aim, Row};
use sde_benches::{Comparison, Run, Settings, repeat};
use sde_opencl::driver::simulated::Simulated;
use sde_opencl::{Context, Descriptor};

use crate::kernels::{NAME, program};

const KERNELS: usize = 64;

const REFERENCE: &str = "BLAKE3 + DashMap get + Arc clone, different keys";
const REFERENCE_SAME: &str = "BLAKE3 + DashMap get + Arc clone, the same key";
const KERNEL: &str = "ready kernel, another each time";
const SAME: &str = "ready kernel, the same each time";
const LAUNCH: &str = "ready kernel and a launch of its own, the same each time";

/// The bytes that the engine hashes for a kernel.
fn encoded(context: &Context, program: &Descriptor) -> Vec<u8> {
    let bytes = with_encoder(|to| {
        to.named("context", context)?;
        to.named("device", &0_usize)?;
        to.named("program", program)?;
        to.named("name", NAME)?;
        Ok::<_, FingerprintError>(to.finish()?.to_vec())
    });
    bytes.expect("inputs that have fingerprints")
}

/// A scattered order: 29 and 64 have no common factor.
#[inline(always)]
fn at(call: u64) -> usize {
    call as usize * 29 % KERNELS
}

/// The rows.
pub fn rows(settings: Settings) -> Vec<Row> {
    let sde = Sde::new();
    let context = Context::simulated(&Simulated::new())
        .build()
        .expect("a context");
    let programs: Vec<Descriptor> = (0..KERNELS)
        .map(|order| context.describe(0, &program(order)).expect("a description"))
        .collect();
    let keys: Vec<Vec<u8>> = programs.iter().map(|one| encoded(&context, one)).collect();
    let hash = |at: usize| Key::from_bytes(*blake3::hash(&keys[at]).as_bytes());
    let map: DashMap<Key, Arc<u64>, BuildKeyHasher> =
        DashMap::with_hasher(BuildKeyHasher::default());
    let kernel = |at: usize| {
        context
            .kernel(&sde, 0, &programs[at], NAME)
            .expect("a kernel")
    };
    for number in 0..KERNELS {
        map.insert(hash(number), Arc::new(number as u64));
        kernel(number);
    }
    let get = |at: usize| map.get(&hash(at)).map(|value| Arc::clone(&value));
    let mut comparison = Comparison::new(settings);
    comparison.case(REFERENCE, 1, |run: Run| repeat(run, |call| get(at(call))));
    comparison.case(REFERENCE_SAME, 1, |run: Run| {
        repeat(run, |_| get(std::hint::black_box(7)))
    });
    comparison.case(KERNEL, 1, |run: Run| repeat(run, |call| kernel(at(call))));
    comparison.case(SAME, 1, |run: Run| {
        repeat(run, |_| kernel(std::hint::black_box(7)))
    });
    comparison.case(LAUNCH, 1, |run: Run| {
        repeat(run, |_| {
            kernel(std::hint::black_box(7)).launch().expect("a launch")
        });
    });
    let measured = comparison.run();
    let row = |work: &str, reference: &str, aim| Row {
        number: 18,
        work: work.to_owned(),
        reference: reference.to_owned(),
        ratio: measured.ratio(work, reference),
        aim,
        time: measured.nanoseconds(work),
        reference_time: measured.nanoseconds(reference),
    };
    vec![
        row(KERNEL, REFERENCE, Aim::AtMost(0.7)),
        row(SAME, REFERENCE_SAME, Aim::AtMost(1.15)),
        row(LAUNCH, REFERENCE_SAME, Aim::Shown),
    ]
}
