//! A million random bit patterns of floating-point numbers come back as they were, in bulk and one
//! by one.

use sde::archiver::{Archiver, Codec, SavedScratch};
use sde::{ErasedValue, Storable};

use crate::engine::{open, read_only};
use crate::kit::{Random, Sim, made};

fn there_and_back<T: Storable + Clone>(value: &T) -> sde::Value<T> {
    let sim = Sim::new();
    let (value, codec) = (ErasedValue::new(value.clone()), Codec::of::<T>());
    let batch = made::states([SavedScratch::new("numbers", made::key(1), value, codec)]);
    let saved = open(&sim).unwrap().save(&batch).unwrap();
    assert!(saved.left_out.is_empty());
    let payload = read_only(&sim)
        .find_scratch(&made::key(1))
        .unwrap()
        .unwrap();
    payload
        .decode(&Codec::of::<T>())
        .unwrap()
        .downcast()
        .unwrap()
}

#[test]
fn a_million_patterns_keep_their_bits() {
    let mut random = Random::new(13);
    let bits: Vec<u64> = (0..1_000_000).map(|_| random.number()).collect();
    let doubles: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
    let singles: Vec<f32> = bits
        .iter()
        .map(|bits| f32::from_bits(*bits as u32))
        .collect();

    let back = there_and_back(&doubles);
    assert!(back.iter().map(|x| x.to_bits()).eq(bits.iter().copied()));
    let back = there_and_back(&singles);
    let found = back.iter().map(|x| x.to_bits());
    assert!(found.eq(bits.iter().map(|bits| *bits as u32)));

    // Numbers in a structure are written one by one, in the shortest form.
    let pairs: Vec<(f64, Option<f32>)> = doubles
        .into_iter()
        .zip(singles.into_iter().map(Some))
        .collect();
    let back = there_and_back(&pairs);
    let back = back.iter().map(|(x, y)| (x.to_bits(), y.map(f32::to_bits)));
    assert!(back.eq(bits.iter().map(|bits| (*bits, Some(*bits as u32)))));
}
