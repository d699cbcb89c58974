//! Names of apps and of what they are given are anything that their authors choose.

use std::sync::atomic::{AtomicU64, Ordering};

use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Policy, ResultMap, ResultSpec, inputs,
};

use super::kit::{engine, says, sde};

#[sde::app(name = "scalar", version = "1")]
fn scalar(steps: u64) -> u64 {
    steps
}

#[sde::app(name = "Scalar", version = "1")]
fn capital(steps: u64) -> u64 {
    steps
}

/// Has a field with the name of another app's input, and results whose names depend on it.
#[derive(Fingerprint)]
struct Steps {
    steps: u64,
}

impl App for Steps {
    fn info(&self) -> AppInfo {
        let result = if self.steps == 0 { "steps" } else { "result" };
        AppInfo::new("cli.Steps", "1").result(ResultSpec::new::<u64>(result))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let result = if self.steps == 0 { "steps" } else { "result" };
        Ok(ResultMap::new().with(result, self.steps))
    }
}

/// A store with runs of all of them.
fn store() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let sde = engine(&path);
    scalar.call(&sde, 3).unwrap();
    capital.call(&sde, 4).unwrap();
    for steps in [0, 1] {
        sde.run(&Steps { steps }, &inputs! {}).unwrap();
    }
    for steps in 10..40 {
        scalar.call(&sde, steps).unwrap();
    }
    sde.finish().unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

/// Names were written in small letters, one of two that were the same then was lost, and `scalar` always.
#[test]
fn stats_has_each_app_by_its_name() {
    let (_folder, path) = store();
    let stats = sde(["stats", &path, "--json"]).json();
    let apps = stats["programs"][0]["apps"].as_object().unwrap();
    let names: Vec<&str> = apps.keys().map(|name| &**name).collect();
    assert_eq!(names, ["Scalar", "cli.Steps", "scalar"]);
    assert_eq!(apps["scalar"]["computed"], 31);
    assert!(apps["scalar"]["time_spent"].is_f64());
}

/// What left memory, and what it costs to have again, was in JSON only.
#[test]
fn stats_tells_what_was_evicted() {
    let (folder, path) = store();
    assert!(!sde(["stats", &path]).well().contains("evicted"));
    let engine = engine(&folder.path().join("store"));
    scalar.call(&engine, 10).unwrap();
    engine.evict("scalar", 0);
    engine.finish().unwrap();
    let text = sde(["stats", &path]).well();
    let line = text
        .lines()
        .find(|line| line.starts_with("evicted"))
        .unwrap();
    assert!(line.starts_with("evicted   1 entry with "), "{text}");
}

#[sde::app(name = "counted", version = "1")]
fn counted() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn stats_tells_of_computations_with_other_bits() {
    let (folder, path) = store();
    assert!(!sde(["stats", &path]).well().contains("differing"));
    let engine = engine(&folder.path().join("store"));
    for policy in [Policy::Use, Policy::Refresh] {
        let inputs = inputs! {};
        let request = engine.request(&counted, &inputs).policy(policy);
        request.run().unwrap();
    }
    engine.finish().unwrap();
    let text = sde(["stats", &path]).well();
    let line = "differing 1 computation had other bits than another of the same key";
    assert!(text.lines().any(|it| it == line), "{text}");
}

/// An input was called `input steps` as soon as another app had a field `steps`.
#[test]
fn a_name_does_not_depend_on_other_apps_or_rows() {
    let (_folder, path) = store();
    let titles = |more: &[&str]| {
        let table = sde([&["table", &path, "--csv"], more].concat()).well();
        table.lines().next().unwrap().to_owned()
    };
    assert_eq!(titles(&["--app", "scalar"]), "steps,result,key");
    let clash = "setting steps,result steps,result,key";
    assert_eq!(titles(&["--app", "cli.Steps"]), clash);
    let last = ["--app", "cli.Steps", "-n", "1"];
    assert_eq!(titles(&last), "steps,result,key");
    let by_key = [&last[..], &["--sort", "setting steps"]].concat();
    assert_eq!(titles(&by_key), "steps,result,key");
    let listed = |app: &str| {
        let listed = sde(["ls", &path, "--json", "-n", "1", "--app", app]).json();
        (listed["inputs"].clone(), listed["settings"].clone())
    };
    let (steps, none) = (
        |of: u64| serde_json::json!({ "steps": of }),
        serde_json::json!({}),
    );
    assert_eq!(listed("scalar"), (steps(39), none.clone()));
    assert_eq!(listed("cli.Steps"), (none, steps(1)));
    let text = sde(["ls", &path]).well();
    says(&text, " steps=3 ");
    says(&text, " steps=1 ");
}

/// It was that of the runs that were made last, whatever their number.
#[test]
fn of_which_app_a_table_is_does_not_depend_on_how_many_rows_it_has() {
    let (_folder, path) = store();
    for more in [&[][..], &["-n", "1"], &["-n", "1", "--app", "*"]] {
        let done = sde([&["table", &path], more].concat());
        assert_eq!(done.status, 2, "{}", done.out);
        let apps = "say which: Scalar, cli.Steps, scalar";
        says(&done.err, apps);
    }
}
