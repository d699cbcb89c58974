//! Which store a command is about.

use super::kit::{Done, Sample, done, program, says};

/// A command where this variable names a store, in this folder.
fn run(sample: &Sample, variable: &str, arguments: &[&str]) -> Done {
    let mut command = program();
    command.current_dir(sample.path.parent().unwrap());
    done(
        command
            .env("SDE_STORE", variable)
            .args(arguments)
            .output()
            .unwrap(),
    )
}

#[test]
fn the_store_is_an_option_or_a_directory_or_that_of_the_variable() {
    let sample = Sample::new();
    let path = sample.path.to_str().unwrap();
    let key = sample.keys.solver.to_string();
    let is_listed = |done: Done| done.well().contains("cli.Solver");
    for arguments in [
        &["ls"][..],
        &["show", &key],
        &["explain", &key],
        &["export", &key, "guess", "--json"],
    ] {
        let (variable, named) = (run(&sample, path, arguments), {
            let (command, more) = arguments.split_first().unwrap();
            sample.run(command, more)
        });
        assert_eq!(variable.well(), named.well(), "{arguments:?}");
    }
    // A directory comes before the variable, and the option before both.
    assert!(is_listed(run(&sample, "/nowhere", &["ls", "store"])));
    assert!(is_listed(run(&sample, "/nowhere", &["ls", "-s", "store"])));
    assert!(is_listed(run(
        &sample,
        "/nowhere",
        &["show", "-s", "store", &key]
    )));
    // What is no directory is not taken for a store where there is another.
    let done = run(&sample, path, &["ls", "stroe"]);
    assert_eq!(done.status, 2);
    says(&done.err, "\"stroe\" is an argument too many");
    let done = run(&sample, "/nowhere", &["ls"]);
    assert_eq!(done.status, 2);
    let said =
        "/nowhere, which SDE_STORE names, is not a store that can be opened: it does not exist;";
    says(&done.err, said);
    // An empty variable names none; what stands alone where a key is needed is the key.
    for arguments in [&["ls"][..], &["show", &key]] {
        let done = run(&sample, "", arguments);
        assert_eq!(done.status, 2);
        says(&done.err, "which store?");
    }
}

/// A folder may have a name that could be a key.
#[test]
fn a_folder_with_the_name_of_a_key_can_be_told_from_it() {
    let sample = Sample::new();
    let path = sample.path.to_str().unwrap();
    let key = &sample.keys.solver.to_string()[..8];
    std::fs::create_dir(sample.path.with_file_name(key)).unwrap();
    let taken = run(&sample, path, &["show", key]);
    assert_eq!(taken.status, 2);
    says(&taken.err, "which entry?");
    run(&sample, "", &["show", "-s", path, key]).well();
}

#[test]
fn one_store_is_compared_with_that_of_the_variable() {
    let sample = Sample::new();
    let path = sample.path.to_str().unwrap();
    let copy = sample.path.with_file_name("copy");
    super::kit::copy(&sample.path, &copy);
    for arguments in [&["diff", "copy"][..], &["diff", "-s", "store", "copy"]] {
        let done = run(&sample, path, arguments);
        says(&done.well(), "5 entries the same");
    }
}
