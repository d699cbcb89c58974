//! Runs whose processes are killed, and what runs cost. Each helper is this test program, started again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{End, Trial, runs, until};
use crate::folder::{Swept, sweep};

const HELPED: &str = "SDE_TEST_HELPED";

/// Starts one of the helpers below; `folder` is where it makes its run.
fn helper(name: &str, folder: &Path) -> Child {
    let name = format!("process::tests::kills::{name}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        &name,
        "--exact",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
        .env(HELPED, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn helped() -> Trial {
    Trial::within(std::env::var_os(HELPED).unwrap().as_ref())
}

fn kill(pid: &str, signal: Signal) {
    kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), signal).unwrap();
}

/// What a file says once it is there and whole.
fn said(path: &Path) -> String {
    let mut text = String::new();
    until(&path.display().to_string(), || {
        text = std::fs::read_to_string(path).unwrap_or_default();
        text.ends_with('\n')
    });
    text
}

const FAMILY: &str = "setsid sh -c 'trap \"echo term > $RUN/term\" TERM; echo $$ > $RUN/child; while test -e $RUN/child; do sleep 0.01; done' &
    echo $PPID > $RUN/supervisor; echo $$ > $RUN/program; exec sleep 1000";

#[test]
#[ignore = "part of the test below"]
fn run_a_family() {
    helped().shell(FAMILY);
}

/// The folder of a family's run, and its numbers: the child, the program and the supervisor.
fn family(scratch: &Path) -> (PathBuf, [String; 3]) {
    let mut run = None;
    until("the run's folder", || {
        run = std::fs::read_dir(scratch).unwrap().next();
        run.is_some()
    });
    let run = run.unwrap().unwrap().path();
    let numbers = ["child", "program", "supervisor"];
    let numbers = numbers.map(|name| said(&run.join(name)).trim().to_owned());
    (run, numbers)
}

#[test]
fn a_run_ends_with_its_process_and_its_lock_with_the_run() {
    let scratch = tempfile::tempdir().unwrap();
    let mut parent = helper("run_a_family", scratch.path());
    let (run, [child, program, supervisor]) = family(scratch.path());
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the program's end", || !runs(&program));
    // The child has handled its TERM, and has a minute.
    said(&run.join("term"));
    let lock = File::open(run.join("lock")).unwrap();
    assert!(runs(&child) && runs(&supervisor));
    assert!(lock.try_lock().is_err(), "somebody is left");
    assert_eq!(sweep(scratch.path()).unwrap(), Swept::default());
    kill(&child, Signal::KILL);
    until("a free lock", || lock.try_lock().is_ok());
    assert!(!runs(&child));
    lock.unlock().unwrap();
    let swept = sweep(scratch.path()).unwrap();
    assert_eq!((swept.folders, swept.ended), (1, Vec::new()));
}

#[test]
fn a_sweep_ends_what_escaped_when_all_who_watched_were_killed() {
    let scratch = tempfile::tempdir().unwrap();
    let mut parent = helper("run_a_family", scratch.path());
    let (run, [child, program, supervisor]) = family(scratch.path());
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The child has handled its TERM, and has a minute.
    said(&run.join("term"));
    kill(&supervisor, Signal::KILL);
    let lock = File::open(run.join("lock")).unwrap();
    until("a free lock", || lock.try_lock().is_ok());
    drop(lock);
    assert!(runs(&child) && !runs(&program));
    let swept = sweep(scratch.path()).unwrap();
    assert_eq!(swept.folders, 1);
    assert!(swept.ended.contains(&format!("sh ({child})")), "{swept:?}");
    assert!(!runs(&child) && !run.exists());
}

#[test]
fn a_run_whose_supervisor_is_killed_is_lost_and_ended() {
    let mut trial = Trial::new();
    let [child, program, supervisor] =
        ["child", "program", "supervisor"].map(|name| trial.path(name));
    let killed = std::cell::Cell::new(false);
    let stop = || {
        if !killed.get()
            && [&child, &program]
                .iter()
                .all(|path| std::fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')))
        {
            kill(&said(&supervisor), Signal::KILL);
            killed.set(true);
        }
        None
    };
    let finished = trial.shell_until(FAMILY, &stop);
    assert!(matches!(finished.end, End::Lost), "{finished:?}");
    let pid = trial.text("child");
    assert!(
        finished.left.contains(&format!("sh ({})", pid.trim())),
        "{finished:?}"
    );
    for process in ["child", "program"] {
        let pid = trial.text(process);
        until(process, || !runs(pid.trim()));
    }
    trial.folder.lock().unlock().unwrap();
    File::open(trial.path("lock")).unwrap().try_lock().unwrap();
}

/// Memory of this process in KiB, by its name in the kernel's list.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.split_whitespace()
        .find_map(|word| word.parse().ok())
        .unwrap()
}

#[test]
#[ignore = "part of the test below"]
fn print_much() {
    let mut trial = helped();
    trial.stdout = Some(
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .unwrap(),
    );
    trial.shell("echo");
    let before = memory("VmHWM:");
    trial.stdout = Some(
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .unwrap(),
    );
    let finished = trial.shell("head -c 200000000 /dev/zero");
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    let more = memory("VmHWM:") - before;
    assert!(more < 4096, "{more} KiB more");
}

#[test]
fn memory_does_not_grow_with_what_is_printed() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(
        helper("print_much", scratch.path())
            .wait()
            .unwrap()
            .success()
    );
}

#[test]
#[ignore = "part of the test below"]
fn run_with_much_memory() {
    let much = vec![1_u8; 200 << 20];
    let script = "until test $(sed -n 's/RssAnon: *\\t *\\([0-9]*\\) kB/\\1/p' /proc/$PPID/status) -lt 20000; do sleep 0.01; done";
    let finished = helped().shell(script);
    assert!(matches!(finished.end, End::Exited(0)), "{finished:?}");
    drop(much);
}

#[test]
fn a_supervisor_keeps_no_copy_of_the_memory() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(
        helper("run_with_much_memory", scratch.path())
            .wait()
            .unwrap()
            .success()
    );
}
