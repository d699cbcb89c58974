//! Follows the processes of a trace: which files each call leads to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::parse::{self, Call, Line, Named};

/// What is kept of processes whose parents are not known yet, in bytes.
const MOST_WAITING: usize = 4 << 20;

/// What a process did with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It asked whether there is such a file, or for what is not its content.
    Look,
    Read,
    /// It listed a folder.
    List,
    /// It runs the file.
    Start,
    /// It made the file, or threw away what it held.
    Make,
    /// It adds to a file, and makes one where there is none.
    Add,
}

/// One act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) act: Act,
    /// The absolute path by which it was named.
    pub(super) path: PathBuf,
    /// Where the file lies, if that is known.
    pub(super) real: Option<PathBuf>,
    /// There is nothing of that name.
    pub(super) is_absent: bool,
    pub(super) is_done: bool,
}

/// A process, or a thread.
struct Process {
    /// Shared by threads.
    folder: Rc<RefCell<PathBuf>>,
    /// The beginning of a call.
    begun: Option<String>,
}

/// The processes of a trace that live.
pub(super) struct Follow {
    processes: HashMap<u32, Process>,
    /// Lines of processes whose parents did not come back from their calls yet.
    waiting: HashMap<u32, Vec<String>>,
    waiting_bytes: usize,
    /// Where the first process starts, until it is known.
    start: Option<PathBuf>,
    /// Whether a program was started at all.
    pub(super) is_started: bool,
    /// Why the trace does not tell all.
    pub(super) cut: Option<String>,
}

impl Follow {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            processes: HashMap::new(),
            waiting: HashMap::new(),
            waiting_bytes: 0,
            start: Some(folder.to_owned()),
            is_started: false,
            cut: None,
        }
    }

    /// Takes the next line.
    pub(super) fn line(&mut self, text: &str, seen: &mut dyn FnMut(Access)) {
        let Some((number, line)) = parse::line(text) else {
            return self.cut(|| format!("strace wrote a line of another kind: {text:.200}"));
        };
        if let Some(start) = self.start.take() {
            self.add(number, Rc::new(RefCell::new(start)));
        }
        if !self.processes.contains_key(&number) {
            return self.wait(number, text, seen);
        }
        match line {
            Line::Nothing => {}
            Line::Ended => drop(self.processes.remove(&number)),
            Line::Superseded(by) => {
                if let Some(thread) = self.processes.remove(&by) {
                    self.processes.insert(number, thread);
                }
            }
            Line::Begun(text) => {
                if let Some(process) = self.processes.get_mut(&number) {
                    process.begun = Some(text.to_owned());
                }
            }
            Line::Resumed(rest) => {
                let process = self.processes.get_mut(&number);
                match process.and_then(|process| process.begun.take()) {
                    Some(begun) => self.call(number, &format!("{begun}{rest}"), seen),
                    None => {
                        self.cut(|| "strace wrote the end of a call without its beginning".into())
                    }
                }
            }
            Line::Call(text) => self.call(number, text, seen),
        }
    }

    /// Takes the end of the trace.
    pub(super) fn end(&mut self, seen: &mut dyn FnMut(Access)) {
        if !self.processes.is_empty() || !self.waiting.is_empty() {
            self.cut(|| "processes lived on when it ended".into());
        }
        let folder = Rc::new(RefCell::new(PathBuf::from("/")));
        while let Some(&number) = self.waiting.keys().next() {
            self.join(number, Rc::clone(&folder), seen);
        }
    }

    pub(super) fn cut(&mut self, why: impl FnOnce() -> String) {
        self.cut.get_or_insert_with(why);
    }

    fn add(&mut self, number: u32, folder: Rc<RefCell<PathBuf>>) {
        let begun = None;
        self.processes.insert(number, Process { folder, begun });
    }

    /// Keeps a line of a process until its parent is known, whose folder is its own.
    fn wait(&mut self, number: u32, text: &str, seen: &mut dyn FnMut(Access)) {
        self.waiting_bytes += text.len();
        self.waiting
            .entry(number)
            .or_default()
            .push(text.to_owned());
        if self.waiting_bytes > MOST_WAITING {
            self.cut(|| "the parents of too many processes are not known".into());
            self.join(number, Rc::new(RefCell::new(PathBuf::from("/"))), seen);
        }
    }

    fn join(&mut self, number: u32, folder: Rc<RefCell<PathBuf>>, seen: &mut dyn FnMut(Access)) {
        self.add(number, folder);
        for line in self.waiting.remove(&number).unwrap_or_default() {
            self.waiting_bytes -= line.len();
            self.line(&line, seen);
        }
    }

    fn call(&mut self, number: u32, text: &str, seen: &mut dyn FnMut(Access)) {
        let Some(call) = Call::read(text) else {
            return self.cut(|| format!("strace wrote a call of another kind: {text:.200}"));
        };
        let Some(process) = self.processes.get(&number) else {
            return;
        };
        let folder = Rc::clone(&process.folder);
        if let Some(current) = call.current() {
            folder.replace(current);
        }
        let here = folder.borrow().clone();
        let accesses = accesses(&call, &here);
        match call.name {
            "clone" | "clone3" | "fork" | "vfork" => {
                if let Some(child) = call.number() {
                    let own = || Rc::new(RefCell::new(here.clone()));
                    let is_shared = call.has("CLONE_FS");
                    self.join(child, if is_shared { folder } else { own() }, seen);
                }
            }
            "unshare" if call.is_done() => {
                if let Some(process) = self.processes.get_mut(&number) {
                    process.folder = Rc::new(RefCell::new(here));
                }
            }
            "chdir" if call.is_done() => {
                if let Some(to) = accesses.first() {
                    let real = fs::canonicalize(&to.path);
                    folder.replace(real.unwrap_or_else(|_| to.path.clone()));
                }
            }
            "fchdir" if call.is_done() => {
                if let Some(to) = call.of_number() {
                    folder.replace(to);
                }
            }
            "execve" | "execveat" if call.is_done() => self.is_started = true,
            _ => {}
        }
        if let Some(why) = hides(&call) {
            self.cut(|| format!("{} {why}", call.name));
        }
        accesses.into_iter().for_each(seen);
    }
}

