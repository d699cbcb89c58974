//! The scripts of the guide's page on jobs, run as batch systems run them, with stand-ins for their commands.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::kit;

const PAGE: &str = include_str!("../../../../docs/guide/11-jobs.md");
const ROWS: usize = 24;
/// More jobs than that would be one that does not get on.
const MOST: usize = 40;

/// A folder with a sweep, and a machine with a batch system.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in ["bin", "home", "tmp"] {
            fs::create_dir(machine.path(folder)).unwrap();
        }
        let mut rows = "file,charge\n".to_owned();
        for row in 0..ROWS {
            fs::write(machine.path(&format!("{row}.xyz")), format!("{row}\n")).unwrap();
            rows += &format!("{row}.xyz,{}\n", row % 2);
        }
        fs::write(machine.path("molecules.csv"), rows).unwrap();
        let log = machine.path("log").display().to_string();
        machine.stand_in(
            "xtb",
            // 0.1 to 0.45 s.
            &format!(
                "read number < \"$1\"\necho begin $number >> {log}\nsleep 0.$((100 + number * 37 % 8 * 50))\n\
                 echo \"TOTAL ENERGY  -$number.5\"\necho end $number >> {log}"
            ),
        );
        let queued = machine.path("queued").display().to_string();
        machine.stand_in("scontrol", &format!("echo \"$@\" >> {queued}"));
        machine.stand_in("qsub", &format!("echo \"$@\" >> {queued}"));
        // Its job is known by the end that the test sets.
        machine.stand_in("squeue", "exit 1");
        machine.stand_in(
            "qstat",
            "echo 'Job Id: 7.server'\necho '    Resource_List.walltime = 00:00:03'\n\
             echo '    resources_used.walltime = 00:00:00'",
        );
        std::os::unix::fs::symlink(kit::program().get_program(), machine.path("bin/sde")).unwrap();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn stand_in(&self, name: &str, lines: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts a script of the page in a job with these variables.
    fn start(&self, script: &str, job: &[(&str, &str)]) -> Child {
        let path = self.path("script");
        fs::write(&path, script).unwrap();
        let bin = self.path("bin").display().to_string();
        Command::new("bash")
            .arg(path)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("SLURM_SUBMIT_DIR", self.folder.path())
            .env("PBS_O_WORKDIR", self.folder.path())
            .envs(job.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What was queued by a job, once.
    fn queued(&self) -> Vec<String> {
        let path = self.path("queued");
        let queued = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        queued.lines().map(str::to_owned).collect()
    }

    /// Each row was begun once, and ended.
    fn ran_each_once(&self) {
        let log = fs::read_to_string(self.path("log")).unwrap();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        log.lines()
            .for_each(|line| *counts.entry(line).or_default() += 1);
        assert_eq!(counts.len(), 2 * ROWS, "{log}");
        assert!(counts.values().all(|count| *count == 1), "{log}");
    }
}

/// The script of the page that has this line.
fn script(line: &str) -> String {
    let scripts = PAGE.split("```sh\n").skip(1);
    let mut scripts = scripts.filter_map(|after| after.split_once("```"));
    let found = scripts.find(|(script, _)| script.contains(line));
    found
        .unwrap_or_else(|| panic!("a script with {line:?}"))
        .0
        .to_owned()
}

/// The end of a job that begins now.
fn end(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (now.as_secs() + seconds).to_string()
}

fn ended(job: Child) -> (Option<i32>, String) {
    let output = job.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), told)
}

/// Jobs one after another until one does not queue the next. Gives how many there were.
fn in_turn(machine: &Machine, start: impl Fn() -> Child, queues: &str) -> usize {
    for number in 1..=MOST {
        let (status, told) = ended(start());
        let queued = machine.queued();
        match status {
            Some(75) => assert_eq!(queued, [queues], "{told}"),
            _ => {
                assert_eq!((status, queued), (Some(0), Vec::new()), "{told}");
                return number;
            }
        }
    }
    panic!("{MOST} jobs did not come to an end")
}

#[test]
fn slurm_queues_the_job_again_until_all_is_done() {
    let machine = Machine::new();
    let script = script("#SBATCH --time=04:00:00 --requeue");
    let start = || {
        let end = end(3);
        let job = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_END_TIME", &*end),
            ("SLURM_CPUS_ON_NODE", "2"),
        ];
        machine.start(&script, &job)
    };
    let jobs = in_turn(&machine, start, "requeue 7");
    assert!(jobs > 1);
    machine.ran_each_once();
}

