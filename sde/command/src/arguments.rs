//! What the arguments of a command name: inputs, programs, and what would be a trap.
//!
//! A path in an argument that is in no key gives old results once the file is edited. So whatever an argument names is an
//! input, or is declared to be used or to be text; else the command is refused. The rules refuse too much rather than
//! too little: `text` is the way out.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::builder::{Command, Content};
use crate::error::CommandError;
use crate::outputs::{Outputs, is_inside};

/// Programs that start another one, which is among their arguments.
const LAUNCHERS: &[&str] = &[
    "aprun",
    "bash",
    "chrt",
    "conda",
    "dash",
    "doas",
    "env",
    "fish",
    "gdb",
    "ibrun",
    "ionice",
    "jsrun",
    "ksh",
    "ltrace",
    "micromamba",
    "mpiexec",
    "mpirun",
    "nice",
    "nohup",
    "numactl",
    "orterun",
    "parallel",
    "perf",
    "prterun",
    "prun",
    "setsid",
    "sh",
    "singularity",
    "apptainer",
    "srun",
    "stdbuf",
    "strace",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "uv",
    "valgrind",
    "watch",
    "wine",
    "xargs",
    "zsh",
];

/// Programs that run a script. A version may follow the name.
const INTERPRETERS: &[&str] = &[
    "R", "Rscript", "gnuplot", "java", "julia", "lua", "node", "octave", "perl", "php", "pypy",
    "python", "ruby", "tclsh",
];

/// Options of interpreters that a program's text follows.
const TEXT_FOLLOWS: &[&str] = &["-c", "-e", "-E", "--eval", "--execute"];

/// The arguments as the program gets them, and the files that it is given.
pub(crate) struct Arguments {
    pub(crate) args: Vec<String>,
    pub(crate) files: BTreeMap<String, Content>,
    pub(crate) trees: BTreeMap<String, PathBuf>,
    /// The script or program that an interpreter or a launcher runs, for the name of the app.
    pub(crate) runs: Option<String>,
}

/// What the arguments are read with.
struct Reading<'a> {
    command: &'a Command,
    outputs: &'a Outputs,
    base: &'a Path,
    files: BTreeMap<String, Content>,
    trees: BTreeMap<String, PathBuf>,
    /// Names in the run's folder, by the paths that are declared as inputs and trees.
    names: BTreeMap<PathBuf, String>,
}

