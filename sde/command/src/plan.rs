//! A command with all that it names found and read: what is in its key, and what its run is made of.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sde_engine::key::Digest;
use sde_engine::record::CodeId;
use sde_engine::{AppInfo, Inputs, OutputFile, ResultSpec, inputs};

use crate::arguments::Arguments;
use crate::builder::{Command, Content, Stop};
use crate::error::CommandError;
use crate::outputs::{Files, Outputs};
use crate::program::{self, Digests, Part, Program};
use crate::rules::Rules;
use crate::tree;

/// What a run is made of.
pub(crate) struct Plan {
    pub(crate) app: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) files: BTreeMap<String, Given>,
    pub(crate) trees: BTreeMap<String, (PathBuf, Digest)>,
    pub(crate) stdin: Option<Given>,
    /// All of it but the folders of the run.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) outputs: Outputs,
    pub(crate) compared: Vec<String>,
    pub(crate) rules: Rules,
    pub(crate) scratch: PathBuf,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) is_linked: bool,
    pub(crate) is_echoed: bool,
    pub(crate) stop: Stop,
    /// Variables that the caller has and the program has not.
    pub(crate) withheld: Vec<String>,
    info: AppInfo,
    inputs: Inputs,
}

/// A file that the run is given, as it was when its key was made.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) content: Content,
    pub(crate) digest: Digest,
    length: u64,
    pub(crate) is_executable: bool,
}

impl Plan {
    pub(crate) fn new(command: &Command) -> Result<Self, CommandError> {
        let base = base(command)?;
        let digests = Digests::new(command.rehashes);
        let found = Found::new(command, &base, &digests)?;
        let outputs = Outputs::new(&command.outputs)?;
        for compared in &command.compared {
            if !outputs.is_declared(compared) {
                let why = format!("it is no output: -o {compared}");
                return Err(CommandError::refused(format!("--compare {compared}"), why));
            }
        }
        let path = found.path.clone();
        let finds = |word: &str| program::find(word.as_ref(), &base, &path).is_ok();
        let arguments = Arguments::read(command, &outputs, &base, &finds)?;
        check_rules(&command.rules, &outputs)?;
        let given = |content: &Content| Given::read(content, &base);
        let files = arguments.files.iter();
        let files = files.map(|(name, content)| Ok((name.clone(), given(content)?)));
        let files: BTreeMap<_, _> = files.collect::<Result<_, CommandError>>()?;
        let trees = arguments.trees.into_iter().map(|(name, path)| {
            let digest = tree::digest(&path)
                .map_err(|error| CommandError::tree(format!("reading the tree {name}"), error))?;
            Ok((name, (path, digest)))
        });
        let trees: BTreeMap<_, _> = trees.collect::<Result<_, CommandError>>()?;
        let stdin = command.stdin.as_ref().map(given).transpose()?;
        let runs = arguments.runs.as_deref().unwrap_or(&command.program);
        let app = command.name.clone().unwrap_or_else(|| last_name(runs));
        let counted = counted(command);
        let mut inputs = inputs! { command: words(command, &arguments.args) };
        for (name, file) in &files {
            inputs = inputs.with(format!("./{name}"), file.to_string());
        }
        for (name, (_, digest)) in &trees {
            inputs = inputs.with(format!("./{name}/"), digest.to_string());
        }
        if let Some(stdin) = &stdin {
            inputs = inputs.with("stdin", stdin.to_string());
        }
        for (name, value) in counted {
            inputs = inputs.with(format!("${name}"), value);
        }
        if !command.outputs.is_empty() {
            inputs = inputs.with("outputs", outputs.names());
        }
        Ok(Self {
            info: found.info(command, &app),
            app,
            program: found.program.path,
            args: arguments.args,
            files,
            trees,
            stdin,
            withheld: withheld(&found.environment),
            environment: found.environment,
            rules: command.rules()?,
            outputs,
            compared: command.compared.clone(),
            scratch: command.scratch.clone().unwrap_or_else(std::env::temp_dir),
            limit: command.limit,
            grace: command.grace,
            is_linked: command.is_linked,
            is_echoed: command.is_echoed,
            stop: command.stop.clone(),
            inputs,
        })
    }

    /// The app and the inputs of the run.
    pub(crate) fn call(&self) -> (AppInfo, Inputs) {
        (self.info.clone(), self.inputs.clone())
    }

    /// The command as a person would type it.
    pub(crate) fn line(&self) -> String {
        let program = self.program.to_string_lossy();
        let words = std::iter::once(&*program).chain(self.args.iter().map(|arg| &**arg));
        let quoted: Vec<String> = words.map(quoted).collect();
        quoted.join(" ")
    }
}

