//! Entries that are taken out of a store, and results that are said to be wrong.

use std::path::Path;

use sde::{Instance, Key, inputs};

use super::kit::{Sample, Solver, energy, engine, sde};

/// How many runs it takes to have an energy.
fn computes(path: &Path, basis: &str, charge: i32) -> u64 {
    let sde = engine(path);
    energy.call(&sde, basis, charge).unwrap();
    sde.stats().total.computed
}

fn short(key: &Key) -> String {
    key.short()
}

#[test]
fn what_would_go_is_listed_and_then_goes() {
    let sample = Sample::new();
    let files = sample.files();
    let told = sample.run("gc", &["--app", "cli.energy", "--where", "charge=0", "-n"]);
    let told = told.well();
    assert!(told.starts_with("2 entries would be taken out, "), "{told}");
    for key in [&sample.keys.small, &sample.keys.large] {
        assert!(told.contains(&short(key)), "{told}");
    }
    assert!(told.contains("basis=STO-3G charge=0"), "{told}");
    assert!(!told.contains(&short(&sample.keys.invalid)), "{told}");
    assert_eq!(sample.files(), files);
    assert_eq!(computes(&sample.path, "STO-3G", 0), 0);

    let told = sample
        .run("gc", &["--app", "cli.e*", "--where", "charge=0"])
        .well();
    assert!(told.starts_with("2 entries taken out, "), "{told}");
    let listed = sample.run("ls", &[]).well();
    assert!(!listed.contains(&short(&sample.keys.small)), "{listed}");
    assert!(listed.contains(&short(&sample.keys.solver)), "{listed}");
    assert_eq!(computes(&sample.path, "STO-3G", 0), 1);
    assert_eq!(computes(&sample.path, "6-31G*", 0), 1);
    assert!(sample.run("verify", &[]).status == 0, "it is whole");
}

#[test]
fn all_that_is_asked_for_must_hold() {
    let sample = Sample::new();
    let taken = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["--json", "-n"].iter().chain(arguments).copied().collect();
        let told = sample.run("gc", &arguments);
        assert_eq!(told.status, 0, "{}", told.err);
        told.json()["taken_out"].as_u64().unwrap()
    };
    let key = sample.keys.small.to_string();
    assert_eq!(taken(&["--key", &key]), 1);
    assert_eq!(taken(&["--key", &key[..9].to_uppercase()]), 1);
    assert_eq!(taken(&["--key", &key, "--where", "charge=1"]), 0);
    assert_eq!(taken(&["--key", &key, "--app", "cli.evil*"]), 0);
    assert_eq!(taken(&["--key", &key, "--failed"]), 0);
    assert_eq!(taken(&["--where", "charge>=0", "--where", "charge!=9"]), 2);
    assert_eq!(taken(&["--where", "charge<9"]), 2);
    assert_eq!(taken(&["--where", "charge=0.0"]), 2);
    assert_eq!(taken(&["--where", "input charge=9"]), 1);
    // That of the charge 9 alone.
    assert_eq!(taken(&["--where", "result>6"]), 1);
    assert_eq!(taken(&["--where", "tolerance=1e-9"]), 1);
    // Nobody has both.
    assert_eq!(
        taken(&["--where", "charge!=5", "--where", "tolerance!=5"]),
        0
    );
}

/// A failure goes alone; the state of its run with all of the app.
#[test]
fn failures_go_alone_and_states_with_their_app() {
    let sample = Sample::new();
    assert!(
        sample
            .run("ls", &["--failed"])
            .well()
            .contains("interrupted")
    );
    let told = sample.run("gc", &["--failed"]).well();
    assert!(told.starts_with("1 entry taken out"), "{told}");
    assert!(told.contains("interrupted"), "{told}");
    assert_eq!(sample.run("ls", &["--failed"]).well(), "no run failed\n");
    let unfinished = || sample.run("ls", &[]).well().contains("unfinished");
    assert!(unfinished());
    let told = sample.run("gc", &["--app", "cli.iterate"]).well();
    assert!(told.starts_with("1 entry taken out"), "{told}");
    assert!(!unfinished());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let sample = Sample::new();
    for (arguments, told) in [
        (
            &["--where", "bass=1"][..],
            "no entry has a column \"bass\"; there are: ",
        ),
        (
            &["--app", "cli.enrgy"],
            "no app here is called \"cli.enrgy\"",
        ),
        (&["--where", "charge"], "write COLUMN=VALUE"),
        (&["--where", "=3"], "write COLUMN=VALUE"),
        (&["--key", "xyz"], "not a key"),
        (&["--failed", "--capacity", "1G"], "cannot be used with"),
    ] {
        let done = sample.run("gc", arguments);
        assert_eq!(done.status, 2, "{arguments:?}");
        assert!(done.err.contains(told), "{arguments:?}: {}", done.err);
    }
}

