//! What a user says of a command.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::CommandError;
use crate::outputs::Outputs;
use crate::rules::{RuleError, Rules};
use crate::stop::Stop;
use crate::trace::Trace;

/// A run of another program, remembered by all that it was given.
///
/// The program runs in a fresh folder that holds its inputs and nothing else, with an environment that is cleared but
/// for what is declared. The key has the digests of the program, of its shared libraries and of all inputs, the
/// arguments, the declared variables and the names of the declared outputs. What is in no key: the modules and files
/// that a script reads besides, libraries that are loaded later (`dlopen`), programs that it starts, the processor.
///
/// An argument that is the relative path of a regular file is an input by itself. One that names something by an absolute
/// path is refused, unless it is declared: with [`input`](Self::input) or [`tree`](Self::tree) it becomes the name in the run's
/// folder; with [`uses`](Self::uses) or [`text`](Self::text) it stays.
///
/// ```
/// use sde_command::Command;
/// use sde_engine::Sde;
///
/// let sde = Sde::new();
/// let count = Command::new("wc").arg("-l").arg("lines").input_bytes("lines", "a\nb\n").get("lines", r"^ *(\d+)");
/// assert_eq!(count.run(&sde)?.number("lines"), Some(2.0));
/// assert!(count.run(&sde)?.is_remembered());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Command {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) name: Option<String>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) scratch: Option<PathBuf>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) trees: Vec<PathBuf>,
    pub(crate) stdin: Option<Content>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) uses: Vec<String>,
    pub(crate) texts: Vec<String>,
    pub(crate) program_is: Option<String>,
    pub(crate) image: Option<PathBuf>,
    pub(crate) trace: Option<Trace>,
    pub(crate) outputs: Vec<String>,
    pub(crate) compared: Vec<String>,
    pub(crate) rules: Rules,
    /// The first rule that makes no sense.
    pub(crate) bad_rule: Option<RuleError>,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) is_linked: bool,
    pub(crate) is_echoed: bool,
    pub(crate) keeps_failures: bool,
    pub(crate) is_again: bool,
    pub(crate) rehashes: bool,
    pub(crate) stop: Stop,
    /// How often a run that fails is run again.
    pub(crate) retries: u32,
    /// Files that an attempt leaves to the next one.
    pub(crate) carried: Vec<String>,
    pub(crate) carry_every: Duration,
    /// A failure that was made since then is given, and not run again.
    pub(crate) since: Option<SystemTime>,
}

/// A file that the run is given.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Its name in the run's folder; without one, that of its path.
    pub(crate) name: Option<String>,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Path(PathBuf),
    Bytes(Arc<[u8]>),
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Without one, the caller's.
    pub(crate) value: Option<String>,
    pub(crate) counts: bool,
}

impl Command {
    /// A command of this program: a name that is looked for in `PATH`, or a path.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            name: None,
            folder: None,
            scratch: None,
            inputs: Vec::new(),
            trees: Vec::new(),
            stdin: None,
            variables: Vec::new(),
            uses: Vec::new(),
            texts: Vec::new(),
            program_is: None,
            image: None,
            trace: None,
            outputs: Vec::new(),
            compared: Vec::new(),
            rules: Rules::new(),
            bad_rule: None,
            limit: None,
            grace: Duration::from_secs(10),
            is_linked: false,
            is_echoed: false,
            keeps_failures: false,
            is_again: false,
            rehashes: false,
            stop: Stop::new(),
            retries: 0,
            carried: Vec::new(),
            carry_every: Duration::from_secs(600),
            since: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Names the app, in place of the program's name, or of the script's that an interpreter or a launcher runs. It is in the key.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the folder that relative paths are in, in place of the current one.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets where the run's folder is made, in place of `TMPDIR`, or else `/tmp`.
    pub fn scratch(mut self, folder: impl Into<PathBuf>) -> Self {
        self.scratch = Some(folder.into());
        self
    }

    /// Gives the run a file under this name. It counts by content, and by whether it is executable.
    pub fn input(mut self, name: impl Into<String>, file: impl AsRef<Path>) -> Self {
        let content = Content::Path(file.as_ref().to_owned());
        let name = Some(name.into());
        self.inputs.push(Input { name, content });
        self
    }

