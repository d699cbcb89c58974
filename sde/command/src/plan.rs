//! A command with all that it names found and read: what is in its key, and what its run is made of.

use std::collections::BTreeMap;
use std::env::VarError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sde_engine::key::Digest;
use sde_engine::{AppInfo, Inputs, inputs};

use crate::arguments::Arguments;
use crate::builder::{Command, Content, Variable};
use crate::code::Code;
use crate::declared::declared;
use crate::error::CommandError;
use crate::given::{Counted, Given};
use crate::image;
use crate::outputs::{Outputs, is_inside, plain};
use crate::paths::shown;
use crate::program::{self, Digests};
use crate::rules::Rules;
use crate::stop::Stop;
use crate::trace::{Declared, Trace};
use crate::tree;

/// What a run is made of.
pub(crate) struct Plan {
    pub(crate) app: String,
    pub(crate) code: Code,
    pub(crate) args: Vec<String>,
    /// Those that count, as the program gets them.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) files: BTreeMap<String, Given>,
    pub(crate) trees: BTreeMap<String, (PathBuf, Digest)>,
    pub(crate) stdin: Option<Given>,
    pub(crate) outputs: Outputs,
    pub(crate) compared: Vec<String>,
    pub(crate) rules: Rules,
    pub(crate) scratch: PathBuf,
    pub(crate) limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) is_linked: bool,
    pub(crate) is_echoed: bool,
    pub(crate) stop: Stop,
    pub(crate) retries: u32,
    pub(crate) carried: Vec<String>,
    pub(crate) carry_every: Duration,
    /// What was sent before the call, to other runs.
    pub(crate) heard: Option<(u32, i32)>,
    /// The image that the program is in.
    pub(crate) image: Option<PathBuf>,
    pub(crate) trace: Option<Trace>,
    /// What does not count, though the program may read it.
    pub(crate) texts: Vec<String>,
    /// What the program may read, if it is traced.
    pub(crate) declared: Declared,
    /// Variables that the caller has and the program has not.
    pub(crate) withheld: Vec<String>,
    /// Arguments that look like files and lead to none.
    pub(crate) absent: Vec<String>,
    info: AppInfo,
    inputs: Inputs,
}

impl Plan {
    pub(crate) fn new(command: &Command) -> Result<Self, CommandError> {
        let heard = command.stop.heard();
        let base = base(command)?;
        let outputs = Outputs::new(&command.outputs)?;
        check(command, &outputs)?;
        let variables = variables(command)?;
        let mut code = Code::new(command, &base, Digests::new(command.rehashes))?;
        // As the file that it is does not count, its path inside an image does.
        let own_name = match &command.image {
            Some(_) => command.program.clone(),
            None => last_name(&command.program),
        };
        let find = |word: &str| program::find(word.as_ref(), &base, &code.search).ok();
        let program = &code.program.path;
        let arguments = Arguments::read(command, program, &outputs, &base, &variables, &find)?;
        let given = |content: &Content| Given::read(content, &base);
        let files = arguments.files.iter();
        let files = files.map(|(name, content)| Ok((name.clone(), given(content)?)));
        let files: BTreeMap<_, _> = files.collect::<Result<_, CommandError>>()?;
        if command.image.is_none() {
            code.add_inputs(&files);
        }
        let trees = arguments.trees.into_iter().map(|(name, path)| {
            let digest = tree::digest(&path)
                .map_err(|error| CommandError::tree(format!("reading the tree {name}"), error))?;
            Ok((name, (path, digest)))
        });
        let trees: BTreeMap<_, _> = trees.collect::<Result<_, CommandError>>()?;
        let stdin = command.stdin.as_ref().map(given).transpose()?;
        let named = arguments.launched.as_deref().unwrap_or(&command.program);
        let app = command.name.clone().unwrap_or_else(|| last_name(named));
        let mut inputs = inputs! { command: line(&own_name, &arguments.args) };
        for (name, file) in &files {
            inputs = inputs.with(format!("./{name}"), file.counted());
        }
        for (name, (_, digest)) in &trees {
            inputs = inputs.with(format!("./{name}/"), Counted::tree(digest));
        }
        if let Some(stdin) = &stdin {
            inputs = inputs.with("stdin", stdin.counted());
        }
        for (name, value) in &arguments.variables {
            inputs = inputs.with(format!("${name}"), value.clone());
        }
        if !command.outputs.is_empty() {
            inputs = inputs.with("outputs", words(&outputs.names()));
        }
        let scratch = command.scratch.clone().unwrap_or_else(std::env::temp_dir);
        Ok(Self {
            info: code.info(command, &app),
            image: command.image.as_ref().map(|image| base.join(image)),
            trace: command.trace,
            texts: command.texts.clone(),
            declared: declared(&code, &files, &trees),
            withheld: withheld(&code.environment, &command.program),
            absent: absent(command, &base, &outputs),
            app,
            code,
            args: arguments.args,
            variables: arguments.variables,
            carried: carried(command, &files, &trees)?,
            files,
            trees,
            stdin,
            rules: command.rules()?,
            outputs,
            compared: command.compared.clone(),
            scratch: base.join(scratch),
            limit: command.limit,
            grace: command.grace,
            is_linked: command.is_linked,
            is_echoed: command.is_echoed,
            stop: command.stop.clone(),
            retries: command.retries,
            carry_every: command.carry_every,
            heard,
            inputs,
        })
    }

