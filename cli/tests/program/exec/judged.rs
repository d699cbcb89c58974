//! One run is judged alike by all that judge it.

use serde_json::Value;

use super::super::kit::says;
use super::Desk;

const WRITES: &str =
    "mkdir d; echo 1 > d/x; echo a > traj1.xyz; echo b > traj2.xyz; echo c > 'a \"b\"'";

/// Options that declare so many outputs that the list is cut off where it is shown.
fn outputs() -> Vec<String> {
    let many = (0..24).map(|number| format!("?an-output-that-is-never-written-{number}"));
    let own = ["traj*.xyz", "d", "a \"b\"", "?zz-none"].map(str::to_owned);
    many.chain(own)
        .flat_map(|name| ["-o".to_owned(), name])
        .collect()
}

/// Whether a run with this option passes, as each of the commands tells.
fn passes(option: [&str; 2], fails_by: &str) -> bool {
    let desk = Desk::new();
    desk.script("writes.sh", WRITES);
    let outputs = outputs();
    let outputs: Vec<&str> = outputs.iter().map(|one| &**one).collect();
    let with = |more: &[&str]| {
        let options = [&outputs[..], &["--name", "writes"], &option, more].concat();
        desk.exec_script(&options, "writes.sh")
    };
    let made = with(&[]);
    let passes = made.status == 0;
    let why = |more: &[&str]| with(&[more, &["--why"]].concat()).well();
    says(
        &why(&[]),
        match passes {
            true => "UTC; passes: it would be given\n",
            false => "UTC; fails: it would run again, since it failed so when it was made; ",
        },
    );
    if !passes {
        says(
            &why(&["--keep-failures"]),
            "fails: it would be given as a failure; ",
        );
        with(&["--keep-failures"]).ends(1);
    }
    says(&why(&["--again"]), "UTC; would run, since --again");
    assert_eq!(desk.runs(), 1, "{option:?}");
    let listed = desk.sde(&["ls", "--json"]).well();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let note = (!passes).then_some("fails");
    assert_eq!(listed["note"].as_str(), note, "{option:?}");
    let table = desk.sde(&["table", "--csv"]);
    assert_eq!(table.out.lines().count(), 2, "{option:?}: {table:?}");
    assert_eq!(table.out.contains(",error,"), !passes, "{option:?}");
    let shown = desk.sde(&["show", listed["key"].as_str().unwrap()]).well();
    match passes {
        true => says(&shown, "judged      passes"),
        false => {
            for told in [&made.err, &table.out, &shown] {
                says(told, fails_by);
            }
            says(&shown, "judged      fails: ");
        }
    }
    passes
}

#[test]
fn patterns_folders_and_missing_outputs_are_judged_alike() {
    assert!(passes(["--require", "traj*.xyz:b"], ""));
    assert!(!passes(["--reject", "traj*.xyz:b"], "reject traj*.xyz:b"));
    assert!(passes(["--require", "d:1"], ""));
    assert!(!passes(["--reject", "d:1"], "reject d:1"));
    assert!(passes(["--require", "a \"b\":c"], ""));
    assert!(!passes(["-o", "missing"], "output missing"));
    assert!(!passes(["-o", "none*"], "output none*"));
    assert!(passes(["--get", "?n=zz-none:(.*)"], ""));
    assert!(passes(["--reject", "zz-none:x"], ""));
    assert!(!passes(["--require", "zz-none:x"], "require zz-none:x"));
}

#[test]
fn a_rule_that_is_new_is_told_by_why() {
    let desk = Desk::new();
    desk.script("some.sh", "echo out");
    desk.exec_script(&["--require", "out"], "some.sh").well();
    let new = ["--require", "out", "--reject", "o"];
    let told = "fails: the call would fail and nothing run, since that rule is new: --again runs it; \
                something that it wrote matches (reject o)";
    let why = desk.exec_script(&[&new[..], &["--why"]].concat(), "some.sh");
    says(&why.well(), told);
    desk.exec_script(&new, "some.sh").ends(1);
    assert_eq!(desk.runs(), 1);
}

#[test]
fn runs_that_fail_by_rules_are_counted_and_taken_out_with_failures() {
    let desk = Desk::new();
    desk.script("some.sh", "echo out $2");
    let run = |rule: [&str; 2], word: &str| {
        let line = ["--", "sh", "some.sh", &desk.counter, word];
        let options = ["exec", "--name", "some", "--text", &desk.counter];
        desk.sde(&[&options[..], &rule, &line].concat())
    };
    run(["--require", "out"], "one").well();
    run(["--require", "two"], "one").ends(1);
    run(["--require", "two"], "two").well();
    let failed = || {
        let stats: Value = serde_json::from_str(&desk.sde(&["--json", "stats"]).well()).unwrap();
        let listed = desk.sde(&["ls", "--failed", "--json"]).well();
        assert_eq!(stats["failed"], listed.lines().count());
        let told = match listed.lines().count() {
            0 => None,
            _ => Some("1 run failed: --failed"),
        };
        let list = |more: &[&str]| desk.sde(&[&["ls"], more].concat()).well();
        for text in [list(&[]), list(&["-n", "0", "--sort", "size"])] {
            let last = text.lines().last();
            assert_eq!(last.filter(|line| line.contains("failed")), told, "{text}");
        }
        stats["failed"].as_u64().unwrap()
    };
    assert_eq!(failed(), 1);
    let gc = |more: &[&str]| desk.sde(&[&["gc", "--failed", "--grace", "0s"], more].concat());
    let listed = gc(&["-n"]).well();
    says(&listed, "1 entry would be taken out");
    says(&listed, "require two");
    gc(&["--app", "none*", "-n"]).ends(2);
    says(&gc(&[]).well(), "1 entry taken out");
    assert_eq!(failed(), 0);
    // The one that passes is given.
    let runs = desk.runs();
    run(["--require", "two"], "two").well();
    assert_eq!(desk.runs(), runs);
    run(["--require", "out"], "one").well();
    assert_eq!(desk.runs(), runs + 1);
}