#[test]
fn jobs_of_an_array_share_the_rows() {
    let machine = Machine::new();
    let script = script("#SBATCH --time=04:00:00 --requeue");
    let (mut queued, mut jobs) = (vec!["requeue 8".to_owned(), "requeue 9".to_owned()], 0);
    while !queued.is_empty() {
        jobs += 1;
        assert!(jobs <= MOST);
        let end = end(3);
        let start = |line: &String| {
            let job = [
                ("SLURM_ARRAY_JOB_ID", "8"),
                ("SLURM_JOB_ID", line.split_once(' ').unwrap().1),
                ("SLURM_JOB_END_TIME", &*end),
                ("SLURM_CPUS_ON_NODE", "1"),
            ];
            machine.start(&script, &job)
        };
        let started: Vec<Child> = queued.iter().map(start).collect();
        for job in started {
            let (status, told) = ended(job);
            assert!(matches!(status, Some(0 | 75)), "{status:?}: {told}");
        }
        queued = machine.queued();
    }
    machine.ran_each_once();
}

#[test]
fn a_job_of_pbs_queues_the_next() {
    let machine = Machine::new();
    let script = script("#PBS -l walltime");
    let start = || machine.start(&script, &[("PBS_JOBID", "7.server"), ("NCPUS", "2")]);
    let jobs = in_turn(&machine, start, "molecules.pbs");
    assert!(jobs > 1);
    machine.ran_each_once();
}

/// A job that gets on with nothing would be queued for ever.
#[test]
fn a_job_that_does_not_get_on_is_not_queued_again() {
    let machine = Machine::new();
    let script = script("#SBATCH --time=04:00:00 --requeue");
    let job = [
        ("SLURM_JOB_ID", "7"),
        ("SLURM_JOB_END_TIME", "1000"),
        ("SLURM_CPUS_ON_NODE", "2"),
    ];
    let (status, told) = ended(machine.start(&script, &job));
    assert_eq!((status, machine.queued()), (Some(75), Vec::new()), "{told}");
    assert!(
        told.contains("no run was added, so the job is not queued again"),
        "{told}"
    );
    assert!(!machine.path("log").exists());
}

/// They count as rows that a job got on with, and the next job is given them.
#[test]
fn rows_that_crash_are_run_once() {
    let machine = Machine::new();
    let log = machine.path("log").display().to_string();
    machine.stand_in(
        "xtb",
        &format!("read number < \"$1\"\necho $number >> {log}\nsleep 0.3\nkill -SEGV $$"),
    );
    let script = script("#SBATCH --time=04:00:00 --requeue");
    let mut status = Some(75);
    while status == Some(75) {
        let end = end(3);
        let job = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_END_TIME", &*end),
            ("SLURM_CPUS_ON_NODE", "2"),
        ];
        let told;
        (status, told) = ended(machine.start(&script, &job));
        let queued = vec!["requeue 7"; usize::from(status == Some(75))];
        assert_eq!(machine.queued(), queued, "{told}");
    }
    assert_eq!(status, Some(1));
    let log = fs::read_to_string(machine.path("log")).unwrap();
    let mut begun: Vec<&str> = log.lines().collect();
    begun.sort_unstable();
    begun.dedup();
    assert_eq!((begun.len(), log.lines().count()), (ROWS, ROWS), "{log}");
}

/// `heat` is a stand-in too: its own tests have it go on after SIGTERM.
#[test]
fn an_iterating_job_is_queued_again_when_sigterm_has_ended_it() {
    let machine = Machine::new();
    let script = script("./heat");
    for (status, restarts, queued) in [(143, "0", 1), (143, "50", 0), (0, "0", 0), (1, "0", 0)] {
        machine.stand_in("srun", &format!("exit {status}"));
        let job = [("SLURM_JOB_ID", "7"), ("SLURM_RESTART_COUNT", restarts)];
        let (ended, told) = ended(machine.start(&script, &job));
        assert_eq!(ended, Some(status), "{told}");
        assert_eq!(machine.queued(), vec!["requeue 7"; queued]);
    }
}

#[test]
fn a_plain_shell_runs_all_rows() {
    let machine = Machine::new();
    let (status, told) = ended(machine.start(&script("SDE_TIME_LIMIT=8h"), &[]));
    assert_eq!(status, Some(0), "{told}");
    machine.ran_each_once();
}