/// Why files can be read after this call that no trace tells of.
fn hides(call: &Call<'_>) -> Option<&'static str> {
    if !call.is_done() {
        return None;
    }
    let is_apart = || call.has("CLONE_NEWNS") || call.has("CLONE_NEWPID");
    match call.name {
        "io_uring_setup" => Some("was called, by which files are opened unseen"),
        "chroot" | "pivot_root" | "mount" | "move_mount" | "umount2" | "setns" => {
            Some("was called, after which paths lead to other files")
        }
        "clone" | "clone3" | "unshare" if is_apart() => {
            Some("was called, after which paths and processes have other names")
        }
        _ => None,
    }
}

/// What a call does with files. `here` is the folder of the process.
fn accesses(call: &Call<'_>, here: &Path) -> Vec<Access> {
    let one = |act, named: Named| Access {
        act,
        path: absolute(named.folder.as_deref().unwrap_or(here), &named.path),
        real: None,
        is_absent: call.is_absent(),
        is_done: call.is_done(),
    };
    let made = if call.is_done() { Act::Make } else { Act::Look };
    // An empty path stands for a file that was opened before.
    let mut paths = call.paths().into_iter();
    let mut next = || paths.next().filter(|named| named.path != Path::new(""));
    let acts: Vec<(Act, Option<Named>)> = match call.name {
        "clone" | "clone3" | "fork" | "vfork" | "unshare" | "setns" | "fchdir" | "getcwd"
        | "io_uring_setup" => Vec::new(),
        "getdents" | "getdents64" => {
            let folder = call.of_number().map(|path| Named { path, folder: None });
            vec![(Act::List, folder)]
        }
        "execve" | "execveat" => vec![(Act::Start, next())],
        "mkdir" | "mkdirat" | "mknod" | "mknodat" => vec![(made, next())],
        // The first text of a link is not looked up.
        "symlink" | "symlinkat" => vec![(made, next().and_then(|_| next()))],
        "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
            vec![(Act::Read, next()), (made, next())]
        }
        "open" | "openat" | "openat2" | "creat" => {
            vec![(opens(call), next())]
        }
        "open_by_handle_at" => {
            let opened = call.opened().map(|path| Named { path, folder: None });
            vec![(Act::Read, opened)]
        }
        _ => vec![(Act::Look, next())],
    };
    let acts = acts.into_iter();
    let acts = acts.filter_map(|(act, named)| Some(one(act, named?)));
    let real = call
        .name
        .starts_with("open")
        .then(|| call.opened())
        .flatten();
    acts.map(|access| Access {
        real: real.clone(),
        ..access
    })
    .collect()
}

/// What is done by opening a file. Who only adds to one does not see whether it was there.
fn opens(call: &Call<'_>) -> Act {
    let is_new = call.has("O_CREAT") && call.has("O_EXCL");
    let is_emptied = call.name == "creat" || call.has("O_TRUNC");
    match call.is_done() {
        // The path is that of a folder.
        true if call.has("O_PATH") || call.has("O_TMPFILE") => Act::Look,
        true if is_new || is_emptied => Act::Make,
        true if call.has("O_WRONLY") && call.has("O_CREAT") => Act::Add,
        true if call.has("O_WRONLY") => Act::Look,
        _ => Act::Read,
    }
}

/// A path without `.` and `..`, which go up from where links lead to.
pub(super) fn absolute(folder: &Path, path: &Path) -> PathBuf {
    let mut whole = PathBuf::from("/");
    for part in folder.join(path).components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::ParentDir => {
                whole = fs::canonicalize(&whole).unwrap_or(whole);
                whole.pop();
            }
            _ => {}
        }
    }
    whole
}
