//! Two commands are one run if all that the program was given is the same, and only then.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use sde_command::Command;

use crate::kit::{Lab, text};

/// Whether a command is computed after a change.
fn computes_after(lab: &Lab, command: &dyn Fn() -> Command, change: impl FnOnce()) -> bool {
    lab.run(&command());
    assert!(lab.run(&command()).is_remembered(), "{:?}", command());
    change();
    let before = lab.runs();
    lab.run(&command());
    lab.runs() > before
}

#[test]
fn the_script_counts_by_content() {
    let lab = Lab::new();
    let script = lab.script("job", "echo 1");
    let edit = || drop(lab.script("job", "echo 2"));
    assert!(computes_after(&lab, &|| lab.command(&script), edit));
}

#[test]
fn a_file_that_an_argument_names_counts_by_content_and_mode() {
    let lab = Lab::new();
    let script = lab.script("job", "cat $1");
    let file = lab.write("data/a.txt", "1");
    let command = || lab.command(&script).arg("data/a.txt");
    assert!(computes_after(&lab, &command, || fs::write(&file, "2").unwrap()));
    let executable = || fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(computes_after(&lab, &command, executable));
    let touched = || fs::write(&file, "2").unwrap();
    assert!(!computes_after(&lab, &command, touched));
}

#[test]
fn a_link_counts_by_the_content_it_leads_to() {
    let lab = Lab::new();
    let script = lab.script("job", "cat $1");
    lab.write("one", "1");
    lab.write("two", "2");
    symlink("one", lab.path("data")).unwrap();
    let command = || lab.command(&script).arg("data");
    let elsewhere = || {
        fs::remove_file(lab.path("data")).unwrap();
        symlink("two", lab.path("data")).unwrap();
    };
    assert!(computes_after(&lab, &command, elsewhere));
    assert_eq!(text(lab.run(&command()).stdout()), "2");
}

#[test]
fn a_file_in_a_tree_counts() {
    let lab = Lab::new();
    let script = lab.script("job", "cat parameters/deep/x");
    let file = lab.write("parameters/deep/x", "1");
    let command = || lab.command(&script).tree("parameters");
    assert!(computes_after(&lab, &command, || fs::write(&file, "2").unwrap()));
    let more = || drop(lab.write("parameters/y", ""));
    assert!(computes_after(&lab, &command, more));
}

#[test]
fn what_is_used_counts_where_it_lies() {
    let lab = Lab::new();
    let table = lab.write("table", "1");
    let script = lab.script("job", &format!("cat {}", table.display()));
    let command = || lab.command(&script).uses(table.to_str().unwrap());
    assert!(computes_after(&lab, &command, || fs::write(&table, "2").unwrap()));
}

#[test]
fn programs_files_and_folders_that_are_used_count() {
    let lab = Lab::new();
    let script = lab.script("job", "echo");
    let helper = lab.script("helper", "echo 1");
    lab.write("folder/x", "1");
    lab.write("table", "1");
    let command = || {
        lab.command(&script)
            .uses("helper")
            .uses("./folder")
            .uses("table")
    };
    let helped = || drop(lab.script("helper", "echo 2"));
    assert!(computes_after(&lab, &command, helped));
    assert!(computes_after(&lab, &command, || drop(
        lab.write("folder/x", "2")
    )));
    assert!(computes_after(&lab, &command, || drop(
        lab.write("table", "2")
    )));
    // Programs are what the text says they are; a file still counts.
    let command = || command().program_is("job 1");
    assert!(!computes_after(&lab, &command, || fs::write(
        &helper,
        "#!/bin/sh\n"
    )
    .unwrap()));
    assert!(computes_after(&lab, &command, || drop(
        lab.write("table", "3")
    )));
}

#[test]
fn arguments_variables_outputs_names_and_input_count() {
    let lab = Lab::new();
    let script = lab.script("job", "cat; touch a b");
    let plain = || lab.command(&script);
    lab.run(&plain());
    let others = [
        plain().arg("x"),
        plain().arg("y"),
        plain().args(["x", "y"]),
        plain().arg("x y"),
        plain().env("N", "1"),
        plain().env("N", "2"),
        plain().output("a"),
        plain().output("a").output("b"),
        plain().name("other"),
        plain().stdin_bytes("1"),
        plain().input_bytes("n", "1"),
        plain().input_bytes("m", "1"),
        plain().program_is("job 1"),
    ];
    for (at, other) in others.iter().enumerate() {
        assert_eq!(lab.runs(), at + 1);
        assert!(!lab.run(other).is_remembered(), "{other:?}");
        assert!(lab.run(other).is_remembered(), "{other:?}");
    }
}

