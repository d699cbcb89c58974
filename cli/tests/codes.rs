//! `sde exec` with programs that scientists use: xtb (quantum chemistry) and Clustal Omega (alignment of proteins).
//!
//! `./test` installs both. Where one is missing, its tests pass and say that they are skipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

const PAGE: &str = include_str!("../../docs/guide/10-commands.md");
const MOLECULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/molecules");
const FAMILY: &str = "\
>human\nMVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHF\n\
>horse\nMVLSAADKTNVKAAWSKVGGHAGEYGAEALERMFLGFPTTKTYFPHF\n\
>carp\nSLSDKDKAAVKIAWAKISPKADDIGAEALGRMLTVYPQTKTYFAHW\n";

/// Options of the page's first line.
const RULES: [&str; 4] = [
    "--require",
    "normal termination",
    "--get",
    r"energy=TOTAL ENERGY +(\S+)",
];

/// A folder with the molecules in it, and a store of its own.
struct Lab(TempDir);

impl Lab {
    /// `None` where one of these programs is missing.
    fn new(test: &str, programs: &[&str]) -> Option<Self> {
        let missing = programs.iter().find(|program| {
            let tried = Command::new(program).arg("--version").output();
            tried.is_err()
        });
        if let Some(program) = missing {
            println!("skipped {test}: there is no {program}");
            return None;
        }
        let lab = Self(tempfile::tempdir().unwrap());
        for name in molecules() {
            fs::copy(Path::new(MOLECULES).join(&name), lab.path(&name)).unwrap();
        }
        fs::write(lab.path("family.fasta"), FAMILY).unwrap();
        Some(lab)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sde(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sde"));
        command
            .args(words)
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("SDE_STORE");
        command
    }

    fn xtb(&self, molecule: &str) -> Command {
        let mut command = self.sde(&["exec"]);
        command.args(RULES).args(["--", "xtb", molecule]);
        command
    }

    /// How often xtb was run to its end.
    fn computed(&self) -> usize {
        let listed = done(&mut self.sde(&["ls", "--app", "xtb", "--all", "--json"]));
        text(&listed.stdout).lines().count()
    }
}

fn molecules() -> BTreeSet<String> {
    let files = fs::read_dir(MOLECULES).unwrap();
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        text(&output.stderr)
    );
    output
}

fn ends(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

/// The commands of the page, as a reader pastes them; the second time no program starts.
#[test]
fn the_page_is_true() {
    let Some(lab) = Lab::new("the_page_is_true", &["xtb", "clustalo", "sh"]) else {
        return;
    };
    let (_, after) = PAGE.split_once("```sh\n").unwrap();
    let (example, _) = after.split_once("```").unwrap();
    let before = PAGE.len() - after.len();
    assert!(
        PAGE[..before].lines().count() < 12,
        "the example is on the first screen"
    );
    let program = Path::new(env!("CARGO_BIN_EXE_sde")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut printed = Vec::new();
    for _ in 0..2 {
        let mut shell = Command::new("sh");
        shell
            .args(["-e", "-c", example])
            .env("PATH", &path)
            .env_remove("SDE_STORE");
        shell
            .current_dir(lab.0.path())
            .env("XDG_CACHE_HOME", lab.path("cache"));
        printed.push(done(&mut shell).stdout);
    }
    assert_eq!(text(&printed[0]), text(&printed[1]));
    let table = text(&printed[1]);
    let row = table.lines().last().unwrap();
    assert!(
        row.contains("xtb water.xyz") && row.contains("-5.07"),
        "{row}"
    );
    assert!(
        fs::read_to_string(lab.path("aligned.fasta"))
            .unwrap()
            .contains(">carp")
    );
    assert_eq!(lab.computed(), 12);
}

#[test]
fn twelve_molecules_are_computed_once() {
    let Some(lab) = Lab::new("twelve_molecules_are_computed_once", &["xtb"]) else {
        return;
    };
    let molecules = molecules();
    assert_eq!(molecules.len(), 12);
    let all = || -> Vec<Vec<u8>> {
        molecules
            .iter()
            .map(|name| done(&mut lab.xtb(name)).stdout)
            .collect()
    };
    let first = all();
    assert_eq!(lab.computed(), 12);
    assert_eq!(first, all());
    assert_eq!(lab.computed(), 12);
    let table = done(&mut lab.sde(&["table", "--app", "xtb", "--csv"]));
    let table = text(&table.stdout);
    assert_eq!(table.lines().count(), 13);
    assert!(table.lines().next().unwrap().contains("energy"));

    // One input is changed.
    let water = fs::read_to_string(lab.path("water.xyz")).unwrap();
    fs::write(lab.path("water.xyz"), water.replace("0.7572", "0.7600")).unwrap();
    all();
    assert_eq!(lab.computed(), 13);

    // One fails, and is run again each time.
    fs::write(lab.path("bad.xyz"), "1\n\nXx 0 0 0\n").unwrap();
    for runs in [14, 15] {
        let failed = lab.xtb("bad.xyz").output().unwrap();
        assert!(!failed.status.success());
        assert!(
            text(&failed.stderr).contains("failed"),
            "{}",
            text(&failed.stderr)
        );
        assert_eq!(lab.computed(), runs);
    }
}

/// The second call starts no process of xtb: only the loader is asked for its libraries.
#[test]
fn a_hit_starts_no_program() {
    let test = "a_hit_starts_no_program";
    let Some(lab) = Lab::new(test, &["xtb"]) else {
        return;
    };
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "true"])
        .output();
    if !traced.is_ok_and(|tried| tried.status.success()) {
        println!("skipped {test}: no strace, or no process may be traced here");
        return;
    }
    let mut starts = Vec::new();
    for _ in 0..2 {
        let call = lab.xtb("water.xyz");
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-qq", "-e", "trace=execve", "-o"])
            .arg(lab.path("trace"));
        strace
            .arg(call.get_program())
            .args(call.get_args())
            .current_dir(lab.0.path());
        strace
            .env("XDG_CACHE_HOME", lab.path("cache"))
            .env_remove("SDE_STORE");
        done(&mut strace);
        let trace = fs::read_to_string(lab.path("trace")).unwrap();
        starts.push(
            trace
                .lines()
                .filter(|line| line.contains("execve(\"/") && line.contains("/xtb\", [\""))
                .count(),
        );
    }
    assert_eq!(starts, [1, 0]);
}

