//! What a launcher or an interpreter runs.

use std::path::Path;

use crate::error::CommandError;
use crate::paths::shown;

/// Programs that start another one, which is among their arguments.
const LAUNCHERS: &[&str] = &[
    "apptainer",
    "aprun",
    "bash",
    "busybox",
    "chroot",
    "chrt",
    "conda",
    "dash",
    "docker",
    "doas",
    "env",
    "fish",
    "flock",
    "flux",
    "gdb",
    "ibrun",
    "ionice",
    "jsrun",
    "ksh",
    "ltrace",
    "mamba",
    "micromamba",
    "mpiexec",
    "mpirun",
    "ncu",
    "nice",
    "nohup",
    "nsys",
    "numactl",
    "orterun",
    "parallel",
    "perf",
    "pixi",
    "podman",
    "poetry",
    "prlimit",
    "prterun",
    "prun",
    "script",
    "setarch",
    "setsid",
    "sh",
    "singularity",
    "srun",
    "ssh",
    "stdbuf",
    "strace",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "torchrun",
    "uv",
    "valgrind",
    "watch",
    "wine",
    "xargs",
    "xvfb-run",
    "zsh",
];

/// Programs that run a script. A version may follow the name.
const INTERPRETERS: &[&str] = &[
    "R", "Rscript", "gnuplot", "java", "julia", "lua", "node", "octave", "perl", "php", "pypy",
    "python", "ruby", "tclsh",
];

/// Options of interpreters that a program's text follows.
const TEXT_FOLLOWS: &[&str] = &["-c", "-e", "-E", "--eval", "--execute"];

/// Words that a shell runs by itself, whatever `PATH` has.
const BUILTIN: &[&str] = &[
    "[", "cd", "echo", "false", "kill", "printf", "pwd", "test", "true",
];

/// A program as a launcher of others is known: by its name, and by that of the file that a link leads to.
pub(crate) enum Kind {
    Launcher { is_shell: bool },
    Interpreter,
    Other,
}

impl Kind {
    pub(crate) fn of(program: &Path) -> Self {
        let real = program
            .canonicalize()
            .unwrap_or_else(|_| program.to_owned());
        let name = |path: &Path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        for name in [name(program), name(&real)] {
            let stem = name.split('.').next().unwrap_or_default();
            if LAUNCHERS.contains(&stem) {
                let is_shell = stem.ends_with("sh") && stem != "ssh";
                return Self::Launcher { is_shell };
            }
            let is_versioned = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
            if INTERPRETERS.contains(&name.trim_end_matches(is_versioned)) {
                return Self::Interpreter;
            }
        }
        Self::Other
    }
}

/// What the words of a command are held against.
pub(crate) struct Launched<'a> {
    /// Whether the run's `PATH` has a program of this name.
    pub(crate) finds: &'a dyn Fn(&str) -> bool,
    /// Whether a word was declared to be used, or to be text.
    pub(crate) is_declared: &'a dyn Fn(&str) -> bool,
    /// Whether a word leads to an input.
    pub(crate) is_input: &'a dyn Fn(&str) -> bool,
}

impl Launched<'_> {
    /// Refuses a program among the arguments of a launcher, and a script of an interpreter, that no key would see.
    pub(crate) fn check(&self, kind: &Kind, args: &[String]) -> Result<(), CommandError> {
        match kind {
            Kind::Launcher { is_shell } => args
                .iter()
                .try_for_each(|arg| self.launcher(*is_shell, arg)),
            Kind::Interpreter => self.interpreter(args),
            Kind::Other => Ok(()),
        }
    }

    fn launcher(&self, is_shell: bool, arg: &str) -> Result<(), CommandError> {
        if (self.is_declared)(arg) {
            return Ok(());
        }
        let is_mark = |c: char| c.is_whitespace() || ";|&()<>\"'`$={}".contains(c);
        // A word may follow an option's letter at once.
        let joined = arg
            .strip_prefix('-')
            .and_then(|rest| rest.get(1..))
            .unwrap_or_default();
        let words = arg.split(is_mark).chain(joined.split(is_mark));
        let is_told = |word: &&str| {
            word.is_empty()
                || word.contains('/')
                || is_shell && BUILTIN.contains(word)
                || (self.is_declared)(word)
        };
        let mut programs = words.filter(|word| !is_told(word) && (self.finds)(word));
        match programs.next() {
            None => Ok(()),
            Some(word) => Err(CommandError::refused(
                format!("the argument {}", shown(arg)),
                format!(
                    "nobody would notice if the program {word} changed: --uses {word} counts it, --text {word} says that it is just a word"
                ),
            )),
        }
    }

    fn interpreter(&self, args: &[String]) -> Result<(), CommandError> {
        let mut before = "";
        for arg in args {
            let joined = arg.strip_prefix("-m").filter(|module| !module.is_empty());
            if let Some(module) = joined.filter(|module| !(self.is_declared)(module)) {
                return Err(unseen(module));
            }
            let is_done =
                TEXT_FOLLOWS.contains(&before) || (self.is_input)(arg) || joined.is_some();
            if is_done {
                return Ok(());
            }
            if !arg.starts_with('-') && !(self.is_declared)(arg) {
                return Err(match before {
                    "-m" => unseen(arg),
                    _ => CommandError::refused(
                        format!("the argument {}", shown(arg)),
                        format!(
                            "there is no file {0} here; --text {0} if it is just a word",
                            shown(arg)
                        ),
                    ),
                });
            }
            before = arg;
        }
        Ok(())
    }
}

fn unseen(module: &str) -> CommandError {
    CommandError::refused(
        format!("the module {module}"),
        format!("nobody would notice if it changed: --uses its folder, and --text {module}"),
    )
}
