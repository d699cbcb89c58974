//! `--image`: a program inside a container.

use super::super::kit::says;
use super::{Desk, Done, is_there};

/// In place of apptainer: notes how it was called, and runs the program in the folder that it is to bind.
const STAND_IN: &str = r#"#!/bin/sh
printf '%s\n' "$0" "$@" > "$NOTES/called"
env > "$NOTES/environment"
while [ $# -gt 0 ]; do
    case $1 in
        --bind) case $2 in *:/sde-run/work) cd "${2%:*}" || exit 1 ;; esac; shift ;;
        --home | --pwd) shift ;;
        *.sif) shift; break ;;
    esac
    shift
done
exec "$@"
"#;

struct Lab {
    desk: Desk,
    notes: String,
}

impl Lab {
    fn new(runtime: &str) -> Self {
        let desk = Desk::new();
        let notes = desk.scratch().parent().unwrap().join("notes");
        std::fs::create_dir(&notes).unwrap();
        let stand_in = STAND_IN.replace("$NOTES", notes.to_str().unwrap());
        desk.write(runtime, &stand_in);
        let path = desk.path(runtime);
        let is_done = std::process::Command::new("chmod")
            .arg("+x")
            .arg(path)
            .status();
        assert!(is_done.unwrap().success());
        desk.write("x.sif", "image");
        desk.write("mol.xyz", "atoms\n");
        let notes = notes.to_str().unwrap().to_owned();
        Self { desk, notes }
    }

    fn exec(&self, options: &[&str], line: &[&str]) -> Done {
        let mut command = self
            .desk
            .command([&["exec"], options, &["--"], line].concat());
        let path = format!("{}:/usr/bin:/bin", self.desk.path.display());
        command
            .env("PATH", path)
            .env("LD_LIBRARY_PATH", "/no-such-libraries")
            .env("SECRET", "s");
        Done::of(command.output().unwrap())
    }

    /// What was noted of the last call.
    fn noted(&self, name: &str) -> String {
        std::fs::read_to_string(format!("{}/{name}", self.notes)).unwrap()
    }

    /// How often something was run since this was asked last.
    fn has_run(&self) -> bool {
        std::fs::remove_file(format!("{}/called", self.notes)).is_ok()
    }
}

#[test]
fn a_program_runs_inside_the_image_and_sees_its_folder_alone() {
    for (runtime, prefix) in [
        ("apptainer", "APPTAINERENV_"),
        ("singularity", "SINGULARITYENV_"),
    ] {
        let lab = Lab::new(runtime);
        let options = ["--image", "x.sif", "-o", "out", "--env", "A=1,2"];
        // No such program is on this machine; `sh` is found by the stand-in.
        let done = lab.exec(
            &options,
            &[
                "sh",
                "-c",
                "read x < mol.xyz; echo $x > out; echo $0",
                "/opt/data",
                "mol.xyz",
            ],
        );
        assert_eq!(
            (done.status, &*done.out),
            (0, "/opt/data\n"),
            "{}",
            done.err
        );
        assert_eq!(lab.desk.read("out"), "atoms\n");
        let called = lab.noted("called");
        let called: Vec<&str> = called.lines().collect();
        assert_eq!(called[1..4], ["exec", "--containall", "--cleanenv"]);
        let folder = called[5].strip_suffix("/work:/sde-run/work").unwrap();
        let image = lab.desk.path("x.sif").display().to_string();
        let expected = [
            "--bind",
            &format!("{folder}/work:/sde-run/work"),
            "--bind",
            &format!("{folder}/tmp:/tmp"),
            "--home",
            &format!("{folder}/home:/sde-run/home"),
            "--pwd",
            "/sde-run/work",
            &image,
            "sh",
            "-c",
        ];
        assert_eq!(called[4..15], expected);
        let environment = lab.noted("environment");
        let environment: Vec<&str> = environment.lines().collect();
        for set in ["A=1,2", "TMPDIR=/tmp"] {
            assert!(
                environment.contains(&&*format!("{prefix}{set}")),
                "{environment:?}"
            );
        }
        assert!(environment.contains(&&*format!("HOME={folder}/home")));
        let is_absent = |name: &str| !environment.iter().any(|set| set.contains(name));
        assert!(
            is_absent("SECRET") && is_absent("no-such-libraries"),
            "{environment:?}"
        );
    }
}