/// Killed while xtb runs, the command leaves nothing that counts, and is run again.
#[test]
fn one_that_is_killed_half_way_is_run_again() {
    let Some(lab) = Lab::new("one_that_is_killed_half_way_is_run_again", &["xtb"]) else {
        return;
    };
    // Long enough to be killed in: steps of molecular dynamics.
    fs::write(
        lab.path("md.inp"),
        "$md\n time=2.0\n step=1.0\n dump=1\n$end\n",
    )
    .unwrap();
    let call = || {
        let mut command = lab.sde(&["exec", "--scratch", "."]);
        command.args([
            "--env",
            "OMP_NUM_THREADS=1",
            "--",
            "xtb",
            "--md",
            "--input",
            "md.inp",
            "ethylene.xyz",
        ]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut child = call().spawn().unwrap();
    let has_begun = || {
        let folders = fs::read_dir(lab.0.path()).unwrap().flatten();
        folders
            .into_iter()
            .any(|folder| folder.path().join("work/xtb.trj").exists())
    };
    while !has_begun() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it could be killed"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!text(&done(&mut lab.sde(&["ls", "--json"])).stdout).contains("ethylene"));
    done(&mut call());
    assert_eq!(lab.computed(), 1);
}

#[test]
fn four_processes_at_once_share_the_work() {
    let Some(lab) = Lab::new("four_processes_at_once_share_the_work", &["xtb"]) else {
        return;
    };
    // The store is there, so that they begin alike.
    done(&mut lab.xtb("water.xyz"));
    let sweeps: Vec<std::thread::JoinHandle<()>> = (0..4)
        .map(|_| {
            let calls: Vec<Command> = molecules().iter().map(|name| lab.xtb(name)).collect();
            std::thread::spawn(move || {
                for mut call in calls {
                    ends(call.stdout(Stdio::null()).spawn().unwrap());
                }
            })
        })
        .collect();
    sweeps.into_iter().for_each(|sweep| sweep.join().unwrap());
    assert_eq!(lab.computed(), 12);
}

/// The program of the guide computes the twelve molecules once.
#[test]
fn the_example_in_rust_computes_each_molecule_once() {
    let test = "the_example_in_rust_computes_each_molecule_once";
    let Some(lab) = Lab::new(test, &["xtb"]) else {
        return;
    };
    let built = Path::new(env!("CARGO_BIN_EXE_sde")).with_file_name("examples/molecules");
    if !built.exists() {
        println!("skipped {test}: `cargo build --examples` builds it");
        return;
    }
    let run = || {
        let mut example = Command::new(&built);
        example
            .args(molecules())
            .current_dir(lab.0.path())
            .env("XDG_CACHE_HOME", lab.path("cache"));
        text(&done(&mut example).stdout)
    };
    let first = run();
    assert!(first.contains("water.xyz: Some(-5.070544"), "{first}");
    assert_eq!(first.lines().count(), 12);
    assert_eq!(first, run());
    let list = done(&mut lab.sde(&["ls", "molecules.sde", "--app", "xtb", "--all", "--json"]));
    assert_eq!(text(&list.stdout).lines().count(), 12);
}
