//! `sde table` of runs of several codes: no combination twice, and nothing hidden without a word.

use std::path::Path;

use sde::inputs;

use super::edited::{Helper, program};
use super::kit::{Done, engine, says, sde};

/// The table as a program reads it: the points in order, with who made their results, and what is told besides.
fn table(path: &Path, more: &[&str]) -> (Vec<(i64, String)>, String) {
    let line = ["table", path.to_str().unwrap(), "--app", "code.step"];
    let done = sde([&line[..], &["--csv"], more].concat());
    assert_eq!(done.status, 0, "{}", done.err);
    (rows(&done), done.err)
}

fn rows(done: &Done) -> Vec<(i64, String)> {
    let mut lines = done.out.lines();
    let titles: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |title: &str| titles.iter().position(|known| *known == title);
    let (x, by) = (column("x").unwrap(), column("by").unwrap());
    let rows = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[x].parse().unwrap(), cells[by].to_owned())
    });
    let mut rows: Vec<(i64, String)> = rows.collect();
    rows.sort();
    rows
}

fn made_by(
    points: impl IntoIterator<Item = i64>,
    by: impl Fn(i64) -> &'static str,
) -> Vec<(i64, String)> {
    points.into_iter().map(|x| (x, by(x).to_owned())).collect()
}

#[test]
fn a_half_recomputed_sweep_has_one_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    program(path, ["1", "a"], 0..6);
    let (rows, told) = table(path, &[]);
    assert_eq!(
        rows,
        made_by(0..6, |x| if x % 2 == 1 { "1 a" } else { "1 " })
    );
    assert_eq!(told, "");
    program(path, ["2", "a"], 0..3);
    let (rows, told) = table(path, &[]);
    assert_eq!(
        rows,
        made_by(0..3, |x| if x % 2 == 1 { "2 a" } else { "2 " })
    );
    says(&told, "3 combinations only under other code: --all-code");
    assert!(!told.contains("since"), "{told}");
    // What is looked at by people has it below.
    let line = ["table", path.to_str().unwrap(), "--app", "code.step"];
    let text = sde(line).well();
    says(
        &text,
        "3 runs\n3 combinations only under other code: --all-code\n",
    );

    // All, with a column that tells them apart.
    let all = sde([&line[..], &["--csv", "--all-code"]].concat()).well();
    assert!(all.starts_with("x,by,code,key\n"), "{all}");
    assert_eq!(all.lines().count(), 1 + 6 + 3);
    let codes: Vec<&str> = all
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(2).unwrap())
        .collect();
    assert!(
        codes
            .iter()
            .all(|code| *code == "1" || *code == "2" || code.len() == 8),
        "{all}"
    );

    // One of them, by the version or by the digest. Both of what it has without the helper and with it.
    let of_1 = made_by(0..6, |x| if x % 2 == 1 { "1 a" } else { "1 " });
    let with_helper = all.lines().find(|row| row.contains(",1 a,")).unwrap();
    let digest = with_helper.split(',').nth(2).unwrap();
    for code in ["1", digest, &digest[..5]] {
        let (rows, _) = table(path, &["--code", code]);
        assert_eq!(rows, of_1, "{code}");
    }
    let none = sde([&line[..], &["--code", ""]].concat());
    assert_eq!(none.status, 2);
    says(&none.err, "--code");
    let unknown = sde([&line[..], &["--code", "3"]].concat());
    assert_eq!(unknown.status, 2);
    says(&unknown.err, "no code here is \"3\"");
}

/// An edit that was taken back: what is used counts, not only what was made.
#[test]
fn code_that_is_used_again_is_current_again_and_the_other_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    program(path, ["1", "a"], [0, 2]);
    program(path, ["2", "a"], [0, 2, 4]);
    program(path, ["1", "a"], [0]);
    let (rows, told) = table(path, &[]);
    assert_eq!(rows, made_by([0, 2], |_| "1 "));
    says(&told, "1 combination only under other code");
    says(&told, "other code was used since this one began: 2 (at ");
    says(&told, " UTC on ");
}