#[test]
fn the_image_and_the_path_inside_it_count() {
    let lab = Lab::new("apptainer");
    lab.desk.write("same.sif", "image");
    lab.desk.write("other.sif", "other image");
    let run = |image: &str, program: &str| {
        let done = lab.exec(&["--image", image], &[program, "mol.xyz"]);
        done.ends(0);
        assert_eq!(done.out, "atoms\n");
        lab.has_run()
    };
    assert!(run("x.sif", "cat"));
    assert!(!run("x.sif", "cat") && !run("same.sif", "cat"));
    assert!(run("other.sif", "cat"));
    assert!(run("x.sif", "/bin/cat"));
    assert!(run("x.sif", "/usr/bin/cat"));
    // Nothing of this machine is in the key, so a machine without apptainer has the results too.
    let mut command = lab
        .desk
        .command(["exec", "--image", "x.sif", "--", "cat", "mol.xyz"]);
    let given = Done::of(
        command
            .env("PATH", "/no-such-folder:/usr/bin")
            .output()
            .unwrap(),
    );
    assert_eq!(
        (&*given.out, lab.has_run()),
        ("atoms\n", false),
        "{}",
        given.err
    );
    lab.desk.write("x.sif", "edited");
    assert!(run("x.sif", "cat"));
}

#[test]
fn what_no_image_can_have_is_refused() {
    let lab = Lab::new("apptainer");
    let cases: &[(&[&str], &str)] = &[
        (&["--uses", "cat"], "--uses cat with --image is refused"),
        (&["--link"], "--link with --image is refused"),
        (
            &["--program-is", "x 1"],
            "--program-is with --image is refused",
        ),
        (&["--trace"], "--trace with --image is refused"),
        (&["--env", "HOME=/x"], "HOME with --image is refused"),
    ];
    for (options, why) in cases {
        let done = lab.exec(
            &[&["--image", "x.sif"], *options].concat(),
            &["cat", "mol.xyz"],
        );
        done.ends(125);
        says(&done.err, why);
    }
    let none = lab.exec(&["--image", "none.sif"], &["cat", "mol.xyz"]);
    none.ends(125);
    says(&none.err, "none.sif");
    let colon = lab.desk.path("a:b");
    std::fs::create_dir(&colon).unwrap();
    let options = ["--image", "x.sif", "--scratch", colon.to_str().unwrap()];
    let refused = lab.exec(&options, &["cat", "mol.xyz"]);
    refused.ends(125);
    says(&refused.err, "a comma or a colon");
    std::fs::remove_file(lab.desk.path("apptainer")).unwrap();
    if is_there("apptainer") || is_there("singularity") {
        return println!("skipped what_no_image_can_have_is_refused: apptainer is there");
    }
    let without = lab.exec(&["--image", "x.sif"], &["cat", "mol.xyz"]);
    without.ends(125);
    says(
        &without.err,
        "--image needs apptainer or singularity, and PATH has neither",
    );
}

/// With the real one, an image of this machine's own programs would be needed; a sandbox of nothing shows that the
/// options are known.
#[test]
fn the_real_apptainer_knows_the_options() {
    if !is_there("apptainer") {
        return println!("skipped the_real_apptainer_knows_the_options: no apptainer");
    }
    let desk = Desk::new();
    desk.write("x.sif", "no image");
    let done = desk.exec(&["--image", "x.sif"], &["true"]);
    assert_ne!(done.status, 0);
    assert!(
        !done.err.contains("unknown flag") && !done.err.contains("Usage:"),
        "{}",
        done.err
    );
}
