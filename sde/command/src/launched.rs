//! What a launcher or an interpreter runs.

use std::path::{Path, PathBuf};

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

/// Words that a shell runs by itself, whatever `PATH` has.
const BUILTIN: &[&str] = &[
    "[", "cd", "echo", "false", "kill", "printf", "pwd", "test", "true",
];

/// A program as a launcher of others is known: by its name, and by that of the file that a link leads to.
pub(crate) enum Kind {
    Launcher { is_shell: bool },
    Interpreter { has_modules: bool },
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
            let ends = [".openmpi", ".mpich", ".hydra"];
            let stem = ends
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .unwrap_or(&name);
            if LAUNCHERS.contains(&stem) {
                let is_shell = stem.ends_with("sh") && stem != "ssh";
                return Self::Launcher { is_shell };
            }
            let is_version = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
            let stem = name.trim_end_matches(is_version);
            if INTERPRETERS.contains(&stem) {
                let has_modules = ["python", "pypy", "perl"].contains(&stem);
                return Self::Interpreter { has_modules };
            }
        }
        Self::Other
    }
}

/// What the words of a command are held against.
pub(crate) struct Launched<'a> {
    /// The program of this name in the run's `PATH`.
    pub(crate) find: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Whether a word was declared to be used, or to be text; or leads to a program that was.
    pub(crate) is_declared: &'a dyn Fn(&str) -> bool,
    /// Whether a word leads to an input.
    pub(crate) is_input: &'a dyn Fn(&str) -> bool,
    /// Whether a word leads to an input that can be executed, or to a program that is used.
    pub(crate) is_program: &'a dyn Fn(&str) -> bool,
}

impl Launched<'_> {
    /// Refuses a program among the arguments of a launcher, and a script or module of an interpreter, that no key would
    /// see. Gives what is run, for the name of the app.
    pub(crate) fn check(
        &self,
        kind: &Kind,
        args: &[String],
    ) -> Result<Option<String>, CommandError> {
        match kind {
            Kind::Launcher { is_shell } => {
                args.iter()
                    .try_for_each(|arg| self.launcher(*is_shell, arg))?;
                let script = args.iter().find(|arg| *is_shell && (self.is_input)(arg));
                let program = || args.iter().find(|arg| (self.is_program)(arg));
                Ok(script.or_else(program).cloned())
            }
            Kind::Interpreter { has_modules } => self.interpreter(*has_modules, args),
            Kind::Other => Ok(None),
        }
    }

    fn launcher(&self, is_shell: bool, arg: &str) -> Result<(), CommandError> {
        if (self.is_declared)(arg) {
            return Ok(());
        }
        // A shell takes these marks out of words.
        let bare = arg.replace(['"', '\'', '\\'], "");
        // A word may follow an option's letter at once.
        let joined = arg
            .strip_prefix('-')
            .and_then(|rest| rest.get(1..))
            .unwrap_or_default();
        let is_mark = |c: char| c.is_whitespace() || ";|&()<>\"'`$={}\\".contains(c);
        let words = [arg, &bare, joined]
            .into_iter()
            .flat_map(|text| text.split(is_mark));
        let is_told = |word: &&str| {
            word.is_empty()
                || word.contains('/')
                || is_shell && BUILTIN.contains(word)
                || (self.is_declared)(word)
        };
        let programs = words.filter(|word| !is_told(word) && (self.find)(word).is_some());
        let mut programs: Vec<&str> = programs.collect();
        programs.sort_unstable();
        programs.dedup();
        if programs.is_empty() {
            return Ok(());
        }
        let flags = |flag: &str| {
            programs
                .iter()
                .map(|word| format!("{flag} {word}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        Err(CommandError::refused(
            format!("the argument {}", shown(arg)),
            format!(
                "nobody would notice if the program {} changed: {} counts it, {} says that it is just a word",
                programs.join(" or "),
                flags("--uses"),
                flags("--text")
            ),
        ))
    }

    fn interpreter(
        &self,
        has_modules: bool,
        args: &[String],
    ) -> Result<Option<String>, CommandError> {
        let mut suspect = None;
        let mut args = args.iter().map(|arg| &**arg).peekable();
        while let Some(arg) = args.next() {
            let Some(letters) = arg.strip_prefix('-') else {
                if (self.is_input)(arg) {
                    return Ok(Some(arg.to_owned()));
                }
                if !(self.is_declared)(arg) {
                    suspect = suspect.or(Some(arg));
                }
                continue;
            };
            let at = letters
                .find(|c: char| !c.is_alphabetic() || c == 'm')
                .unwrap_or(letters.len());
            if has_modules && letters[at..].starts_with('m') {
                let joined = Some(&letters[at + 1..]).filter(|module| !module.is_empty());
                let module = joined.or_else(|| args.peek().copied()).unwrap_or_default();
                return match (self.is_declared)(module) {
                    true => Ok(None),
                    false => Err(unseen(module)),
                };
            }
            // The program's text follows, or is what stands on standard input.
            let is_long = letters.starts_with('-');
            let is_text = match is_long {
                true => ["--eval", "--execute"].contains(&arg),
                false => letters.is_empty() || letters.ends_with(['c', 'e', 'E']),
            };
            if is_text {
                return Ok(None);
            }
        }
        match suspect {
            None => Ok(None),
            Some(arg) => Err(CommandError::refused(
                format!("the argument {}", shown(arg)),
                format!(
                    "there is no file {0} here; --text {0} if it is just a word",
                    shown(arg)
                ),
            )),
        }
    }
}

fn unseen(module: &str) -> CommandError {
    CommandError::refused(
        format!("the module {module}"),
        format!(
            "nobody would notice if it changed: --text {module}, and if it is a file or folder here, -i {module}.py or --tree {module}"
        ),
    )
}
