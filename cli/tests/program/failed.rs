//! Runs that failed.

use std::fs;

use sde::{AppError, Policy};
use serde_json::Value;
use tempfile::tempdir;

use super::kit::{Done, engine, says, sde, sde_wide};

/// Fails below 3, each time in its own way; 2 only the first time.
#[sde::app(name = "cli.flaky", version = "1")]
fn flaky(number: u64, again: std::path::PathBuf) -> Result<f64, AppError> {
    match number {
        0 => {
            let error = AppError::message("no convergence\nafter 7 steps");
            Err(error.with_output("step 6\nstep 7\n"))
        }
        1 => Err(AppError::message("there is no 1").permanent()),
        2 if !again.exists() => Err(AppError::message("busy")),
        _ => Ok(number as f64),
    }
}

/// A store with two runs that failed, one that failed first, and one that went well.
fn sample() -> (tempfile::TempDir, String) {
    let folder = tempdir().unwrap();
    let (store, again) = (folder.path().join("store"), folder.path().join("again"));
    let run = |sde: &sde::Sde, number| flaky.call(sde, number, again.clone()).is_ok();
    let first = engine(&store);
    assert_eq!(
        [0, 1, 2, 3].map(|number| run(&first, number)),
        [false, false, false, true]
    );
    first.finish().unwrap();
    fs::write(&again, "").unwrap();
    let second = engine(&store);
    assert!(run(&second, 2));
    second.finish().unwrap();
    let store = store.to_str().unwrap().to_owned();
    (folder, store)
}

