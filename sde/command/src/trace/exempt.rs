//! What is no input of a run, though programs read it.

use std::ffi::OsStr;
use std::path::Path;

/// Files and folders, each with all below it, and why they do not count.
const EXEMPT: &[(&str, &str)] = &[
    ("/proc", "tells of processes and of the machine"),
    ("/sys", "tells of the machine"),
    ("/dev", "devices have no content"),
    (
        "/etc/ld.so.cache",
        "the loader is asked for libraries at each call",
    ),
    (
        "/etc/ld.so.preload",
        "the loader is asked for libraries at each call",
    ),
    (
        "/etc/localtime",
        "the time zone; results with times differ anyway",
    ),
    ("/usr/share/zoneinfo", "time zones"),
    (
        "/usr/lib/locale",
        "the language of messages; LANG and LC_* are declared or cleared",
    ),
    ("/usr/share/locale", "translations of messages"),
    ("/etc/locale.alias", "other names of languages"),
    ("/etc/selinux", "whether the machine has SELinux"),
    ("/selinux", "whether the machine has SELinux"),
    (
        "/etc/nsswitch.conf",
        "how the names of users and machines are found",
    ),
    ("/etc/passwd", "the names of users"),
    ("/etc/group", "the names of groups"),
];

/// What lies below something exempt, and counts.
const COUNTS: &[&str] = &["/dev/shm"];

/// Why a path counts for no run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exempt {
    /// It is of the kernel, and may be another name of a file.
    Kernel,
    /// It tells of the machine.
    Machine,
}

pub(super) fn of(path: &Path) -> Option<Exempt> {
    let is_below = |above: &str| path.starts_with(above);
    let counts = |above: &&str| is_below(above) && path != Path::new(above);
    if COUNTS.iter().any(counts) || leads_out(path) {
        return None;
    }
    let (above, _) = EXEMPT.iter().find(|(above, _)| is_below(above))?;
    Some(match *above {
        "/proc" | "/dev" => Exempt::Kernel,
        _ => Exempt::Machine,
    })
}

/// Whether a path below `/proc` goes through one of a process's links to folders.
fn leads_out(path: &Path) -> bool {
    let Ok(below) = path.strip_prefix("/proc") else {
        return false;
    };
    let parts: Vec<&OsStr> = below.iter().collect();
    let is_link = |part: &&OsStr| *part == "root" || *part == "cwd";
    let is_number = |pair: &[&OsStr]| pair[0] == "fd" && pair.len() == 3;
    parts.iter().any(is_link) || parts.windows(3).any(is_number)
}