/// The results that each run has.
pub(crate) fn described(info: AppInfo) -> AppInfo {
    info.result(ResultSpec::new::<i64>("status").about("the exit status"))
        .result(
            ResultSpec::new::<String>("command")
                .not_compared()
                .about("the command line"),
        )
        .result(
            ResultSpec::new::<String>("rules")
                .not_compared()
                .about("the rules of the call that ran it"),
        )
        .result(
            ResultSpec::new::<OutputFile>("stdout")
                .not_compared()
                .about("what it printed"),
        )
        .result(
            ResultSpec::new::<OutputFile>("stderr")
                .not_compared()
                .about("what it printed as errors"),
        )
        .result(
            ResultSpec::new::<Files>("files")
                .not_compared()
                .about("its outputs"),
        )
        .result(
            ResultSpec::new::<BTreeMap<String, String>>("compared")
                .about("the digests of outputs that must not differ"),
        )
}

/// The program, and all else that counts as code.
struct Found {
    program: Program,
    /// Programs that it starts.
    starts: Vec<Part>,
    /// Files and folders that it reads.
    reads: Vec<Part>,
    path: OsString,
    environment: Vec<(OsString, OsString)>,
}

impl Found {
    fn new(command: &Command, base: &Path, digests: &Digests) -> Result<Self, CommandError> {
        let callers = std::env::var_os("PATH").unwrap_or_default();
        let failed = |error| CommandError::program(format!("running {}", command.program), error);
        let path = program::find(command.program.as_ref(), base, &callers).map_err(failed)?;
        let mut environment = environment(command);
        let program = program::read(&path, &callers, &environment, digests).map_err(failed)?;
        let (mut starts, mut reads, mut folders) = (Vec::new(), Vec::new(), Vec::new());
        for used in &command.uses {
            match read_only(used, base, digests)? {
                Some(part) => reads.push(part),
                None => {
                    let path = program::find(used.as_ref(), base, &callers).map_err(failed)?;
                    folders.extend(path.parent().map(Path::to_owned).filter(|_| is_name(used)));
                    starts.extend(started(used, &path, &callers, &environment, digests)?);
                }
            }
        }
        let mut search = program::search_path(&program, &environment).map_err(failed)?;
        if !environment.iter().any(|(name, _)| name == "PATH") {
            for folder in folders {
                search.push(":");
                search.push(folder);
            }
            environment.push(("PATH".into(), search.clone()));
        }
        for used in command.uses.iter().filter(|used| is_name(used)) {
            let found = |path: &OsString| program::find(used.as_ref(), base, path).ok();
            if found(&search) != found(&callers) {
                return Err(CommandError::refused(
                    format!("--uses {used}"),
                    format!(
                        "the run would find another {used} in its PATH, or none: declare PATH (--env PATH)"
                    ),
                ));
            }
        }
        Ok(Self {
            program,
            starts,
            reads,
            path: search,
            environment,
        })
    }

    fn info(&self, command: &Command, app: &str) -> AppInfo {
        let [own, parts @ ..] = &self.program.parts[..] else {
            return AppInfo::new(app.to_owned(), "");
        };
        let info = match &command.program_is {
            Some(text) => AppInfo::with_code(app.to_owned(), CodeId::Version(text.clone().into())),
            None => {
                let info = AppInfo::with_code(app.to_owned(), CodeId::Source(own.digest));
                with(info, parts.iter().chain(&self.starts))
            }
        };
        described(with(info, self.reads.iter()))
    }
}

fn with<'a>(info: AppInfo, mut parts: impl Iterator<Item = &'a Part>) -> AppInfo {
    // Two libraries of one name may lie in two folders.
    let mut seen = BTreeMap::new();
    parts.by_ref().fold(info, |info, part| {
        let count = seen.entry(part.name.clone()).or_insert(0);
        *count += 1;
        let name = match count {
            1 => part.name.clone(),
            count => format!("{} ({count})", part.name),
        };
        info.helper(name, part.digest)
    })
}

/// A file that is no program, or a folder, that `--uses` names.
fn read_only(used: &str, base: &Path, digests: &Digests) -> Result<Option<Part>, CommandError> {
    let path = base.join(used);
    let digest = if path.is_dir() {
        tree::digest(&path)
            .map_err(|error| CommandError::tree(format!("reading {used}, which it uses"), error))?
    } else if is_name(used) || is_executable(&path) {
        return Ok(None);
    } else {
        digests
            .of(&path)
            .map_err(|error| CommandError::file("reading", &path, error))?
    };
    let name = used.to_owned();
    Ok(Some(Part { name, digest, path }))
}

/// The parts of a program that `--uses` names.
fn started(
    used: &str,
    path: &Path,
    search: &OsString,
    environment: &[(OsString, OsString)],
    digests: &Digests,
) -> Result<Vec<Part>, CommandError> {
    let read = program::read(path, search, environment, digests);
    let failed = |error| CommandError::program(format!("reading {used}, which it uses"), error);
    let mut parts = read.map_err(failed)?.parts;
    for (at, part) in parts.iter_mut().enumerate() {
        part.name = match at {
            0 => used.to_owned(),
            _ => format!("{used}: {}", part.name),
        };
    }
    Ok(parts)
}