#[test]
fn what_does_not_count_is_another_way_to_say_the_same() {
    let lab = Lab::new();
    let script = lab.script("job", "cat $1; touch a b");
    lab.write("data", "1");
    let command = || lab.command(&script).arg("data").output("a").output("b");
    lab.run(&command());
    let again = [
        lab.command(&script)
            .arg(lab.path("data").to_str().unwrap())
            .input_file(lab.path("data"))
            .output("b")
            .output("?a"),
        command().pass("NOBODY_SETS_THIS"),
        command().text("data").input("data", "data"),
        command().timeout(std::time::Duration::from_secs(99)),
        lab.command(&script)
            .arg("data")
            .input_bytes("data", "1")
            .output("b/")
            .output("a"),
    ];
    for same in &again {
        assert!(lab.run(same).is_remembered(), "{same:?}");
    }
}

#[test]
fn an_input_has_one_name_wherever_it_lies() {
    let lab = Lab::new();
    let script = lab.script("job", "cat mol.xyz");
    for (folder, remembered) in [("a", false), ("b", true)] {
        let file = lab.write(&format!("{folder}/mol.xyz"), "C");
        let file = file.to_str().unwrap();
        let command = lab
            .command(&script)
            .arg(file)
            .arg(format!("--in={file}"))
            .input_file(file);
        assert_eq!(lab.run(&command).is_remembered(), remembered);
    }
}

/// The run has the content of its key, also if somebody edits the file meanwhile.
#[test]
fn an_input_that_is_edited_while_the_program_runs_is_the_old_one() {
    let lab = Lab::new();
    let file = lab.write("data", "1");
    let path = file.display();
    let script = lab.script("job", &format!("echo 2 > {path}; cat data"));
    let command = lab
        .command(&script)
        .arg("data")
        .text(file.to_str().unwrap());
    assert_eq!(text(lab.run(&command).stdout()), "1");
    fs::write(&file, "1").unwrap();
    let again = lab.run(&command);
    assert!(again.is_remembered());
    assert_eq!(text(again.stdout()), "1");
}

#[test]
fn a_linked_input_that_the_program_writes_to_is_an_error() {
    let lab = Lab::new();
    lab.write("data", "1");
    let script = lab.script("job", "echo 2 > data");
    let command = || lab.command(&script).arg("data").link();
    let error = lab.error(&command());
    assert!(
        error.contains("the linked input data: it was changed"),
        "{error}"
    );
    let copied = lab.run(&lab.command(&script).arg("data"));
    assert_eq!(copied.undeclared(), ["data (an input)"]);
}

#[test]
fn the_environment_is_what_is_declared() {
    let lab = Lab::new();
    let script = lab.script("job", "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sed 's/=.*//' | sort; ls $HOME $TMPDIR | wc -w");
    let ran = lab.run(&lab.command(&script).env("N", "1"));
    let names = text(ran.stdout());
    let mut names: Vec<&str> = names.lines().map(str::trim).collect();
    names.retain(|name| *name != "LD_LIBRARY_PATH");
    // `ls` names the two folders it is given.
    assert_eq!(names, ["HOME", "N", "PATH", "TMPDIR", "2"]);
}

#[test]
fn a_program_earlier_in_the_declared_path_is_another_one() {
    let lab = Lab::new();
    let script = lab.script("job", "helper");
    let [one, two] = ["one", "two"].map(|name| {
        lab.script(&format!("{name}/helper"), &format!("echo {name}"));
        lab.path(name).to_str().unwrap().to_owned()
    });
    let path = |first: &str, then: &str| {
        lab.command(&script)
            .env("PATH", format!("{first}:{then}:/usr/bin:/bin"))
    };
    assert_eq!(text(lab.run(&path(&one, &two)).stdout()), "one\n");
    assert_eq!(text(lab.run(&path(&two, &one)).stdout()), "two\n");
}

#[test]
fn the_app_is_named_by_the_program_or_the_script() {
    let lab = Lab::new();
    lab.write("fit.sh", "echo 1");
    let ran = lab.run(&lab.command(Path::new("/bin/sh")).arg("fit.sh"));
    assert_eq!(ran.app(), "fit.sh");
    let script = lab.script("job", "");
    assert_eq!(lab.run(&lab.command(&script)).app(), "job");
    assert_eq!(lab.run(&lab.command(&script).name("mine")).app(), "mine");
}

