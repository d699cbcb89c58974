//! The newest generation is damaged in many ways: the one before it is there, and it is told.

use std::path::PathBuf;

use sde::SavePolicy;

use crate::engine::{all_load, dir, engine, open, page, read_only};
use crate::kit::{Random, Sim};
use crate::log::warnings;

/// Three generations by three processes; page `n` comes with the `n`-th.
fn three() -> (Sim, Vec<PathBuf>) {
    let sim = Sim::new();
    let mut before = sim.files();
    let mut newest = Vec::new();
    for number in 0..3 {
        let sde = engine(open(&sim).unwrap(), SavePolicy::OnRequest);
        page.call(&sde, number).unwrap();
        sde.checkpoint().unwrap();
        std::mem::forget(sde);
        newest = sim.files();
        newest.retain(|path| !before.contains(path));
        before = sim.files();
    }
    (sim, newest)
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let length = bytes.len() as u64;
    let at = random.within(0..length) as usize;
    match random.within(0..6) {
        0 => bytes[at] ^= 1 << random.within(0..8),
        1 => bytes.truncate(at),
        2 => bytes[at..].fill(0),
        3 => {
            let end = (at + 512).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte = !*byte);
        }
        4 => drop(bytes.drain(at..(at + 8).min(length as usize))),
        _ => bytes
            .splice(at..at, random.number().to_le_bytes())
            .for_each(drop),
    }
}

#[test]
fn the_generation_before_counts_and_it_is_told() {
    let (sim, newest) = three();
    assert_eq!(newest.len(), 2, "a segment and a manifest: {newest:?}");
    let mut random = Random::new(9);
    let mut tried = 0;
    while tried < 500 {
        let damaged = sim.after_kill();
        let path = random.pick(&newest);
        let mut bytes = damaged.content(&path);
        let whole = bytes.clone();
        damage(&mut bytes, &mut random);
        if bytes == whole {
            continue;
        }
        tried += 1;
        let is_manifest = path.starts_with(dir().join("manifests"));
        damaged.put(&path, bytes.clone());
        let (store, warned) = warnings(|| read_only(&damaged));
        let told = warned.iter().any(|text| {
            let tail = || text.contains("left out") || text.contains("lost");
            match is_manifest {
                true => text.contains("the generation before it counts instead"),
                false => tail(),
            }
        });
        // What a value lost is found out when it is asked for; all else at once.
        let loads = if is_manifest { 3 } else { 2 };
        let (_, later) = warnings(|| all_load(store, 0..loads));
        let found_out = || {
            let store = read_only(&damaged);
            let (_, warned) = warnings(|| {
                let sde = engine(store, SavePolicy::OnRequest);
                page.call(&sde, 2).unwrap();
                std::mem::forget(sde);
            });
            !warned.is_empty()
        };
        let harmless = || !is_manifest && only_the_end_or_about(&bytes, &whole);
        assert!(
            told || found_out() || harmless(),
            "{path:?}: {warned:?} {later:?}"
        );
    }
}

/// Padding, and what says who wrote a segment, have no reader.
fn only_the_end_or_about(bytes: &[u8], whole: &[u8]) -> bool {
    const HEADER: usize = 64;
    const FRAME_HEADER: usize = 96;
    let about = &whole[HEADER..][..FRAME_HEADER];
    assert_eq!(about[4], 5, "the first frame says who wrote it");
    let metadata = u32::from_le_bytes(about[8..12].try_into().unwrap()) as usize;
    let about = HEADER + FRAME_HEADER..(HEADER + FRAME_HEADER + metadata).next_multiple_of(8);
    let same = bytes.iter().zip(whole).take_while(|(a, b)| a == b).count();
    if same + 8 > whole.len() {
        return true;
    }
    let after = || bytes[about.end..] == whole[about.end..];
    about.contains(&same) && bytes.len() == whole.len() && after()
}