    /// The app and the inputs of the run.
    pub(crate) fn call(&self) -> (AppInfo, Inputs) {
        (self.info.clone(), self.inputs.clone())
    }

    /// The command as a person would type it.
    pub(crate) fn line(&self) -> String {
        line(&self.code.program.path.to_string_lossy(), &self.args)
    }
}

fn base(command: &Command) -> Result<PathBuf, CommandError> {
    let here = std::env::current_dir()
        .map_err(|error| CommandError::file("finding the current folder", ".", error))?;
    Ok(match &command.folder {
        Some(folder) => here.join(folder),
        None => here,
    })
}

/// Refuses what makes no sense by itself.
fn check(command: &Command, outputs: &Outputs) -> Result<(), CommandError> {
    if let Some(error) = command.bad_rule.clone() {
        return Err(error.into());
    }
    image::check(command)?;
    let is_taken = |name: &String| name.is_empty() || name.starts_with("sde.");
    if command.name.as_ref().is_some_and(is_taken) {
        let why = "an app needs a name, and those that begin with `sde.` are taken";
        return Err(CommandError::refused("--name", why));
    }
    if command.program_is.as_ref().is_some_and(String::is_empty) {
        let why = "say which program it is, such as \"xtb 6.5.1\"";
        return Err(CommandError::refused("--program-is", why));
    }
    for compared in &command.compared {
        if !outputs.is_declared(compared) {
            let why = format!("it is no output: -o {}", shown(compared));
            return Err(CommandError::refused(format!("--compare {compared}"), why));
        }
    }
    for rule in &command.rules.rules {
        // What begins with a file, and none of the outputs, is a slip.
        let (None, text) = rule.split(|name| outputs.may_be(name)) else {
            continue;
        };
        let before = text.split_once(':').map_or("", |(before, _)| before);
        let is_name = |c: char| c.is_alphanumeric() || "._-/*".contains(c);
        let is_file = before.contains(['.', '/', '*']) && before.chars().all(is_name);
        if is_file && !before.starts_with(".*") && !before.ends_with(['.', '*']) {
            let why = format!(
                "{before} is no output: -o {before}; if it is part of the expression, write [:] for the colon"
            );
            return Err(CommandError::refused(format!("the rule {rule}"), why));
        }
    }
    Ok(())
}