    /// Gives the run a file with this content.
    pub fn input_bytes(mut self, name: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        let content = Content::Bytes(bytes.as_ref().into());
        let name = Some(name.into());
        self.inputs.push(Input { name, content });
        self
    }

    /// Gives the run a file under its own name: a relative path stays as it is, of an absolute one, or one with `..`, the
    /// last part is the name.
    pub fn input_file(mut self, file: impl AsRef<Path>) -> Self {
        let content = Content::Path(file.as_ref().to_owned());
        self.inputs.push(Input {
            name: None,
            content,
        });
        self
    }

    /// Gives the run a folder with all that is in it. Its name there is as [`input_file`](Self::input_file)'s. Permission bits, empty folders
    /// and the texts of links count; links that lead out of it are followed.
    pub fn tree(mut self, folder: impl AsRef<Path>) -> Self {
        self.trees.push(folder.as_ref().to_owned());
        self
    }

    /// Gives the run this file as its standard input, which is empty otherwise.
    pub fn stdin(mut self, file: impl AsRef<Path>) -> Self {
        self.stdin = Some(Content::Path(file.as_ref().to_owned()));
        self
    }

    /// Gives the run these bytes as its standard input.
    pub fn stdin_bytes(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = Some(Content::Bytes(bytes.as_ref().into()));
        self
    }

