//! Names a rank that is killed, where the launcher does not.
//!
//! A process that is killed says nothing, and the other ranks of its job are killed before they hear of it. Open MPI's
//! `mpirun` names the rank, and so does Slurm's `srun`. MPICH's launcher, Hydra, gives only the process id.
//!
//! So under Hydra each rank has a guard: a shell that reads from a pipe until its rank says that it is done. If the
//! pipe ends without that, the rank has died, and the guard names it. Three things make that work:
//!
//! - Hydra kills the process group of each rank. A guard has a process group of its own.
//! - Hydra kills the other ranks some milliseconds after one and its guard have ended, or the one alone, and their
//!   guards see their pipes end as well. So a node's first guard to see that makes a file, in the directory for
//!   temporary files, and speaks. The other guards find the file, say nothing, and remove it when all have looked. If
//!   none is left to remove it, the empty file stays.
//! - A rank that ends the job itself has its guard make the file first.
//!
//! A rank can die of another's death before Hydra hears of either: UCX aborts a rank that was reading the other's
//! memory. So the guard of a rank that died of anything but a `SIGKILL` always speaks. It makes the file too, for the
//! ranks that Hydra kills after it; the guard of a rank that was killed before has mostly spoken by then.
//!
//! If no core is free, the guard of a rank that Hydra has killed may run before that of the rank that died first, and
//! name its own. On each of the other nodes the guard of a rank that Hydra has killed may speak too, some time later.
//!
//! A guard ends with its rank, whatever happens, and costs a process that sleeps.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};

/// A variable that every version of Hydra sets for the processes it starts.
const HYDRA: &str = "HYDI_CONTROL_FD";

/// The guard reads the file's name, then `done` or `told` at the end. The last number in `stat` is the cause of death;
/// without it a kill is assumed. With `-C` only one shell can make the file.
const SCRIPT: &str = r#"
says=$1
rank=$2
read -r spoken || exit 0
if read -r word; then
    [ "$word" = told ] || exit 0
    set -C
    true 2>/dev/null >"$spoken"
    exit 0
fi
read -r state 2>/dev/null <"/proc/$rank/stat"
case $state in
*' 9' | *' 0' | '')
    set -C
    if ! true 2>/dev/null >"$spoken" && [ -e "$spoken" ]; then
        sleep 1
        rm -f "$spoken"
        exit 0
    fi
    ;;
*) true 2>/dev/null >"$spoken" ;;
esac
printf '%s\n' "$says" >&2
"#;

static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// Starts this rank's guard, if its launcher needs one. Collective.
pub(crate) fn post(world: &SimpleCommunicator) {
    if !cfg!(target_os = "linux") || std::env::var_os(HYDRA).is_none() {
        return;
    }
    // Without a shell a killed rank is not named; all else works.
    let mut guard = start(world).ok();
    let spoken = spoken(world);
    if let Some(pipe) = guard.as_mut().and_then(|guard| guard.stdin.as_mut()) {
        let _ = writeln!(pipe, "{}", spoken.display());
    }
    *GUARD.lock().unwrap_or_else(PoisonError::into_inner) = guard;
    // A guard that does not know the file is silent, so no rank goes on before all guards know it.
    world.barrier();
}

fn start(world: &SimpleCommunicator) -> std::io::Result<Child> {
    let own = std::process::id();
    let says = format!(
        "rank {} of {} (process {own}) was killed, or has aborted; the job ends",
        world.rank(),
        world.size(),
    );
    Command::new("/bin/sh")
        .args(["-c", SCRIPT, "sh", &says, &own.to_string()])
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// The path of a file for this node and job, which does not exist yet; empty for a rank that is alone on its node.
/// Collective.
fn spoken(world: &SimpleCommunicator) -> PathBuf {
    let node = world.split_shared(world.rank());
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut name = [
        u64::from(std::process::id()),
        since.map_or(0, |since| since.as_nanos() as u64),
    ];
    node.process_at_rank(0).broadcast_into(&mut name[..]);
    if node.size() == 1 {
        return PathBuf::new();
    }
    let [process, nanos] = name;
    std::env::temp_dir().join(format!("sde-guard-{process}-{nanos}"))
}

/// Ends the guard: this rank is done.
pub(crate) fn dismiss() {
    end("done");
}

/// Ends the guard: this rank has reported the end of the job itself, so the guards of the ranks killed for it need not.
pub(crate) fn told() {
    end("told");
}

fn end(word: &str) {
    let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut guard) = guard {
        if let Some(mut pipe) = guard.stdin.take() {
            let _ = writeln!(pipe, "{word}");
        }
        let _ = guard.wait();
    }
}
