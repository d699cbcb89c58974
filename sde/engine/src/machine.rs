//! The machine: when and where a computation is made, as records say it, and how much memory and how many cores there are.

use std::num::NonZero;
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

/// The login name of the process's user, as its environment says; empty if it does not.
pub(crate) fn user() -> Arc<str> {
    static USER: OnceLock<Arc<str>> = OnceLock::new();
    let named = || ["USER", "LOGNAME", "USERNAME"].map(std::env::var);
    let named = || named().into_iter().flatten().find(|name| !name.is_empty());
    Arc::clone(USER.get_or_init(|| named().unwrap_or_default().into()))
}

/// Its processor architecture and operating system.
pub(crate) fn target() -> Arc<str> {
    static TARGET: OnceLock<Arc<str>> = OnceLock::new();
    let name = || format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS).into();
    Arc::clone(TARGET.get_or_init(name))
}

/// The job of the batch system that runs this process, the same for all jobs of an array; empty if there is none.
pub(crate) fn job() -> Arc<str> {
    static JOB: OnceLock<Arc<str>> = OnceLock::new();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Arc::clone(JOB.get_or_init(|| job_of(variable).into()))
}

/// The array of jobs that this process is in; empty if it is in none.
#[must_use]
pub fn array_of_jobs() -> Arc<str> {
    let job = job();
    let is_of_slurm = std::env::var_os("SLURM_ARRAY_JOB_ID").is_some_and(|id| !id.is_empty());
    match is_of_slurm || job.contains("[]") {
        true => job,
        false => Arc::default(),
    }
}

fn job_of(variable: impl Fn(&str) -> Option<String>) -> String {
    let named = ["SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID", "FLUX_JOB_ID"];
    let of_pbs = || {
        // `123[4].host` is one of `123[].host`.
        let id = variable("PBS_JOBID")?;
        let (array, rest) = id.split_once('[').unwrap_or((&id, ""));
        let host = rest.split_once(']').map(|(_, host)| host);
        Some(host.map_or_else(|| id.clone(), |host| format!("{array}[]{host}")))
    };
    let found = named.into_iter().find_map(&variable).or_else(of_pbs);
    found.unwrap_or_default()
}

/// How much memory one of so many ranks on this machine may take. That of the machine, or of the process's control
/// groups, is divided by the ranks, or by the tasks that a launcher has started. `None` if that is not known here.
pub(crate) fn memory_of_one_of(ranks: usize) -> Option<usize> {
    Some(memory(Path::new("/"))? / or_tasks(ranks))
}

/// How many threads one of so many ranks on this machine may use, divided in the same way. A launcher may have bound this process
/// to some of the cores: it uses no more than those, and those are not divided again.
pub(crate) fn cores_of_one_of(ranks: usize) -> usize {
    let own = std::thread::available_parallelism().map_or(1, NonZero::get);
    let all = cores(Path::new("/")).unwrap_or(own);
    own.min((all / or_tasks(ranks)).max(1))
}

/// The number of ranks; for a single one the number of tasks that a launcher has started.
fn or_tasks(ranks: usize) -> usize {
    match ranks {
        2.. => ranks,
        _ => tasks_here(|name| std::env::var(name).ok()),
    }
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

/// The number for a node in Slurm's list: in `4(x2),3` nodes 0 and 1 have four, and node 2 has three.
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
    let limits = of_groups(root, ("memory", "memory.max", "memory.limit_in_bytes"));
    let limits = limits.iter().filter_map(|limit| limit.parse().ok());
    Some(limits.fold(kib.saturating_mul(1024), usize::min))
}

/// The cores of the machine with this root, or fewer, if a control group of the process has fewer, or so much time of them.
fn cores(root: &Path) -> Option<usize> {
    let online = std::fs::read_to_string(root.join("sys/devices/system/cpu/online")).ok()?;
    let sets = of_groups(
        root,
        ("cpuset", "cpuset.cpus.effective", "cpuset.effective_cpus"),
    );
    let sets = sets.iter().filter_map(|set| in_list(set));
    let times = of_groups(root, ("cpu", "cpu.max", ""));
    let times = times.iter().filter_map(|time| {
        let (time, period) = time.split_once(' ')?;
        Some(time.parse::<usize>().ok()?.div_ceil(period.parse().ok()?))
    });
    Some(sets.chain(times).fold(in_list(online.trim())?, usize::min))
}