/// The code that was used last is current, even if it was made first.
#[test]
fn what_other_code_made_goes() {
    let sample = Sample::new();
    let solve = |order: u32, version: &'static str| {
        let sde = engine(&sample.path);
        let solver = Instance::new(Solver { order, version });
        sde.request(&solver, &inputs! {}).run().unwrap().key
    };
    let old = [solve(5, "2.0"), solve(6, "2.0")];
    let new = solve(5, "3.0");
    let told = sample.run("gc", &["--old-code", "-n"]).well();
    // With the one of the sample.
    assert!(told.starts_with("3 entries would be taken out"), "{told}");
    let told = sample
        .run("gc", &["--old-code", "--where", "order>4"])
        .well();
    assert!(told.starts_with("2 entries taken out"), "{told}");
    let listed = sample.run("ls", &["--app", "cli.Solver"]).well();
    assert!(
        old.iter().all(|key| !listed.contains(&short(key))),
        "{listed}"
    );
    assert!(listed.contains(&short(&new)), "{listed}");
    assert!(listed.contains(&short(&sample.keys.solver)), "{listed}");
}

#[test]
fn what_is_invalid_is_computed_again_and_what_rests_on_it_is_named() {
    let sample = Sample::new();
    let (small, solver) = (short(&sample.keys.small), short(&sample.keys.solver));
    let told = sample
        .run("invalidate", &[&small, "--reason", "a bad node"])
        .well();
    let is = format!("cli.energy [{small}] is not used any more\n");
    let rests = "1 entry rests on that, left as before; --dependents means these too:\n";
    assert_eq!(told, format!("{is}{rests}  cli.Solver [{solver}]\n"));
    let shown = sample.run("show", &[&small]).out;
    assert!(shown.contains("a bad node"), "{shown}");
    assert_eq!(sample.run("show", &[&solver]).status, 0);

    let told = sample.run("invalidate", &[&small, "--undo"]).well();
    assert!(told.contains("is used again\n"), "{told}");
    assert_eq!(computes(&sample.path, "STO-3G", 0), 0);

    let arguments = [&*small, "--reason", "a bad node", "--dependents"];
    let told = sample.run("invalidate", &arguments).well();
    assert!(
        told.contains("1 entry rests on that, and not used any more:"),
        "{told}"
    );
    let shown = sample.run("show", &[&solver]).out;
    assert!(shown.contains("a bad node"), "{shown}");
    assert_eq!(computes(&sample.path, "STO-3G", 0), 1);
    assert_eq!(computes(&sample.path, "STO-3G", 0), 0);
    // What counts now is the new one.
    let refused = sample.run("invalidate", &[&small, "--undo"]);
    assert!(
        refused.err.contains("is not marked as invalid"),
        "{}",
        refused.err
    );
}

#[test]
fn several_are_invalidated_at_once_and_failures_are_not() {
    let sample = Sample::new();
    let keys = [&sample.keys.small, &sample.keys.large].map(short);
    let path = sample.path.to_str().unwrap();
    let arguments = ["--json", "invalidate", "--store", path, &keys[0], &keys[1]];
    let told = sde(arguments.into_iter().chain(["--reason", "wrong units"])).json();
    assert_eq!(told["entries"].as_array().unwrap().len(), 2);
    assert_eq!(told["dependents"].as_array().unwrap().len(), 1);
    assert_eq!(computes(&sample.path, "6-31G*", 0), 1);

    let failed = sde(["--json", "ls", path, "--failed"]).json();
    let failed = failed["key"].as_str().unwrap();
    let refused = sample.run("invalidate", &[failed, "--reason", "x"]);
    assert_eq!(refused.status, 2);
    assert!(
        refused.err.contains("sde gc --failed --key"),
        "{}",
        refused.err
    );
    let refused = sample.run("invalidate", &[&keys[0]]);
    assert!(refused.err.contains("--reason"), "{}", refused.err);
}

/// A text that could be a number is another text than the same number written otherwise.
#[test]
fn a_text_is_compared_as_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for basis in ["1", "01", "1.0"] {
        assert_eq!(computes(&path, basis, 0), 1);
    }
    let taken = |condition: &str| {
        let path = path.to_str().unwrap();
        let told = sde(["gc", path, "-n", "--json", "--where", condition]);
        told.json()["taken_out"].as_u64().unwrap()
    };
    assert_eq!(taken("basis=1"), 1);
    assert_eq!(taken("basis=1.00"), 0);
    assert_eq!(taken("basis!=1"), 2);
    assert_eq!(taken("basis<2"), 3);
    assert_eq!(taken("charge=0.0"), 3);
}

#[test]
fn a_dependent_that_is_marked_already_keeps_its_mark() {
    let sample = Sample::new();
    let (small, solver) = (short(&sample.keys.small), short(&sample.keys.solver));
    sample
        .run("invalidate", &[&solver, "--reason", "its own"])
        .well();
    let arguments = [&*small, "--reason", "a bad node", "--dependents"];
    let told = sample.run("invalidate", &arguments).well();
    assert_eq!(told, format!("cli.energy [{small}] is not used any more\n"));
    let shown = sample.run("show", &[&solver]).out;
    assert!(shown.contains("its own"), "{shown}");
    let undone = sample.run("invalidate", &[&small, "--undo", "--dependents"]);
    undone.well();
    let shown = sample.run("show", &[&solver]).out;
    assert!(shown.contains("its own"), "{shown}");
}