fn lines(done: Done) -> Vec<Value> {
    let listed = done.well();
    let lines = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

fn number(line: &Value) -> u64 {
    line["inputs"]["number"].as_u64().unwrap()
}

#[test]
fn ls_lists_the_runs_that_failed_and_had_no_result_since() {
    let (_folder, store) = sample();
    let listed = sde(["ls", &store]).well();
    says(&listed, "2 entries, ");
    says(&listed, "\n2 runs failed: --failed\n");
    assert!(!listed.contains("no convergence"), "{listed}");
    let failed = sde_wide(200, ["ls", &store, "--failed"]).well();
    for part in [
        "there is no 1",
        "no convergence",
        "number=0",
        "2 failed runs, ",
        "HOST",
    ] {
        says(&failed, part);
    }
    assert!(
        !failed.contains("busy") && !failed.contains("after 7 steps"),
        "{failed}"
    );
    let numbers: Vec<u64> = lines(sde(["ls", &store, "--json"]))
        .iter()
        .map(number)
        .collect();
    assert_eq!(numbers, [2, 3]);
    let failed = lines(sde(["ls", &store, "--failed", "--json"]));
    assert_eq!(failed.iter().map(number).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(failed[0]["error"], "there is no 1");
    assert_eq!(
        (&failed[0]["lasts"], &failed[1]["lasts"]),
        (&"permanent".into(), &"ordinary".into())
    );
    let latest = sde(["ls", &store, "--failed", "-n", "1"]).well();
    says(&latest, "1 failed run");
    // Those that were superseded too.
    assert_eq!(
        lines(sde(["ls", &store, "--failed", "--all", "--json"])).len(),
        3
    );
}

/// The key of the run of this number.
fn key_of(store: &str, failed: bool, of: u64) -> String {
    let words = ["ls", store, "--json", "--failed"];
    let all = lines(sde(&words[..3 + usize::from(failed)]));
    let line = all.iter().find(|line| number(line) == of).unwrap();
    line["key"].as_str().unwrap().to_owned()
}

#[test]
fn show_and_explain_take_the_key_of_the_run() {
    let (_folder, store) = sample();
    let key = key_of(&store, true, 0);
    for key in [&key[..], &key[..12]] {
        let shown = sde(["show", &store, key]).well();
        for part in [
            "failed      20",
            "lasts       computed again by the next program",
            "error\n  no convergence\n      after 7 steps\n",
            "the end of its output\n  step 6\n      step 7\n",
            "number  0",
        ] {
            says(&shown, part);
        }
        says(&shown, &format!("key         {}", key_of(&store, true, 0)));
        let why = sde(["explain", &store, key]).well();
        says(&why, "and has no result since: no convergence");
    }
    let json: Value = sde(["show", &store, &key, "--json"]).json();
    assert_eq!(
        json["record"]["failure"]["message"],
        "no convergence\nafter 7 steps"
    );
    // One that has a result is shown with it.
    let shown = sde(["show", &store, &key_of(&store, false, 2)]).well();
    assert!(shown.contains("f64") && !shown.contains("busy"), "{shown}");
}

#[test]
fn table_has_a_column_of_errors_where_runs_failed() {
    let (folder, store) = sample();
    let table = sde(["table", &store, "--csv"]).well();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(rows[0], ["number", "again", "result", "error", "key"]);
    let rest: Vec<[&str; 3]> = rows[1..]
        .iter()
        .map(|row| [row[0], row[2], row[3]])
        .collect();
    let expected = [
        ["0", "", "no convergence…"],
        ["1", "", "there is no 1"],
        ["3", "3.0", ""],
        ["2", "2.0", ""],
    ];
    assert_eq!(rest, expected);
    let npz = folder.path().join("all.npz");
    sde(["table", &store, "--npz", npz.to_str().unwrap()]).well();
    let objects = lines(sde(["table", &store, "--json"]));
    assert_eq!(objects[1]["error"], "there is no 1");
    assert_eq!(objects[2]["error"], Value::Null);
}

/// It counted among the keys that begin as another does, and is shown nowhere.
#[test]
fn the_key_under_which_a_failure_lies_is_nobodys() {
    let (_folder, store) = sample();
    let key: sde::Key = key_of(&store, true, 0).parse().unwrap();
    let own = sde::record::failure_key(&key).to_string();
    let shown = sde(["show", &store, &own]);
    assert_eq!(shown.status, 2, "{}", shown.out);
    says(&shown.err, "no entry has a key that begins with");
}

#[test]
fn stats_counts_them_and_diff_does_not() {
    let (folder, store) = sample();
    says(&sde(["stats", &store]).well(), "\n2 runs failed after ");
    let json = sde(["stats", &store, "--json"]).json();
    assert_eq!(
        (&json["failed"], &json["apps"][0]["computed"]),
        (&2.into(), &2.into())
    );
    let other = folder.path().join("other");
    let words = ["copy", &store, other.to_str().unwrap()];
    sde(words).well();
    // A copy has them too.
    says(
        &sde(["ls", other.to_str().unwrap()]).well(),
        "2 runs failed",
    );
    sde(["verify", &store]).well();
}

/// Limits that leave results leave no failures, and the run fails anew.
#[test]
fn gc_takes_them_as_it_takes_intermediates() {
    let (_folder, store) = sample();
    let size = "--min-entry=1M";
    sde(["gc", &store, "--grace", "0s", size]).well();
    says(&sde(["ls", &store]).well(), "2 runs failed");
    sde(["gc", &store, "--grace", "0s", "--capacity", "0"]).well();
    let listed = sde(["ls", &store]).well();
    says(&listed, "2 entries");
    assert!(!listed.contains("failed"), "{listed}");
}

#[test]
fn a_failure_that_is_newer_than_a_result_is_listed() {
    let (folder, store) = sample();
    let again = folder.path().join("again");
    fs::remove_file(&again).unwrap();
    let sde_ = engine(store.as_ref());
    let call = flaky.request(&sde_, (2, again)).policy(Policy::Refresh);
    assert!(call.run().is_err());
    sde_.finish().unwrap();
    drop(sde_);
    let failed = lines(sde(["ls", &store, "--failed", "--json"]));
    assert_eq!(failed.iter().map(number).collect::<Vec<_>>(), [2, 1, 0]);
    // Its result stands.
    says(&sde(["ls", &store]).well(), "2 entries");
}

/// A program that asks is given the result.
#[test]
fn a_table_has_one_row_of_a_key_with_a_result_and_a_later_failure() {
    let folder = tempdir().unwrap();
    let again = folder.path().join("again");
    let stores = ["good", "bad"].map(|name| folder.path().join(name));
    fs::write(&again, "").unwrap();
    for (store, goes_well) in stores.iter().zip([true, false]) {
        let sde = engine(store);
        assert_eq!(flaky.call(&sde, 2, again.clone()).is_ok(), goes_well);
        sde.finish().unwrap();
        let _ = fs::remove_file(&again);
    }
    let [good, bad] = stores.each_ref().map(|path| path.to_str().unwrap());
    sde(["copy", bad, good]).well();
    let table = sde(["table", good, "--csv"]).well();
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(!table.contains("busy"), "{table}");
    // There it is all there is.
    says(&sde(["table", bad, "--csv"]).well(), ",busy,");
}