/// The names of files that are handed to the next attempt.
fn carried(
    command: &Command,
    files: &BTreeMap<String, Given>,
    trees: &BTreeMap<String, (PathBuf, Digest)>,
) -> Result<Vec<String>, CommandError> {
    if command.trace.is_some() && !command.carried.is_empty() {
        let why = "what an attempt before read made what is carried; leave one of them out";
        return Err(CommandError::refused("--carry with --trace", why));
    }
    let names = command.carried.iter().map(|name| {
        let own = plain(name);
        let is_within = |tree: &String| Path::new(&own).starts_with(tree);
        let why = if !is_inside(&own) {
            "it is named by its path in the run's folder, without `..`".to_owned()
        } else if files.contains_key(&own) || trees.keys().any(is_within) {
            format!(
                "it is an input, which counts; if an argument just names it, --text {}",
                shown(name)
            )
        } else {
            return Ok(own);
        };
        Err(CommandError::refused(
            format!("the carried file {}", shown(name)),
            why,
        ))
    });
    names.collect()
}

/// The variables that count, with their values. One that is not set has none.
fn variables(command: &Command) -> Result<BTreeMap<String, String>, CommandError> {
    let refused =
        |name: &str, why: &str| CommandError::refused(format!("the variable {name:?}"), why);
    let mut names: Vec<&str> = command.variables.iter().map(|one| &*one.name).collect();
    names.sort_unstable();
    if let Some([name, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(refused(
            name,
            "it is named twice; --pass is for variables that don't count",
        ));
    }
    let mut variables = BTreeMap::new();
    for Variable {
        name,
        value,
        counts,
    } in &command.variables
    {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(refused(
                name,
                "a name has no `=`; --pass takes no value, --env NAME=VALUE does",
            ));
        }
        let value = value.clone().map_or_else(|| std::env::var(name), Ok);
        match value {
            Ok(value) if *counts => drop(variables.insert(name.clone(), value)),
            Err(VarError::NotUnicode(_)) if *counts => {
                let why =
                    "its value is no text, so it can't be counted; give it one: --env NAME=VALUE";
                return Err(refused(name, why));
            }
            _ => {}
        }
    }
    Ok(variables)
}

/// Variables that the program has not. Those that it is likelier to look for come first.
fn withheld(environment: &[(OsString, OsString)], program: &str) -> Vec<String> {
    let own = [
        "HOME",
        "TMPDIR",
        "PATH",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "LANG",
        "TERM",
        "LS_COLORS",
    ];
    let is_given = |name: &OsString| environment.iter().any(|(there, _)| there == name);
    let names = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| !is_given(name));
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !own.contains(&&**name)).collect();
    let stem = last_name(program).to_uppercase();
    let stem: String = stem.chars().take_while(|c| c.is_alphanumeric()).collect();
    names.sort_by_key(|name| (!name.starts_with(&stem), name.clone()));
    names
}

/// Arguments that look like files and lead to none. A slip in a file's name is seen by nobody but the program.
fn absent(command: &Command, base: &Path, outputs: &Outputs) -> Vec<String> {
    let is_file = |arg: &&String| {
        let is_named = Path::new(arg)
            .extension()
            .is_some_and(|end| !end.is_empty());
        is_named && !arg.starts_with('-') && !arg.contains([' ', '=', '('])
    };
    let is_given = |arg: &String| {
        command
            .inputs
            .iter()
            .any(|one| one.name.as_ref() == Some(arg))
    };
    let files = command.args.iter().filter(is_file);
    let absent =
        files.filter(|arg| !base.join(arg).exists() && !outputs.may_be(arg) && !is_given(arg));
    absent.cloned().collect()
}

/// Words as a shell would read them: other words are another text.
fn words(words: &[String]) -> String {
    let shown: Vec<String> = words.iter().map(|word| shown(word)).collect();
    shown.join(" ")
}

fn line(program: &str, args: &[String]) -> String {
    match args {
        [] => shown(program),
        args => format!("{} {}", shown(program), words(args)),
    }
}

fn last_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
