//! The machine: when and where a computation is made, as records say it, and how much memory there is.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// The time of day, not before 1970: a machine whose clock was never set is in some year before that. Such
/// a time has no form that records can be saved in, and a result must not be lost for want of a date.
pub(crate) fn now() -> SystemTime {
    writable(SystemTime::now())
}

fn writable(time: SystemTime) -> SystemTime {
    time.max(SystemTime::UNIX_EPOCH)
}

/// The machine's name; empty if it has none.
pub(crate) fn host() -> Arc<str> {
    static HOST: OnceLock<Arc<str>> = OnceLock::new();
    Arc::clone(HOST.get_or_init(|| name().into()))
}

#[cfg(unix)]
fn name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Its processor architecture and operating system.
pub(crate) fn target() -> Arc<str> {
    static TARGET: OnceLock<Arc<str>> = OnceLock::new();
    let name = || format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS).into();
    Arc::clone(TARGET.get_or_init(name))
}

/// How much memory one of so many ranks on this machine may take: what the machine has, or the control groups of the
/// process, divided by them, or by as many as a launcher says that it has started. `None` if that is not known here.
pub(crate) fn memory_of_one_of(ranks: usize) -> Option<usize> {
    let tasks = || tasks_here(|name| std::env::var(name).ok());
    let ranks = if ranks > 1 { ranks } else { tasks() };
    Some(memory(Path::new("/"))? / ranks)
}

/// How many tasks a launcher has started on this node, this one among them.
fn tasks_here(variable: impl Fn(&str) -> Option<String>) -> usize {
    let number = |name: &str| variable(name)?.parse::<usize>().ok();
    let of_slurm = || {
        let node = number("SLURM_NODEID")?;
        of_node(&variable("SLURM_STEP_TASKS_PER_NODE")?, node)
    };
    let local = [
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS",
        "PMI_LOCAL_SIZE",
    ];
    let found = local.into_iter().find_map(number).or_else(of_slurm);
    found.unwrap_or(1).max(1)
}

/// Of Slurm's list of numbers the one for a node: in `4(x2),3` nodes 0 and 1 have four, and node 2 has three.
fn of_node(list: &str, node: usize) -> Option<usize> {
    let mut nodes = 0;
    for part in list.split(',') {
        let (number, times) = part.split_once("(x").unwrap_or((part, "1)"));
        nodes += times.strip_suffix(')')?.parse::<usize>().ok()?;
        if node < nodes {
            return number.parse().ok();
        }
    }
    None
}

/// The memory of the machine with this root, or less, if a control group of the process has less.
fn memory(root: &Path) -> Option<usize> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let info = read("proc/meminfo")?;
    let total = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = total.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| {
        // `hierarchy:controllers:path`, with 0 and nothing for the second version.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        let (top, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        // That of each group above holds too.
        let above = Path::new(path).ancestors();
        let files = above.map(|path| format!("{top}{}/{file}", path.display()));
        files
            .filter_map(|file| read(&file)?.trim().parse().ok())
            .collect()
    });
    Some(limits.fold(kib.saturating_mul(1024), usize::min))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn before_1970_is_1970() {
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(writable(early), SystemTime::UNIX_EPOCH);
        let late = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        assert_eq!(writable(late), late);
    }

    /// The memory of a machine with 64 GiB, with these groups and limits.
    fn memory_with(groups: &str, limits: &[(&str, &str)]) -> Option<usize> {
        let root = tempfile::tempdir().unwrap();
        let meminfo = "MemTotal:       67108864 kB\nMemFree:        1 kB\n";
        let files = [("proc/meminfo", meminfo), ("proc/self/cgroup", groups)];
        for (path, text) in files.iter().chain(limits) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        memory(root.path())
    }

    #[test]
    fn the_least_of_the_machine_and_its_control_groups_is_what_there_is() {
        const GIB: usize = 1 << 30;
        assert_eq!(memory_with("", &[]), Some(64 * GIB));
        let job = "sys/fs/cgroup/slurm/job/memory.max";
        let step = "sys/fs/cgroup/slurm/job/step/memory.max";
        let groups = "0::/slurm/job/step\n";
        assert_eq!(memory_with(groups, &[(step, "max\n")]), Some(64 * GIB));
        let both = [(step, "max\n"), (job, "4294967296\n")];
        assert_eq!(memory_with(groups, &both), Some(4 * GIB));
        let first = "sys/fs/cgroup/memory/job/memory.limit_in_bytes";
        let groups = "4:cpu:/\n3:memory,hugetlb:/job\n0::/other\n";
        assert_eq!(memory_with(groups, &[(first, "1073741824")]), Some(GIB));
        let unlimited = [(first, "9223372036854771712")];
        assert_eq!(memory_with(groups, &unlimited), Some(64 * GIB));
    }

    #[test]
    fn launchers_say_how_many_tasks_are_here() {
        let tasks = |given: &[(&str, &str)]| {
            tasks_here(|name| {
                let found = given.iter().find(|(of, _)| *of == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(tasks(&[]), 1);
        assert_eq!(tasks(&[("OMPI_COMM_WORLD_LOCAL_SIZE", "4")]), 4);
        assert_eq!(tasks(&[("MPI_LOCALNRANKS", "0")]), 1);
        let on = |node, list| tasks(&[("SLURM_NODEID", node), ("SLURM_STEP_TASKS_PER_NODE", list)]);
        assert_eq!(
            ["0", "1", "2", "3"].map(|node| on(node, "4(x2),3")),
            [4, 4, 3, 1]
        );
        assert_eq!(["4(x", "x", "", "(x2)"].map(|list| on("0", list)), [1; 4]);
    }
}