    /// Sets a variable, which counts.
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variable(name.into(), Some(value.into()), true)
    }

    /// Passes on a variable of this process, which counts. One that is not set counts as not set.
    pub fn env_inherited(self, name: impl Into<String>) -> Self {
        self.variable(name.into(), None, true)
    }

    /// Passes on a variable of this process that does not count: results must not depend on it.
    pub fn pass(self, name: impl Into<String>) -> Self {
        self.variable(name.into(), None, false)
    }

    fn variable(mut self, name: String, value: Option<String>, counts: bool) -> Self {
        let variable = Variable {
            name,
            value,
            counts,
        };
        self.variables.push(variable);
        self
    }

    /// Counts something that the program uses, by digest: another program with its libraries, found as this one is; a
    /// file; or a folder. It is not copied. The folder of a program that is given by name is in the run's `PATH`. A path
    /// that begins with `?` need not be there, and that counts.
    pub fn uses(mut self, what: impl Into<String>) -> Self {
        self.uses.push(what.into());
        self
    }

    /// Declares an argument, or a path in one, to be just text, whatever it names.
    pub fn text(mut self, argument: impl Into<String>) -> Self {
        self.texts.push(argument.into());
        self
    }

    /// Identifies the program by a text, such as "xtb 6.5.1", in place of all digests of programs and libraries.
    pub fn program_is(mut self, text: impl Into<String>) -> Self {
        self.program_is = Some(text.into());
        self
    }

    /// Runs the program in a container: inside this image, by `apptainer`, or else `singularity`, of the caller's `PATH`.
    ///
    /// The image counts by content, and the program is looked for in it. It sees the run's folder and nothing else of this
    /// machine, so [`uses`](Self::uses) and [`link`](Self::link) are refused. Absolute paths in arguments are those of the image.
    pub fn image(mut self, file: impl AsRef<Path>) -> Self {
        self.image = Some(file.as_ref().to_owned());
        self
    }

    /// Runs the program under `strace`, and tells which files it read that nobody declared: see [`Ran::traced`](crate::Ran::traced).
    ///
    /// Files that it looked for in vain count as read. What came by network is not seen. A remembered run that was not traced runs again; with
    /// [`Trace::Strict`] so does one that read what nobody declared, and no such run is remembered: it is the error
    /// [`Untraced`](CommandError::Untraced). Calls of the system take some 30 µs longer.
    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Declares a file or folder that the run writes, or a pattern of such (`*`, `?`, `[..]`). One that begins with `?` need not be written.
    pub fn output(mut self, name: impl Into<String>) -> Self {
        self.outputs.push(name.into());
        self
    }

    /// Declares that two runs write the same bytes to an output. Where they did not, there is a warning.
    pub fn compare(mut self, output: impl Into<String>) -> Self {
        self.compared.push(output.into());
        self
    }

    /// The rules by which runs are judged, that declared outputs must be written among them.
    ///
    /// # Errors
    /// If an output is declared in a way that makes no sense.
    pub fn rules(&self) -> Result<Rules, CommandError> {
        let outputs = Outputs::new(&self.outputs)?;
        Ok(self.rules.clone().outputs(outputs.required()))
    }

    /// Adds a status with which the run passes: see [`Rules`].
    pub fn ok_status(mut self, status: i32) -> Self {
        self.rules.ok_status(status);
        self
    }

    /// Demands that an expression matches a line of what the run writes: see [`Rules`]. An expression that makes no
    /// sense is an error of [`run`](Self::run), here and below.
    pub fn require(self, expression: &str) -> Self {
        self.ruled(|rules| rules.require(expression))
    }

    /// Demands that an expression matches no line of what the run writes: see [`Rules`].
    pub fn reject(self, expression: &str) -> Self {
        self.ruled(|rules| rules.reject(expression))
    }

    /// Takes a value out of what the run writes: see [`Rules::get`].
    pub fn get(self, name: &str, expression: &str) -> Self {
        self.ruled(|rules| rules.get(name, expression))
    }

    fn ruled(mut self, add: impl FnOnce(&mut Rules) -> Result<(), RuleError>) -> Self {
        let added = add(&mut self.rules).err();
        self.bad_rule = self.bad_rule.or(added);
        self
    }

    /// Ends a run that takes longer, which then is an error and no result.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets how long a run has between TERM and KILL: 10 s, unless it is set.
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// Runs a program again that fails, up to so often within one call: by its rules, by a signal that nobody sent
    /// through this process, or by the time limit. The run that is kept has the reasons why attempts before it failed, and its
    /// time is that of all of them.
    pub fn retry(mut self, times: u32) -> Self {
        self.retries = times;
        self
    }

    /// Hands a file that the program writes, such as a checkpoint, from an attempt that ended early to the next one: by a
    /// signal, the time limit, or the end of this process, on this machine or another. The next one finds it in its folder, under this name.
    ///
    /// While the program runs, the file is copied into the scratch of the run, at times ([`carry_every`](Self::carry_every)) and at the
    /// end; its content is held in memory. There are two copies: an attempt that fails from the latest is followed by one from the copy before,
    /// and then by one from none. The file is in no key. It must hold all that the next attempt needs: its result is taken for
    /// that of the command. Of several files the copies are of one time.
    pub fn carry(mut self, file: impl Into<String>) -> Self {
        self.carried.push(file.into());
        self
    }

    /// Sets how often a file is copied that is [carried](Self::carry): every 10 minutes, unless it is set. A file that changes
    /// meanwhile is copied the next time. Engines save the copy with their next checkpoint.
    pub fn carry_every(mut self, time: Duration) -> Self {
        self.carry_every = time;
        self
    }

    /// Gives a failure of a run that was made since then as it is, for a list of commands that several processes go
    /// through at once.
    #[doc(hidden)]
    pub fn since(mut self, time: SystemTime) -> Self {
        self.since = Some(time);
        self
    }

    /// Links input files instead of copying them. They are read once more after the run.
    pub fn link(mut self) -> Self {
        self.is_linked = true;
        self
    }

    /// Passes what the program prints on to this process's standard output and error, as it comes.
    pub fn echo(mut self) -> Self {
        self.is_echoed = true;
        self
    }

    /// Gives a run that failed before as it is, instead of running it again.
    pub fn keep_failures(mut self) -> Self {
        self.keeps_failures = true;
        self
    }

    /// Runs the program even if the run is remembered. The new result takes the place of the old one.
    pub fn again(mut self) -> Self {
        self.is_again = true;
        self
    }

    /// Reads programs and libraries anew, whose digests are otherwise kept for as long as the files don't change.
    pub fn rehash(mut self) -> Self {
        self.rehashes = true;
        self
    }

    /// Passes the signals of this `Stop` on to the program.
    pub fn stop(mut self, stop: &Stop) -> Self {
        self.stop = stop.clone();
        self
    }
}
