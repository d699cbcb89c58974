//! The processes of a job, as the system tells of them.

use std::fs;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use sde_tests::mpirun::is_open_mpi;

/// Longer than a job takes to start on however slow a machine.
const TO_START: Duration = Duration::from_secs(120);

/// The processes of a program's ranks that have come from this one.
pub fn ranks_of(parent: u32, program: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    for child in children.unwrap_or_default().split_whitespace() {
        let Ok(child) = child.parse() else { continue };
        let runs = fs::read_link(format!("/proc/{child}/exe")).unwrap_or_default();
        if runs == Path::new(program) {
            found.push(child);
        }
        found.extend(ranks_of(child, program));
    }
    found
}

/// A process and those that have come from it: number, name, state.
pub fn family(parent: u32) -> String {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    let state = fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    let state = state
        .split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ");
    let children = children.split_whitespace().flat_map(str::parse);
    children.fold(state, |all, child| format!("{all}, {}", family(child)))
}

/// The number that the launcher gave to a process.
pub fn rank_of(process: u32) -> Option<usize> {
    let name = match is_open_mpi() {
        true => "OMPI_COMM_WORLD_RANK=",
        false => "PMI_RANK=",
    };
    let variables = fs::read(format!("/proc/{process}/environ")).ok()?;
    let mut variables = variables.split(|byte| *byte == 0);
    let rank = variables.find_map(|variable| variable.strip_prefix(name.as_bytes()))?;
    std::str::from_utf8(rank).ok()?.parse().ok()
}

/// Gives the status, unless it takes too long.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("waiting for a child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Whether a process has a file of the store open.
fn is_at_work(process: u32, store: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd"));
    let mut files = files.into_iter().flatten().flatten();
    files.any(|file| fs::read_link(file.path()).is_ok_and(|file| file.starts_with(store)))
}

/// Waits until all ranks have come to MPI: `mpirun` of Open MPI 4.1 hangs, with its children dead, if one
/// is killed while it connects to it. They have if one of them is at work.
pub fn wait_for_ranks(job: &mut Child, program: &str, ranks: usize, store: &Path) {
    let at_work = |job: &Child| {
        let there = ranks_of(job.id(), program);
        there.len() == ranks && there.iter().any(|rank| is_at_work(*rank, store))
    };
    let begin = Instant::now();
    while !at_work(job) && job.try_wait().expect("waiting for a child").is_none() {
        assert!(begin.elapsed() < TO_START, "the ranks do not start");
        std::thread::sleep(Duration::from_millis(2));
    }
}
