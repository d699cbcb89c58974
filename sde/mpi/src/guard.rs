//! Names a rank that is killed, where the launcher does not.
//!
//! A process that is killed says nothing, and the others of its job can't say it for it: they are
//! killed before they hear of it. Open MPI's `mpirun` names the rank, and so does Slurm's `srun`.
//! MPICH's launcher, Hydra, gives the number of the process, which nobody knows the rank of any more.
//!
//! So under Hydra each rank has a guard: a shell that reads from a pipe until its rank says that it
//! is done. If the pipe ends without that, the rank has died, and the guard says which it was. Three
//! things make that work:
//!
//! - Hydra kills the process group of each rank. A guard has one of its own.
//! - Hydra hears that a rank has ended when its output and its connection to Hydra are closed. The guard
//!   holds them too, so it has spoken before Hydra kills the other ranks.
//! - Then their guards see their pipes end as well. They say nothing, since they see that another guard
//!   is gone: its rank is the one to be named. A rank that ends the job itself dismisses its guard first.
//!
//! Guards look at guards and not at ranks, since a rank can die of another's death before Hydra hears of
//! either (UCX aborts one that was reading the other's memory). Then both are named: a guard that has spoken
//! stays for a second, in which Hydra kills nobody, and others whose ranks have died find it there.
//! If guards looked at ranks, each would leave it to the other.
//!
//! A guard ends with its rank, whatever happens, and costs a process that sleeps.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

/// What Hydra tells the processes that it starts, whatever version of it.
const HYDRA: &str = "HYDI_CONTROL_FD";

/// First the numbers of the other guards of this node, then the word at the end. A process that has
/// ended and that nobody has asked about is a zombie, `Z`.
const SCRIPT: &str = r#"
read -r others || exit 0
read -r done && exit 0
for other in $others; do
    read -r state 2>/dev/null <"/proc/$other/stat" || exit 0
    case $state in *') Z '* | *') X '*) exit 0 ;; esac
done
printf '%s\n' "$1" >&2
sleep 1
"#;

static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// Has this rank guarded, if its launcher needs that. Collective.
pub(crate) fn post(world: &SimpleCommunicator) {
    if !cfg!(target_os = "linux") || std::env::var_os(HYDRA).is_none() {
        return;
    }
    // Without a shell the rank is not named, and nothing else is lost.
    let mut guard = start(world).ok();
    let others = others(world, guard.as_ref().map_or(0, Child::id));
    if let Some(pipe) = guard.as_mut().and_then(|guard| guard.stdin.as_mut()) {
        let _ = writeln!(pipe, "{others}");
    }
    *GUARD.lock().unwrap_or_else(PoisonError::into_inner) = guard;
    // A guard that has not been told whom to look at says nothing: none goes on before all have.
    world.barrier();
}

fn start(world: &SimpleCommunicator) -> std::io::Result<Child> {
    let says = format!(
        "rank {} of {} (process {}) was killed, or has aborted; the job ends",
        world.rank(),
        world.size(),
        std::process::id()
    );
    Command::new("/bin/sh")
        .args(["-c", SCRIPT, "sh", &says])
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// The guards of the other ranks on this node. Collective.
fn others(world: &SimpleCommunicator, own: u32) -> String {
    let node = world.split_shared(world.rank());
    let mut all = vec![0_u32; usize::try_from(node.size()).unwrap_or(1)];
    node.all_gather_into(&own, &mut all[..]);
    let others = all.iter().filter(|id| **id != 0 && **id != own);
    others.map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// Ends the guard: this rank is done, or has said itself what it dies of.
pub(crate) fn dismiss() {
    let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut guard) = guard {
        if let Some(mut pipe) = guard.stdin.take() {
            let _ = pipe.write_all(b"done\n");
        }
        let _ = guard.wait();
    }
}
