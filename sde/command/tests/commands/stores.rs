//! Commands on a store.

use std::fs;
use std::path::Path;

use sde_engine::Sde;

use crate::kit::{Lab, run, text};

#[test]
fn another_process_finds_the_run_with_all_it_wrote() {
    let lab = Lab::new();
    let script = lab.script(
        "job",
        "echo printed; echo warned >&2; echo 1 > a; chmod 700 a",
    );
    let command = lab.command(&script).output("a").get("what", r"(\w+ed)$");
    let store = lab.path("store.sde");
    for round in 0..2 {
        let sde = opened(&store);
        let ran = run(&command, &sde);
        assert_eq!(ran.is_remembered(), round == 1);
        assert_eq!(text(ran.stdout()), "printed\n");
        assert_eq!(text(ran.stderr()), "warned\n");
        assert_eq!(text(ran.read("a")), "1\n");
        assert_eq!(
            format!("{:?}", ran.value("what").unwrap()),
            "Text(\"warned\")"
        );
        sde.finish().unwrap();
    }
    assert_eq!(lab.runs(), 1);
}

fn opened(store: impl AsRef<Path>) -> Sde {
    let builder = sde_archives::builder(store).unwrap();
    builder.quiet().without_signals().build().unwrap()
}

/// A run's folder goes once its files are saved: a sweep would fill the disk.
#[test]
fn nothing_is_left_in_scratch() {
    let lab = Lab::new();
    let scratch = lab.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let script = lab.script("job", "echo 1 > a; mkdir closed; chmod 0 closed");
    let command = lab.command(&script).output("a").scratch(&scratch);
    let sde = opened(lab.path("store.sde"));
    let ran = run(&command, &sde);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 1);
    sde.finish().unwrap();
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
    assert_eq!(text(ran.read("a")), "1\n");
    assert!(run(&command, &sde).is_remembered());
}

#[test]
fn a_damaged_or_missing_content_is_a_miss() {
    let lab = Lab::new();
    let script = lab.script("job", "echo 1 > a");
    let command = lab.command(&script).output("a");
    let ran = lab.run(&command);
    drop(ran);
    // The engine has no store, and the files of its run are gone.
    for folder in fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let kept = folder.path().join("out/0");
        let is_ours = fs::read_to_string(&kept).is_ok_and(|text| text == "1\n");
        if folder.file_name().to_string_lossy().starts_with("sde-run-") && is_ours {
            fs::write(&kept, "another").unwrap();
        }
    }
    assert!(!lab.run(&command).is_remembered());
    assert_eq!(lab.runs(), 2);
}