impl Arguments {
    /// `variables` are those that count. `finds` tells whether the run's `PATH` has a program of a name.
    pub(crate) fn read(
        command: &Command,
        outputs: &Outputs,
        base: &Path,
        variables: &BTreeMap<String, String>,
        finds: &dyn Fn(&str) -> bool,
    ) -> Result<Self, CommandError> {
        let mut reading = Reading {
            command,
            outputs,
            base,
            files: BTreeMap::new(),
            trees: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        reading.declared()?;
        let args = command.args.iter().map(|arg| reading.argument(arg));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        for (name, value) in variables {
            // Counts as a text, and leads to programs, not to files.
            if name != "PATH" {
                reading.paths(value, &format!("the variable {name}"))?;
            }
        }
        let runs = reading.launched(&args, finds)?;
        let Reading { files, trees, .. } = reading;
        Ok(Self {
            args,
            files,
            trees,
            runs,
        })
    }
}

impl Reading<'_> {
    fn declared(&mut self) -> Result<(), CommandError> {
        for input in &self.command.inputs {
            let name = match (&input.name, &input.content) {
                (Some(name), _) => name.clone(),
                (None, Content::Path(path)) => name_of(path)?,
                (None, Content::Bytes(_)) => String::new(),
            };
            self.add(name, input.content.clone())?;
        }
        for tree in &self.command.trees {
            let name = name_of(tree)?;
            let path = self.base.join(tree);
            if !path.is_dir() {
                return Err(CommandError::refused(
                    format!("the tree {}", tree.display()),
                    "it is no folder; a file is an input: -i",
                ));
            }
            self.names.insert(plain(&path), name.clone());
            if let Some(other) = self
                .trees
                .insert(name.clone(), path.clone())
                .filter(|other| *other != path)
            {
                return Err(clash(&name, &other.display().to_string()));
            }
        }
        let below = |name: &String| {
            self.trees
                .keys()
                .find(|tree| Path::new(name).starts_with(tree))
        };
        match self.files.keys().chain(self.trees.keys()).find_map(|name| {
            below(name)
                .filter(|tree| *tree != name)
                .map(|tree| clash(name, tree))
        }) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Adds a file under a name.
    fn add(&mut self, name: String, content: Content) -> Result<(), CommandError> {
        if !is_inside(&name) {
            return Err(CommandError::refused(
                format!("the input {name:?}"),
                "an input is named by its path in the run's folder, without `..`: -i SOURCE=NAME",
            ));
        }
        let content = match content {
            Content::Path(path) => Content::Path(self.base.join(path)),
            bytes => bytes,
        };
        if let Content::Path(path) = &content {
            if path.is_dir() {
                return Err(CommandError::refused(
                    format!("the input {}", path.display()),
                    format!("it is a folder: --tree {}", path.display()),
                ));
            }
            self.names.insert(plain(path), name.clone());
        }
        let same = |other: &Content| match (other, &content) {
            (Content::Path(one), Content::Path(other)) => plain(one) == plain(other),
            (Content::Bytes(one), Content::Bytes(other)) => one == other,
            _ => false,
        };
        match self.files.insert(name.clone(), content.clone()) {
            Some(other) if !same(&other) => Err(clash(&name, "another one")),
            _ => Ok(()),
        }
    }

    /// An argument as the program gets it.
    fn argument(&mut self, arg: &str) -> Result<String, CommandError> {
        if self.is_declared(arg) || self.outputs.is_declared(arg.trim_end_matches('/')) {
            return Ok(arg.to_owned());
        }
        let path = self.base.join(arg);
        let is_name = self.files.contains_key(arg) || self.trees.contains_key(arg);
        match self.names.get(&plain(&path)) {
            Some(name) if is_name && name != arg => return Err(clash(arg, "another one")),
            Some(name) => return Ok(name.clone()),
            None if is_name => return Ok(arg.to_owned()),
            None => {}
        }
        let is_relative = !arg.is_empty() && !arg.starts_with('-') && !arg.starts_with('/');
        if is_relative && !self.is_in_a_tree(&path) {
            if path.is_dir() {
                return Err(CommandError::refused(
                    format!("the argument {arg:?}"),
                    format!(
                        "it is a folder, and is in no key: --tree {arg}, or --text {arg} if it is just a word"
                    ),
                ));
            }
            if path.is_file() {
                let name = name_of(Path::new(arg))?;
                self.add(name.clone(), Content::Path(PathBuf::from(arg)))?;
                return Ok(name);
            }
        }
        self.paths(arg, "the argument")
    }

    /// A text with the absolute paths of inputs in it replaced by their names. Others are refused.
    fn paths(&self, text: &str, what: &str) -> Result<String, CommandError> {
        let mut read = String::new();
        for piece in text.split_inclusive([':', '=', ',', ';', ' ', '\t', '\n', '"', '\'']) {
            let end = piece.trim_end_matches([':', '=', ',', ';', ' ', '\t', '\n', '"', '\'']);
            // Options such as -I/usr/include have no mark between.
            let begin = match end.starts_with('-') {
                true => end.find('/').unwrap_or(end.len()),
                false => 0,
            };
            let (before, path) = end.split_at(begin);
            read.push_str(before);
            match self.names.get(&plain(Path::new(path))) {
                Some(name) => read.push_str(name),
                None if path.starts_with('/') && self.is_trap(path) => {
                    let why = format!(
                        "{path} is in no key: -i {path} (or --tree) if it is an input, --uses {path} if its content counts where it lies, \
                         --text {path} if nothing depends on it"
                    );
                    let what = match what {
                        "the argument" => format!("the argument {text:?}"),
                        what => what.to_owned(),
                    };
                    return Err(CommandError::refused(what, why));
                }
                None => read.push_str(path),
            }
            read.push_str(&piece[end.len()..]);
        }
        Ok(read)
    }

    /// Whether an absolute path leads, or may lead by the end of the run, to something that is not declared.
    fn is_trap(&self, path: &str) -> bool {
        let is_used = |used: &String| Path::new(path).starts_with(used);
        let is_text = self.command.texts.iter().any(|text| text == path);
        let path = Path::new(path);
        let parent = path.parent().filter(|parent| *parent != Path::new("/"));
        let exists = path.exists() || parent.is_some_and(Path::exists);
        exists && path != Path::new("/") && !is_text && !self.command.uses.iter().any(is_used)
    }

    fn is_declared(&self, arg: &str) -> bool {
        self.command
            .texts
            .iter()
            .chain(&self.command.uses)
            .any(|there| there == arg)
    }

    fn is_in_a_tree(&self, path: &Path) -> bool {
        self.trees
            .values()
            .any(|tree| plain(path).starts_with(plain(tree)))
    }

    /// What an interpreter or a launcher runs. It is refused if it is not declared.
    fn launched(
        &self,
        args: &[String],
        finds: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>, CommandError> {
        let program = Path::new(&self.command.program)
            .file_name()
            .unwrap_or_default();
        let program = program.to_string_lossy();
        let stem = program.split('.').next().unwrap_or_default();
        let is_known = |arg: &String| {
            let in_tree = |tree: &String| Path::new(arg).starts_with(tree);
            self.files.contains_key(arg) || self.is_declared(arg) || self.trees.keys().any(in_tree)
        };
        if INTERPRETERS.contains(&stem.trim_end_matches(|c: char| c.is_ascii_digit())) {
            return self.interpreted(args, &is_known);
        }
        if !LAUNCHERS.contains(&stem) {
            return Ok(None);
        }
        for arg in args.iter().filter(|arg| !is_known(arg)) {
            let words = arg.split(|c: char| c.is_whitespace() || ";|&()<>\"'`$={}".contains(c));
            let mut hidden = words.filter(|word| {
                !word.is_empty() && !word.contains('/') && !self.is_declared(word) && finds(word)
            });
            if let Some(word) = hidden.next() {
                return Err(CommandError::refused(
                    format!("the argument {arg:?} of {program}"),
                    format!(
                        "{word} is a program, and is in no key: --uses {word}, or --text {word} if it is just a word"
                    ),
                ));
            }
        }
        let used = self.command.uses.iter().find(|used| args.contains(used));
        Ok(used
            .or_else(|| args.iter().find(|arg| self.files.contains_key(*arg)))
            .cloned())
    }

    fn interpreted(
        &self,
        args: &[String],
        is_known: &dyn Fn(&String) -> bool,
    ) -> Result<Option<String>, CommandError> {
        let mut before = "";
        for arg in args {
            if TEXT_FOLLOWS.contains(&before) {
                return Ok(None);
            }
            if is_known(arg) && !arg.starts_with('-') {
                return Ok(Some(arg.clone()));
            }
            if !arg.starts_with('-') {
                let why = match before {
                    "-m" => format!(
                        "the module {arg} is in no key: --uses its folder, and --text {arg}"
                    ),
                    _ => format!(
                        "it is no file here, and is in no key: --text {arg} if it is just a word"
                    ),
                };
                return Err(CommandError::refused(format!("the argument {arg:?}"), why));
            }
            before = arg;
        }
        Ok(None)
    }
}

fn clash(name: &str, other: &str) -> CommandError {
    CommandError::refused(
        format!("the input {name:?}"),
        format!("{other} has that place in the run's folder: -i SOURCE=NAME gives it another"),
    )
}

/// The name that a path has in the run's folder.
fn name_of(path: &Path) -> Result<String, CommandError> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let name = match path.components().all(is_plain) {
        true => Some(plain(path)),
        false => path.file_name().map(PathBuf::from),
    };
    let name = name
        .and_then(|name| name.to_str().map(str::to_owned))
        .filter(|name| !name.is_empty());
    name.ok_or_else(|| {
        CommandError::refused(
            format!("the input {}", path.display()),
            "its path ends in no name that is text: -i SOURCE=NAME gives it one",
        )
    })
}

/// A path without `.` and, where that is certain, `..`.
fn plain(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}