/// The old result would be given for the old content, though the program may have read the new one.
#[test]
fn what_counts_where_it_lies_must_not_change_while_the_program_runs() {
    let lab = Lab::new();
    let table = lab.write("table", "1");
    let folder = lab.write("folder/x", "1");
    let edits = |path: &Path| format!("echo 2 > {0}; cat {0}; echo 1 > {0}", path.display());
    let job = |name: &str, path: &Path| lab.command(&lab.script(name, &edits(path)));
    let cases = [
        job("one", &table).uses("table"),
        job("two", &folder).uses("folder"),
        lab.command(&lab.script("three", "echo '# more' >> $0")),
    ];
    for command in cases {
        let error = lab.error(&command);
        assert!(
            error.contains("was changed while the program ran"),
            "{error}"
        );
    }
}

#[test]
fn a_variable_with_the_path_of_an_input_has_its_name() {
    let lab = Lab::new();
    let script = lab.script("job", "echo $DATA; cat $DATA");
    let file = lab.write("elsewhere/data", "1");
    let file = file.to_str().unwrap();
    let command = || lab.command(&script).input_file(file).env("DATA", file);
    assert_eq!(
        text(lab.run(&command().env("OTHER", "1")).stdout())
            .lines()
            .next(),
        Some("data")
    );
    assert!(computes_after(&lab, &command, || fs::write(file, "2").unwrap()));
}

#[test]
fn a_program_that_is_an_input_counts_with_its_interpreter() {
    let lab = Lab::new();
    let shell = lab.path("shell");
    fs::copy("/bin/sh", &shell).unwrap();
    let prog = lab.write("bin/prog", &format!("#!{}\necho 1", shell.display()));
    fs::set_permissions(&prog, fs::Permissions::from_mode(0o755)).unwrap();
    let count = lab.script("count_it", "\"$@\"");
    let command = || lab.command(&count).args(["./bin/prog"]).name("counted");
    lab.run(&command());
    assert!(lab.run(&command()).is_remembered());
    let mut other = fs::read(&shell).unwrap();
    other.push(0);
    fs::write(&shell, other).unwrap();
    assert!(!lab.run(&command()).is_remembered());
}

#[test]
fn a_relative_program_is_started_as_it_is_spelled() {
    let lab = Lab::new();
    lab.script("prog", "echo here");
    let env = || lab.command(Path::new("/usr/bin/env"));
    assert_eq!(text(lab.run(&env().arg("./prog")).stdout()), "here\n");
    // An absolute one becomes a path too, not a name that PATH is searched for.
    let prog = lab.path("prog");
    let prog = prog.to_str().unwrap();
    assert_eq!(
        text(lab.run(&env().arg(prog).input_file(prog)).stdout()),
        "here\n"
    );
}

/// Put back by the first call, it must not be an input of the second.
#[test]
fn an_output_is_no_input_however_it_is_spelled() {
    let lab = Lab::new();
    let script = lab.script("job", "mkdir -p d; echo 1 > out; echo 1 > d/a");
    let command = lab
        .command(&script)
        .args(["./out", "d/a", "d/"])
        .output("out")
        .output("d");
    lab.run(&command).put_all(lab.path(".")).unwrap();
    assert!(lab.run(&command).is_remembered());
    let pattern = lab.command(&script).arg("out").output("o*");
    assert!(
        lab.error(&pattern)
            .contains("-i out if it is an input, -o out if it is written")
    );
}

#[test]
fn an_app_is_named_after_what_runs_and_never_after_data() {
    let lab = Lab::new();
    lab.script("prog", "");
    lab.script("time.py", "");
    lab.write("data.csv", "");
    lab.write("fit.pl", "1");
    let app = |program: &str, args: &[&str]| {
        let command = lab.command(Path::new(program)).args(args.iter().copied());
        lab.run(&command.text("ls")).app().to_owned()
    };
    assert_eq!(app("/usr/bin/perl", &["-e", "1", "data.csv"]), "perl");
    assert_eq!(app("/usr/bin/perl", &["-ne", "print", "data.csv"]), "perl");
    assert_eq!(
        app("/usr/bin/perl", &["-w", "fit.pl", "data.csv"]),
        "fit.pl"
    );
    assert_eq!(app("/usr/bin/env", &["./prog", "data.csv"]), "prog");
    assert_eq!(
        app("/usr/bin/env", &["-u", "X", "./prog", "data.csv"]),
        "prog"
    );
    let own = lab.path("time.py");
    // Its words are no programs, though one of a launcher's would be.
    let ran = lab.run(&lab.command(&own).args(["data.csv", "ls"]));
    assert_eq!(ran.app(), "time.py");
}