/// How many numbers are in a list such as `0-3,8`.
fn in_list(list: &str) -> Option<usize> {
    let ranges = list.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let numbers = first.parse::<usize>().ok()?..=last.parse().ok()?;
        Some(numbers.count())
    });
    ranges.sum()
}

/// The content of a file in each control group of the process, and in those above. Given are the name of the
/// controller, and the file's names in the second and the first version of groups.
fn of_groups(root: &Path, (of, second, first): (&str, &str, &str)) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let said = groups.lines().flat_map(|line| {
        // `hierarchy:controllers:path`, with 0 and nothing for the second version.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        let (top, file) = match controllers {
            "" => ("sys/fs/cgroup".to_owned(), second),
            _ if controllers.split(',').any(|one| one == of) => {
                (format!("sys/fs/cgroup/{of}"), first)
            }
            _ => return Vec::new(),
        };
        // The limits of the groups above hold too.
        let above = Path::new(path).ancestors();
        let files = above.filter_map(|path| read(&format!("{top}{}/{file}", path.display())));
        files.map(|said| said.trim().to_owned()).collect()
    });
    said.collect()
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

    /// A machine with 64 GiB and 16 cores, with these groups and limits.
    fn machine(groups: &str, limits: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let meminfo = "MemTotal:       67108864 kB\nMemFree:        1 kB\n";
        let files = [
            ("proc/meminfo", meminfo),
            ("sys/devices/system/cpu/online", "0-15\n"),
            ("proc/self/cgroup", groups),
        ];
        for (path, text) in files.iter().chain(limits) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn memory_with(groups: &str, limits: &[(&str, &str)]) -> Option<usize> {
        memory(machine(groups, limits).path())
    }

    #[test]
    fn cores_are_those_of_the_control_groups() {
        let cores = |groups: &str, limits: &[_]| cores(machine(groups, limits).path());
        assert_eq!(cores("", &[]), Some(16));
        let groups = "0::/slurm/job/step\n";
        let job = "sys/fs/cgroup/slurm/job/cpuset.cpus.effective";
        assert_eq!(cores(groups, &[(job, "0-3,8\n")]), Some(5));
        let time = "sys/fs/cgroup/slurm/cpu.max";
        assert_eq!(cores(groups, &[(time, "max 100000\n")]), Some(16));
        assert_eq!(
            cores(groups, &[(job, "0-3"), (time, "250000 100000")]),
            Some(3)
        );
        let first = "sys/fs/cgroup/cpuset/job/cpuset.effective_cpus";
        assert_eq!(cores("3:cpuset,cpu:/job\n", &[(first, "4-5")]), Some(2));
        assert_eq!(
            ["", "x", "0-", "3-1"].map(in_list),
            [None, None, None, Some(0)]
        );
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
    fn jobs_of_an_array_have_one_name() {
        let job = |set: &[(&str, &str)]| {
            job_of(|name| {
                let found = set.iter().find(|(set, _)| *set == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(job(&[]), "");
        assert_eq!(
            job(&[("SLURM_JOB_ID", "12"), ("SLURM_ARRAY_JOB_ID", "10")]),
            "10"
        );
        assert_eq!(job(&[("SLURM_JOB_ID", "12")]), "12");
        assert_eq!(job(&[("FLUX_JOB_ID", "f3x")]), "f3x");
        assert_eq!(job(&[("PBS_JOBID", "123[4].host")]), "123[].host");
        assert_eq!(job(&[("PBS_JOBID", "123.host")]), "123.host");
        assert_eq!(job(&[("PBS_JOBID", "]1[")]), "]1[");
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
