//! The job's time, with batch systems that are scripts.

use std::ffi::OsString;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::Job;
use super::batch::time_left_within;
use super::limit::{Around, BadLimit};

/// 2026-01-01 00:00:00 UTC.
const NOW: u64 = 1_767_225_600;

const AGE: Duration = Duration::from_secs(10);

/// More than any script takes that answers.
const PATIENCE: Duration = Duration::from_secs(60);

fn with<T>(set: &[(&str, &str)], ask: impl FnOnce(&Around<'_>) -> T) -> T {
    let variable = |name: &str| {
        let found = set.iter().find(|(of, _)| *of == name);
        found.map(|(_, value)| OsString::from(value))
    };
    ask(&Around {
        variable: &variable,
        now: UNIX_EPOCH + Duration::from_secs(NOW),
        age: AGE,
    })
}

fn said(set: &[(&str, &str)]) -> Result<Option<u64>, BadLimit> {
    let left = with(set, |around| around.time_left())?;
    Ok(left.map(|left| left.as_secs()))
}

#[test]
fn a_limit_counts_from_the_start_of_the_program() {
    let limit = |limit: &str| said(&[("SDE_TIME_LIMIT", limit)]).unwrap().unwrap();
    let left = [
        "90",
        "90s",
        " 15m ",
        "1h30m",
        "1d",
        "01:00:00",
        "1-00:00:00",
    ]
    .map(limit);
    assert_eq!(left, [80, 80, 890, 5390, 86_390, 3590, 86_390]);
    let end = |second: u64| limit(&format!("@{second}"));
    assert_eq!(
        [end(NOW + 30), end(NOW), end(NOW - 30), end(0)],
        [30, 0, 0, 0]
    );
    assert_eq!([limit("9"), limit("0")], [0, 0]);
    assert_eq!(limit("none"), Duration::MAX.as_secs());
}

#[test]
fn a_limit_that_makes_no_sense_is_refused() {
    let limits = [
        "soon",
        "-5",
        "1.5h",
        "90x",
        "m",
        "5m1h",
        "5m5m",
        "2:30",
        "1:2:3:4",
        "@",
        "@-1",
        "@soon",
        "1é",
        "99999999999999999999",
        "999999999999999999d",
        "99999999999999999-00:00:00",
    ];
    for limit in limits {
        let bad = said(&[("SDE_TIME_LIMIT", limit)]).unwrap_err();
        assert_eq!(
            bad.what(),
            format!("the time limit SDE_TIME_LIMIT={limit:?}")
        );
    }
    assert_eq!(said(&[("SDE_TIME_LIMIT", " ")]).unwrap(), None);
}

#[test]
fn slurms_end_counts_if_nobody_set_a_limit() {
    let end = (NOW + 100).to_string();
    let slurm = ("SLURM_JOB_END_TIME", &*end);
    assert_eq!(said(&[slurm]).unwrap(), Some(100));
    assert_eq!(said(&[slurm, ("SDE_TIME_LIMIT", "50")]).unwrap(), Some(40));
    assert_eq!(said(&[("SLURM_JOB_END_TIME", "1")]).unwrap(), Some(0));
    assert_eq!(said(&[("SLURM_JOB_END_TIME", "Unknown")]).unwrap(), None);
    assert_eq!(said(&[]).unwrap(), None);
}

/// A program on a path of its own, which is this shell script. `DIR` in it is the program's folder.
#[cfg(unix)]
fn program(name: &str, script: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let script = script.replace("DIR", folder.path().to_str().unwrap());
    let text = folder.path().join("text");
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    // Another process writes the program: a file that this one has open can't be run where another test forks meanwhile.
    let mut install = std::process::Command::new("install");
    let installed = install
        .args(["-m", "755"])
        .args([&text, &folder.path().join(name)]);
    assert!(installed.status().unwrap().success());
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    (folder, path)
}

/// The answer of a program for the job of this variable: the time left, or what is warned of.
#[cfg(unix)]
fn asked(variable: &str, job: &str, name: &str, script: &str) -> Result<Option<u64>, String> {
    let (_folder, path) = program(name, script);
    let (left, warning) = with(&[("PATH", &path), (variable, job)], |around| {
        time_left_within(around, PATIENCE)
    });
    warning.map_or(Ok(left.map(|left| left.as_secs())), Err)
}

#[cfg(unix)]
#[test]
fn slurm_is_asked_for_its_job() {
    let slurm = |script: &str| asked("SLURM_JOB_ID", "77", "squeue", script);
    let script = r#"[ "$*" = "-h -j 77 -o %L" ] && echo 1-02:03:04"#;
    assert_eq!(slurm(script), Ok(Some(93_784)));
    assert_eq!(slurm("echo 59:59"), Ok(Some(3599)));
    assert_eq!(slurm("echo 0:00"), Ok(Some(0)));
    assert_eq!(slurm("echo UNLIMITED"), Ok(Some(Duration::MAX.as_secs())));
    for nonsense in [
        "echo INVALID",
        "exit 1",
        "echo 12",
        "head -c 3000000 /dev/zero",
    ] {
        let warning = slurm(nonsense).unwrap_err();
        assert!(warning.contains("`squeue -h -j 77 -o %L`"), "{warning}");
        assert!(warning.len() < 400, "{warning}");
    }
}

#[cfg(unix)]
#[test]
fn flux_is_asked_for_its_job() {
    let flux = |script: &str| asked("FLUX_JOB_ID", "f", "flux", script);
    assert_eq!(
        flux(r#"[ "$*" = "job timeleft" ] && echo 120.7"#),
        Ok(Some(120))
    );
    assert_eq!(flux("echo infinity"), Ok(Some(Duration::MAX.as_secs())));
    assert!(flux("echo NaN").is_err() && flux("echo -1").is_err());
}

#[cfg(unix)]
#[test]
fn pbs_tells_limit_use_and_start() {
    let pbs = |lines: &str| {
        let script = format!(
            "[ \"$*\" = '-f 5.host' ] && [ \"$TZ\" = UTC0 ] && cat <<END\nJob Id: 5.host\n{lines}\nEND"
        );
        asked("PBS_JOBID", "5.host", "qstat", &script)
    };
    let limit = "    Resource_List.walltime = 01:00:00\n";
    let used = "    resources_used.walltime = 00:10:00\n";
    let start = "    stime = Wed Dec 31 23:40:00 2025\n";
    assert_eq!(pbs(limit), Ok(Some(3590)));
    assert_eq!(pbs(&format!("{limit}{used}")), Ok(Some(3000)));
    assert_eq!(pbs(&format!("{limit}{used}{start}")), Ok(Some(2400)));
    let late = "    stime = Thu Jan  1 00:00:00 1970";
    assert_eq!(pbs(&format!("{limit}{late}")), Ok(Some(0)));
    assert_eq!(pbs(used), Ok(Some(Duration::MAX.as_secs())));
    assert!(pbs("qstat: Unknown Job Id").is_err());
    assert!(pbs("    Resource_List.walltime = soon").is_err());
}

#[cfg(unix)]
#[test]
fn a_batch_system_that_is_not_there_is_warned_of() {
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    let (left, warning) = with(&[("PATH", path), ("SLURM_JOB_ID", "1")], |around| {
        time_left_within(around, PATIENCE)
    });
    assert!(left.is_none() && warning.unwrap().contains("SDE_TIME_LIMIT"));
    // Outside of a job nothing is asked.
    let (left, warning) = with(&[("PATH", path)], |around| {
        time_left_within(around, PATIENCE)
    });
    assert!(left.is_none() && warning.is_none());
}

/// It has started another program, which has the pipe open too. Both are gone when it was killed: then nobody can write
/// to the named pipe any more, and who reads it comes to its end.
#[cfg(unix)]
#[test]
fn a_batch_system_that_hangs_is_killed() {
    let script = "exec 3>DIR/pipe; echo >&3; sleep 1000 & wait";
    let (folder, path) = program("squeue", script);
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
    let (left, warning) = with(&[("PATH", &path), ("SLURM_JOB_ID", "1")], |around| {
        time_left_within(around, Duration::from_secs(1))
    });
    assert!(left.is_none() && warning.unwrap().contains("no answer came within 1s"));
    assert_eq!(reader.join().unwrap(), b"\n");
}

#[test]
fn the_time_left_only_falls() {
    let job = Job::ending_in(None);
    assert_eq!((job.time_left(), job.whole()), (None, None));
    let job = Job::ending_in(Some(Duration::MAX));
    assert_eq!(job.time_left(), None);
    let hour = Duration::from_secs(3600);
    job.end_by(Instant::now() + hour);
    let left = job.time_left().unwrap();
    assert!(left <= hour && left > hour / 2);
    assert!(job.whole().unwrap() + hour >= left);
    job.end_by(Instant::now() + 2 * hour);
    assert!(job.time_left().unwrap() <= left);
    assert_eq!(
        Job::ending_in(Some(Duration::ZERO)).time_left(),
        Some(Duration::ZERO)
    );
}

#[test]
fn an_end_that_people_tell_may_be_taken_back() {
    let hour = Duration::from_secs(3600);
    let job = Job::ending_in(Some(hour));
    let left = || job.time_left().unwrap();
    job.tell_end(Some(Instant::now() + 2 * hour));
    assert!(left() <= hour && left() > hour / 2);
    job.tell_end(Some(Instant::now()));
    assert_eq!(left(), Duration::ZERO);
    job.tell_end(None);
    assert!(left() > hour / 2);
}
