//! Follows the processes of a trace: which files each call leads to.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::access::{Access, Act, accesses, is_library};
use super::parse::{self, Call, Line};

/// What is kept of processes whose parents are not known yet, in bytes.
const MOST_WAITING: usize = 4 << 20;

/// A process, or a thread.
struct Process {
    /// Shared by threads.
    folder: Rc<RefCell<PathBuf>>,
    /// The names of libraries that were opened. Shared by all that share memory.
    loaded: Rc<RefCell<HashSet<OsString>>>,
    /// The library that it looked for in vain by its last call.
    sought: Option<PathBuf>,
    /// The beginning of a call.
    begun: Option<String>,
}

impl Process {
    fn new(folder: PathBuf) -> Self {
        Self {
            folder: Rc::new(RefCell::new(folder)),
            loaded: Rc::default(),
            sought: None,
            begun: None,
        }
    }

    /// Notes whether it is an access of the loader: it opens a library, and if it is not there asks for its folder.
    fn note(&mut self, access: &mut Access) {
        let sought = self.sought.take();
        let loaded = &mut *self.loaded.borrow_mut();
        match access.path.file_name().filter(|name| is_library(name)) {
            Some(name) if access.act == Act::Read && !loaded.contains(name) => {
                access.loads = Some(name.to_owned());
                match access.is_done {
                    true => drop(loaded.insert(name.to_owned())),
                    false => self.sought = Some(access.path.clone()),
                }
            }
            _ => {
                let sought = sought.filter(|sought| sought.parent() == Some(&access.path));
                let name = sought.filter(|_| access.act == Act::Look);
                access.loads = name.and_then(|name| Some(name.file_name()?.to_owned()));
            }
        }
    }

    /// What the process is that a call makes.
    fn child(&self, call: &Call<'_>) -> Self {
        Self {
            folder: match call.has("CLONE_FS") {
                true => Rc::clone(&self.folder),
                false => Rc::new(RefCell::clone(&self.folder)),
            },
            loaded: match call.has("CLONE_VM") {
                true => Rc::clone(&self.loaded),
                false => Rc::new(RefCell::clone(&self.loaded)),
            },
            sought: None,
            begun: None,
        }
    }
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
            self.processes.insert(number, Process::new(start));
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
        while let Some(&number) = self.waiting.keys().next() {
            self.join(number, Process::new(PathBuf::from("/")), seen);
        }
    }

    pub(super) fn cut(&mut self, why: impl FnOnce() -> String) {
        self.cut.get_or_insert_with(why);
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
            self.join(number, Process::new(PathBuf::from("/")), seen);
        }
    }

    fn join(&mut self, number: u32, process: Process, seen: &mut dyn FnMut(Access)) {
        self.processes.insert(number, process);
        for line in self.waiting.remove(&number).unwrap_or_default() {
            self.waiting_bytes -= line.len();
            self.line(&line, seen);
        }
    }

    fn call(&mut self, number: u32, text: &str, seen: &mut dyn FnMut(Access)) {
        let Some(call) = Call::read(text) else {
            return self.cut(|| format!("strace wrote a call of another kind: {text:.200}"));
        };
        let Some(process) = self.processes.get_mut(&number) else {
            return;
        };
        if let Some(current) = call.current() {
            process.folder.replace(current);
        }
        let mut accesses = accesses(&call, &process.folder.borrow());
        for access in &mut accesses {
            process.note(access);
        }
        match call.name {
            "clone" | "clone3" | "fork" | "vfork" => {
                if let Some(child) = call.number() {
                    let process = process.child(&call);
                    self.join(child, process, seen);
                }
            }
            "unshare" if call.is_done() => {
                let here = process.folder.borrow().clone();
                process.folder = Rc::new(RefCell::new(here));
            }
            "chdir" if call.is_done() => {
                if let Some(to) = accesses.first() {
                    let real = fs::canonicalize(&to.path);
                    process
                        .folder
                        .replace(real.unwrap_or_else(|_| to.path.clone()));
                }
            }
            "fchdir" if call.is_done() => {
                if let Some(to) = call.of_number() {
                    process.folder.replace(to);
                }
            }
            "execve" | "execveat" if call.is_done() => {
                process.loaded = Rc::default();
                self.is_started = true;
            }
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
    // Also what it does not find is elsewhere.
    if call.name == "openat2" && call.has("RESOLVE_IN_ROOT") {
        return Some("was called with another root");
    }
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
        "clone" | "clone3" if call.has("CLONE_UNTRACED") => {
            Some("was called, whose process is not traced")
        }
        _ => None,
    }
}
