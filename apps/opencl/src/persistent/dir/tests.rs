use super::*;
use crate::driver::simulated::Simulated;
use crate::{Context, ProgramSpec};

/// A clock that was wrong once must not make a bad binary the one that counts for as long.
#[test]
fn what_is_put_counts_in_place_of_what_a_wrong_clock_dated() {
    let folder = tempfile::tempdir().unwrap();
    let dir = KernelDir::open(Settings::new().dir(folder.path())).unwrap();
    let context = Context::simulated(&Simulated::new()).build().unwrap();
    let spec = ProgramSpec::source("kernel void k() {}");
    let program = context.describe(0, &spec).unwrap();
    let wanted = Wanted {
        key: program.key(),
        full: program.full_key(),
        device_type: context.devices()[0].kind,
    };
    let with = |binary: &str| {
        let stored = StoredProgram {
            key: wanted.key,
            full: wanted.full.clone(),
            device_type: wanted.device_type,
            name: "k".to_owned(),
            binary: binary.as_bytes().to_vec(),
            log: String::new(),
            build_time: Duration::ZERO,
            kernels: Vec::new(),
            launched: Vec::new(),
            checksum: sde::key::Digest::from_bytes([0; 32]),
        };
        stored.seal()
    };
    let mut entry = saved(&with("bad")).unwrap();
    Arc::make_mut(&mut entry.record).made_at += Duration::from_secs(1 << 30);
    let batch = Batch {
        selection: Selection::Archive,
        entries: vec![entry],
        scratch: Vec::new(),
        marks: Vec::new(),
    };
    dir.0.store.save(&batch).unwrap();
    for binary in ["good", "better"] {
        dir.put(&[with(binary)]).unwrap();
        let found = dir.get(&[wanted]).unwrap().pop().flatten().unwrap();
        assert_eq!(found.binary, binary.as_bytes());
    }
}
