//! Every bit flipped and every length cut, in every kind of file: never a wrong value.

use std::path::Path;

use crate::count;
use crate::kit::Sim;
use crate::script::Script;

/// A store of about 64 KiB with files of every kind.
fn fixture() -> Script {
    for seed in 0.. {
        let mut script = Script::new(Sim::new(), seed).without_kills();
        while script.sim.bytes() < 56 << 10 {
            script.step();
        }
        let kinds = ["entries", "scratch", "manifests", "FORMAT"];
        let has = |kind: &str| {
            let prefix = script.dir.join(kind);
            script
                .sim
                .files()
                .iter()
                .any(|path| path.starts_with(&prefix))
        };
        if script.sim.bytes() < 72 << 10 && kinds.into_iter().all(has) {
            return script;
        }
    }
    unreachable!("one of them has that size");
}

/// What is found is right; a store whose FORMAT is damaged may be refused.
fn look(script: &Script, sim: &Sim, path: &Path, what: &str) {
    let checked = script.truth.unacknowledged().check(sim, &script.dir, true);
    let refused = path.ends_with("FORMAT");
    match checked {
        Err(why) if refused && why.contains("can't be opened") => {}
        outcome => outcome.unwrap_or_else(|why| panic!("{what} of {}: {why}", path.display())),
    }
}

#[test]
fn a_flip_of_each_bit() {
    let script = fixture();
    let step = count(257, 1) as usize;
    let mut flips = 0;
    for path in script.sim.files() {
        let sim = script.sim.after_kill();
        let bytes = sim.content(&path);
        for bit in (0..bytes.len() * 8).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            sim.put(&path, flipped);
            look(&script, &sim, &path, &format!("bit {bit}"));
            flips += 1;
        }
    }
    println!("{flips} bits flipped in {} bytes", script.sim.bytes());
}

#[test]
fn cut_off_at_each_byte() {
    let script = fixture();
    let step = count(61, 1) as usize;
    let mut cuts = 0;
    for path in script.sim.files() {
        let sim = script.sim.after_kill();
        let bytes = sim.content(&path);
        for length in (0..bytes.len()).step_by(step) {
            sim.put(&path, bytes[..length].to_vec());
            look(&script, &sim, &path, &format!("the first {length} bytes"));
            cuts += 1;
        }
    }
    println!("{cuts} lengths");
}
