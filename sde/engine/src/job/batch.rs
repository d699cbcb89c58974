//! One question to the batch system: how much time the job has left.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use super::limit::{Around, clock};

/// How long the batch system may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// More than that is no answer.
const LONGEST: u64 = 1 << 20;

struct Question {
    program: &'static str,
    arguments: Vec<String>,
    /// Reads the answer; `Duration::MAX` is a job without end.
    read: fn(&Around<'_>, &str) -> Option<Duration>,
}

/// The time left that the batch system tells, if the process is in a job, and what is to be warned of. No answer, or one that makes no
/// sense, is no limit.
pub(super) fn time_left(around: &Around<'_>) -> (Option<Duration>, Option<String>) {
    time_left_within(around, PATIENCE)
}

pub(super) fn time_left_within(
    around: &Around<'_>,
    patience: Duration,
) -> (Option<Duration>, Option<String>) {
    let Some(question) = question(around) else {
        return (None, None);
    };
    let answer = ask(&question, (around.variable)("PATH").as_deref(), patience);
    let read = answer.and_then(|answer| {
        let line = || answer.lines().next().unwrap_or("").chars().take(60);
        (question.read)(around, answer.trim())
            .ok_or_else(|| format!("its answer was {:?}", line().collect::<String>()))
    });
    match read {
        Ok(left) => (Some(left), None),
        Err(why) => {
            let asked = question.arguments.join(" ");
            let warning = format!(
                "the job's time is not known: `{} {asked}` gave none: {why}; set SDE_TIME_LIMIT",
                question.program
            );
            (None, Some(warning))
        }
    }
}

fn question(around: &Around<'_>) -> Option<Question> {
    let of_slurm = |job: String| Question {
        program: "squeue",
        arguments: ["-h", "-j", &job, "-o", "%L"].map(str::to_owned).into(),
        read: |_, answer| read_slurm(answer),
    };
    let of_flux = |_| Question {
        program: "flux",
        arguments: ["job", "timeleft"].map(str::to_owned).into(),
        read: |_, answer| read_flux(answer),
    };
    let of_pbs = |job: String| Question {
        program: "qstat",
        arguments: vec!["-f".to_owned(), job],
        read: read_pbs,
    };
    let job = |name| around.text(name);
    let slurm_or_flux = job("SLURM_JOB_ID")
        .map(of_slurm)
        .or_else(|| job("FLUX_JOB_ID").map(of_flux));
    slurm_or_flux.or_else(|| job("PBS_JOBID").map(of_pbs))
}

/// The standard output of a program that may hang: then it is killed, with what it started.
fn ask(question: &Question, path: Option<&OsStr>, patience: Duration) -> Result<String, String> {
    let mut command = Command::new(question.program);
    command
        .args(&question.arguments)
        // PBS's times of day are then in UTC.
        .env("TZ", "UTC0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(path) = path {
        command.env("PATH", path);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let said = |error: io::Error| error.to_string();
    let mut child = command.spawn().map_err(said)?;
    let (telling, told) = mpsc::channel();
    let output = child.stdout.take();
    let reader = thread::Builder::new().spawn(move || {
        let mut answer = Vec::new();
        let read = output.map(|output| output.take(LONGEST).read_to_end(&mut answer));
        // Nobody listens any more after the patience.
        let _ = telling.send(read.unwrap_or(Ok(0)).map(|_| answer));
    });
    let answer = reader.map_err(said).and_then(|_| {
        let patience_ends = |_| format!("no answer came within {patience:?}");
        told.recv_timeout(patience).map_err(patience_ends)
    });
    // What has answered may be ended too. Nobody has reaped it yet, so its number is still its own.
    kill(&mut child);
    // A program that hangs in the system can't be reaped now.
    let _ = thread::Builder::new().spawn(move || child.wait());
    let answer = answer?.map_err(said)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(unix)]
fn kill(child: &mut std::process::Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // It may have ended.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

#[cfg(not(unix))]
fn kill(child: &mut std::process::Child) {
    let _ = child.kill();
}

fn read_slurm(answer: &str) -> Option<Duration> {
    match answer.lines().next()?.trim() {
        "UNLIMITED" | "NOT_SET" => Some(Duration::MAX),
        time => clock(time),
    }
}

fn read_flux(answer: &str) -> Option<Duration> {
    match answer {
        "infinity" => Some(Duration::MAX),
        seconds => Duration::try_from_secs_f64(seconds.parse().ok()?).ok(),
    }
}

/// The limit less what the job has used. The server learns that from time to time, so the start of the job counts too.
fn read_pbs(around: &Around<'_>, answer: &str) -> Option<Duration> {
    let attribute = |name: &str| {
        let mut lines = answer.lines().filter_map(|line| line.split_once(" = "));
        lines.find_map(|(of, value)| (of.trim() == name).then(|| value.trim()))
    };
    if !answer.contains(" = ") {
        return None;
    }
    let Some(limit) = attribute("Resource_List.walltime") else {
        return Some(Duration::MAX);
    };
    let used = attribute("resources_used.walltime").and_then(clock);
    let start = attribute("stime").or_else(|| attribute("start_time"));
    let start = start.and_then(second_of).map(Duration::from_secs);
    let now = around.now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_start = start.map_or(around.age, |start| now.saturating_sub(start));
    Some(clock(limit)?.saturating_sub(since_start.max(used.unwrap_or_default())))
}

/// The second since 1970 of a time such as `Thu Jan  1 00:00:00 1970`.
fn second_of(time: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = time.split_whitespace().skip(1);
    let month = MONTHS.find(words.next()?)? as u64 / 3;
    let day: u64 = words.next()?.parse().ok()?;
    let of_day = clock(words.next()?)?.as_secs();
    let year: u64 = words.next()?.parse().ok().filter(|year| *year >= 1970)?;
    // Years that begin in March have their odd day at the end.
    let (year, month) = if month < 2 {
        (year - 1, month + 10)
    } else {
        (year, month - 2)
    };
    let days = |year: u64| 365 * year + year / 4 - year / 100 + year / 400;
    let of_year = (153 * month + 2) / 5 + day - 1;
    // 1970 began 306 days after March 1969 did.
    let all = (days(year) + of_year).checked_sub(days(1969) + 306)?;
    Some(all * 86_400 + of_day)
}