#[test]
fn runs_over_an_edited_helper_are_other_code_and_those_without_it_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    program(path, ["1", "a"], 0..6);
    program(path, ["1", "b"], [1]);
    let (rows, told) = table(path, &[]);
    let now = made_by([0, 1, 2, 4], |x| if x % 2 == 1 { "1 b" } else { "1 " });
    assert_eq!(rows, now);
    says(&told, "2 combinations only under other code");
    // By the code of the helper alone no point has two rows.
    let (rows, _) = table(path, &["--all-code"]);
    let all = made_by(0..6, |x| match x {
        1 => "1 b",
        3 | 5 => "1 a",
        _ => "1 ",
    });
    assert_eq!(rows, all);
}

/// A failure of new code does not hide what there is.
#[test]
fn failures_decide_only_where_there_is_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    program(path, ["1", "a"], [0, 2]);
    program(path, ["2", "a"], [-1]);
    let (rows, _) = table(path, &[]);
    assert_eq!(rows, made_by([0, 2], |_| "1 "));
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    program(path, ["1", "a"], [-1]);
    program(path, ["2", "a"], [-1]);
    let line = [
        "table",
        path.to_str().unwrap(),
        "--app",
        "code.step",
        "--csv",
    ];
    let done = sde(line);
    assert_eq!(done.out.lines().count(), 2, "{}", done.out);
}

/// What `sde gc --old-code` would take out.
fn gone(path: &Path) -> serde_json::Value {
    let told = sde(["gc", path.to_str().unwrap(), "--old-code", "-n", "--json"]);
    assert_eq!(told.status, 0, "{}", told.err);
    told.json()
}

/// How many entries it would take out.
fn old(path: &Path) -> u64 {
    gone(path)["taken_out"].as_u64().unwrap()
}

/// The newest code has nothing that counts: it is named, and its runs are not old.
#[test]
fn newer_code_whose_runs_failed_or_are_invalid_is_named_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    program(path, ["1", "a"], [0, 2]);
    program(path, ["2", "a"], [-1]);
    let (_, told) = table(path, &[]);
    says(&told, "other code was used since this one began: 2 (at ");
    program(path, ["3", "a"], [4]);
    let line = ["ls", path.to_str().unwrap(), "--json", "-n", "1"];
    let listed = sde(line).json();
    assert_eq!(listed["code"]["version"], "3", "{listed}");
    let key = listed["key"].as_str().unwrap();
    let line = ["invalidate", path.to_str().unwrap(), key, "--reason", "bad"];
    sde(line).well();
    let (rows, told) = table(path, &[]);
    assert_eq!(rows, made_by([0, 2], |_| "1 "));
    says(&told, "since this one began: 3 (at ");
    says(&told, "; 2 (at ");
    assert_eq!(old(path), 0);
    // What is older than that which counts is old, whatever became of it.
    program(path, ["4", "a"], [0]);
    assert_eq!(old(path), 4);
}

#[test]
fn what_runs_of_current_code_rest_on_is_not_old() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("store");
    program(path, ["1", "a"], [1]);
    let sde = engine(path);
    sde.run(&Helper { version: "b" }, &inputs! {}).unwrap();
    sde.finish().unwrap();
    assert_eq!(old(path), 0);
    // Nothing that counts rests on it any more.
    program(path, ["2", "b"], [1]);
    assert_eq!(old(path), 2);
}

/// A use of a key is one of the result that counts, not of the one that this replaced.
#[test]
fn what_a_result_of_other_code_replaced_is_old_though_its_key_is_used() {
    for [before, now] in [["a", "b"], ["b", "a"]] {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("store");
        for helper in [before, now, now] {
            program(path, ["1", helper], [1]);
        }
        let gone = gone(path);
        let apps = gone["first"].as_array().unwrap().iter();
        let apps: Vec<&str> = apps.map(|one| one["app"].as_str().unwrap()).collect();
        assert_eq!(apps, ["code.helper"], "{before} {now}");
    }
}
