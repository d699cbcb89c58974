//! A solver that is killed, at any moment: other numbers of ranks go on from the state that was saved last, and end
//! in the same bits.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sde_tests::mpirun::{mpirun, run};

use crate::processes::{ranks_of, wait, wait_for_ranks};
use crate::{LIMIT, random};

const PROGRAM: &str = env!("CARGO_BIN_EXE_heat");

fn heat(ranks: usize) -> Command {
    let mut command = mpirun(ranks);
    command
        .arg(PROGRAM)
        .args(["--size", "40", "--steps", "4000"]);
    command
}

fn heat_in(ranks: usize, store: &Path) -> Command {
    let mut command = heat(ranks);
    command.arg("--save-each").arg("--store").arg(store);
    command
}

/// What a whole job says: of the plate, and from which step it went on.
fn said(command: &mut Command) -> (String, Option<u32>) {
    let job = run(command);
    job.succeeded();
    (job.stdout.clone(), went_on_from(&job.stderr))
}

fn went_on_from(errors: &str) -> Option<u32> {
    let step = errors.split_once("it goes on from step ")?.1;
    step.lines().next()?.trim().parse().ok()
}

/// Starts a job and kills one of its ranks; gives the step from which it went on, if it was not done before.
fn kill(ranks: usize, store: &Path, after: Duration, chosen: usize) -> Option<Option<u32>> {
    let errors = store.with_extension("errors");
    let mut job = heat_in(ranks, store)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&errors).expect("a file"))
        .spawn()
        .expect("mpirun");
    wait_for_ranks(&mut job, PROGRAM, ranks, store);
    std::thread::sleep(after);
    let victim = ranks_of(job.id(), PROGRAM).get(chosen).copied();
    let mut kill = Command::new("kill");
    kill.stderr(Stdio::null()).arg("-9");
    kill.args(victim.map(|victim| victim.to_string()));
    kill.status().expect("kill");
    let status = wait(&mut job, LIMIT).expect("the job ends");
    let said = fs::read_to_string(&errors).expect("what was said");
    (!status.success()).then(|| went_on_from(&said))
}

#[test]
fn a_solver_goes_on_on_other_numbers_of_ranks_in_the_same_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (expected, _) = said(&mut heat(1));
    let mut random = random();
    // On each number of ranks one job at least is killed that has gone on from what another has saved.
    let (mut left, mut stores) = (vec![4, 2, 3, 1], 0);
    let mut last = None;
    while let Some(ranks) = left.first().copied() {
        assert!(stores < 50, "no job is ever killed in its middle");
        let store = folder.path().join(format!("store-{stores}"));
        let after = Duration::from_millis(random.below(500));
        match kill(ranks, &store, after, random.below(ranks as u64) as usize) {
            Some(step) => {
                // One that was killed early has not come to say it.
                assert!(
                    step.is_none() || step >= last,
                    "from {step:?} after {last:?}"
                );
                last = step.or(last);
                left.rotate_left(1);
                left.retain(|of| step.is_none() || *of != ranks);
            }
            None => {
                assert_eq!(said(&mut heat_in(2, &store)), (expected.clone(), None));
                (last, stores) = (None, stores + 1);
            }
        }
    }
    let store = folder.path().join(format!("store-{stores}"));
    let (plate, step) = said(&mut heat_in(3, &store));
    assert_eq!(plate, expected);
    assert!(step >= last);
    // It is remembered now.
    assert_eq!(said(&mut heat_in(2, &store)), (expected, None));
}
