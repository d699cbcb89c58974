//! Segments put together from pieces of others, or of themselves: none of it is taken.

use std::path::PathBuf;

use crate::count;
use crate::kit::{Random, Sim};
use crate::script::Script;

/// A store of some processes, whose entries have later versions in the second of two.
fn stores() -> [Script; 2] {
    [3, 4].map(|seed| {
        let mut script = Script::new(Sim::new(), seed).without_kills();
        script.run(40 * (seed - 2));
        script
    })
}

fn segments(sim: &Sim) -> Vec<PathBuf> {
    let mut files = sim.files();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sde"));
    files
}

/// Any part, from where frames may begin or from anywhere.
fn piece(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let length = bytes.len() as u64;
    let align = random.pick(&[1, 8, 512]);
    let from = random.within(0..length) / align * align;
    let to = random.within(from..length) + 1;
    bytes[from as usize..to as usize].to_vec()
}

/// Spliced, doubled, in another order, or of an earlier time.
fn mix(own: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    // The header stays: with another's it would be another's segment, whole.
    let at = random.within(64..own.len() as u64) as usize / 8 * 8;
    match random.within(0..5) {
        0 => [&own[..at], &piece(other, random)].concat(),
        1 => [&own[..at], &piece(own, random), &own[at..]].concat(),
        2 => [&own[at..], &own[..at]].concat(),
        3 => {
            let head = &own[..64.min(own.len())];
            [head, other.get(64..).unwrap_or_default()].concat()
        }
        _ => [&own[..at], &other[at.min(other.len())..]].concat(),
    }
}

#[test]
fn what_is_put_together_is_never_taken() {
    let [script, other] = stores();
    let mut random = Random::new(6);
    let nothing_wrong = script.truth.unacknowledged();
    for round in 0..count(400, 10_000) {
        let sim = script.sim.after_kill();
        let path = random.pick(&segments(&sim));
        let from = random.pick(&segments(&other.sim));
        let from = match random.once_in(2) {
            true => other.sim.content(from),
            false => sim.content(random.pick(&segments(&sim))),
        };
        let mixed = mix(&sim.content(&path), &from, &mut random);
        sim.put(&path, mixed);
        let checked = nothing_wrong.check(&sim, &script.dir, true);
        checked.unwrap_or_else(|why| panic!("round {round}, {path:?}: {why}"));
    }
}

/// Each segment as it was at an earlier time, and under each other's name.
#[test]
fn stale_and_exchanged_segments_are_no_harm() {
    let [script, _] = stores();
    let nothing_wrong = script.truth.unacknowledged();
    let paths = segments(&script.sim);
    for (at, path) in paths.iter().enumerate() {
        let sim = script.sim.after_kill();
        let other = &paths[(at + 1) % paths.len()];
        let (one, two) = (sim.content(path), sim.content(other));
        sim.put(path, two.clone());
        sim.put(other, one.clone());
        nothing_wrong.check(&sim, &script.dir, true).unwrap();
        sim.put(other, two);
        sim.put(path, one[..one.len() / 2].to_vec());
        nothing_wrong.check(&sim, &script.dir, true).unwrap();
    }
}