fn is_name(used: &str) -> bool {
    !used.contains('/')
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn base(command: &Command) -> Result<PathBuf, CommandError> {
    let here = std::env::current_dir()
        .map_err(|error| CommandError::file("finding the current folder", ".", error))?;
    Ok(match &command.folder {
        Some(folder) => here.join(folder),
        None => here,
    })
}

/// A rule that begins with what looks like a file, and is none of the outputs, is a slip.
fn check_rules(rules: &Rules, outputs: &Outputs) -> Result<(), CommandError> {
    for rule in &rules.rules {
        let (None, text) = rule.split(|name| outputs.is_declared(name)) else {
            continue;
        };
        let before = text.split_once(':').map_or("", |(before, _)| before);
        let is_file = before.contains('.')
            && before
                .chars()
                .all(|c| c.is_alphanumeric() || "._-/".contains(c));
        if is_file && !before.starts_with('.') && !before.ends_with('.') {
            let why = format!(
                "{before} is no output: -o {before}; if it is part of the expression, write [:] for the colon"
            );
            return Err(CommandError::refused(
                format!("the rule {:?}", rule.to_string()),
                why,
            ));
        }
    }
    Ok(())
}

/// The variables that count, with their values. One that is not set has none.
fn counted(command: &Command) -> BTreeMap<String, String> {
    let counts = command.variables.iter().filter(|variable| variable.counts);
    let value =
        |name: &String, given: &Option<String>| given.clone().or_else(|| std::env::var(name).ok());
    counts
        .filter_map(|one| Some((one.name.clone(), value(&one.name, &one.value)?)))
        .collect()
}

/// The environment of the program, but for its PATH and folders where these are not declared.
fn environment(command: &Command) -> Vec<(OsString, OsString)> {
    let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        environment.insert("LD_LIBRARY_PATH".into(), path);
    }
    for variable in &command.variables {
        let value = variable.value.as_ref().map(OsString::from);
        match value.or_else(|| std::env::var_os(&variable.name)) {
            Some(value) => environment.insert(variable.name.clone().into(), value),
            None => environment.remove(std::ffi::OsStr::new(&variable.name)),
        };
    }
    environment.into_iter().collect()
}

fn withheld(environment: &[(OsString, OsString)]) -> Vec<String> {
    let own = ["HOME", "TMPDIR", "PATH", "PWD", "OLDPWD", "SHLVL", "_"];
    let is_given = |name: &OsString| environment.iter().any(|(there, _)| there == name);
    let names = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| !is_given(name));
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.retain(|name| !own.contains(&&**name));
    names.sort();
    names
}

fn words(command: &Command, args: &[String]) -> Vec<String> {
    std::iter::once(last_name(&command.program))
        .chain(args.iter().cloned())
        .collect()
}

fn last_name(path: &str) -> String {
    let name = Path::new(path)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| path.to_owned())
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl Given {
    fn read(content: &Content, base: &Path) -> Result<Self, CommandError> {
        match content {
            Content::Bytes(bytes) => Ok(Self {
                digest: Digest::from_bytes(*blake3::hash(bytes).as_bytes()),
                length: bytes.len() as u64,
                is_executable: false,
                content: content.clone(),
            }),
            Content::Path(path) => {
                let path = base.join(path);
                let failed = |error| CommandError::file("reading the input", &path, error);
                let (length, digest) = digest_of(&path).map_err(failed)?;
                Ok(Self {
                    digest,
                    length,
                    is_executable: is_executable(&path),
                    content: Content::Path(path),
                })
            }
        }
    }

    /// Puts the file into the run's folder, and sees that it is the one of the key.
    pub(crate) fn place(&self, to: &Path, is_linked: bool) -> io::Result<()> {
        use std::os::unix::fs::{PermissionsExt, symlink};
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        match &self.content {
            Content::Path(path) if is_linked => return symlink(path, to),
            Content::Path(path) => fs::copy(path, to).map(drop)?,
            Content::Bytes(bytes) => fs::write(to, bytes)?,
        }
        let mode = if self.is_executable { 0o755 } else { 0o644 };
        fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
        self.check(to)
    }

    /// Whether a file holds it.
    pub(crate) fn check(&self, path: &Path) -> io::Result<()> {
        match digest_of(path)? == (self.length, self.digest) {
            true => Ok(()),
            false => Err(io::Error::other(
                "it was changed since the run's key was made; run it again",
            )),
        }
    }
}

/// As it counts in the key, and as a person sees it.
impl std::fmt::Display for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let executable = if self.is_executable {
            ", executable"
        } else {
            ""
        };
        write!(f, "{} ({} bytes{executable})", self.digest, self.length)
    }
}

fn digest_of(path: &Path) -> io::Result<(u64, Digest)> {
    // Opening a pipe waits for a writer, and a device may never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ));
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok((
        hasher.count(),
        Digest::from_bytes(*hasher.finalize().as_bytes()),
    ))
}
