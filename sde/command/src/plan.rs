//! A command with all that it names found and read: what is in its key, and what its run is made of.

use std::collections::BTreeMap;
use std::env::VarError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sde_engine::key::Digest;
use sde_engine::{AppInfo, Inputs, OutputFile, ResultSpec, inputs};

use crate::arguments::Arguments;
use crate::builder::{Command, Content, Stop, Variable};
use crate::code::Code;
use crate::error::CommandError;
use crate::given::{Counted, Given};
use crate::outputs::{Files, Outputs};
use crate::program::{self, Digests};
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

impl Plan {
    pub(crate) fn new(command: &Command) -> Result<Self, CommandError> {
        let base = base(command)?;
        let variables = variables(command)?;
        let digests = Digests::new(command.rehashes);
        let code = Code::new(command, &base, &digests)?;
        let outputs = Outputs::new(&command.outputs)?;
        for compared in &command.compared {
            if !outputs.is_declared(compared) {
                let why = format!("it is no output: -o {compared}");
                return Err(CommandError::refused(format!("--compare {compared}"), why));
            }
        }
        let path = code.path.clone();
        let finds = |word: &str| program::find(word.as_ref(), &base, &path).is_ok();
        let arguments = Arguments::read(command, &outputs, &base, &variables, &finds)?;
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
        let mut inputs = inputs! { command: line(&last_name(&command.program), &arguments.args) };
        for (name, file) in &files {
            inputs = inputs.with(format!("./{name}"), file.counted());
        }
        for (name, (_, digest)) in &trees {
            inputs = inputs.with(format!("./{name}/"), Counted::tree(digest));
        }
        if let Some(stdin) = &stdin {
            inputs = inputs.with("stdin", stdin.counted());
        }
        for (name, value) in variables {
            inputs = inputs.with(format!("${name}"), value);
        }
        if !command.outputs.is_empty() {
            inputs = inputs.with("outputs", words(&outputs.names()));
        }
        Ok(Self {
            info: code.info(command, &app),
            app,
            program: code.program.path,
            args: arguments.args,
            files,
            trees,
            stdin,
            withheld: withheld(&code.environment),
            environment: code.environment,
            rules: command.rules()?,
            outputs,
            compared: command.compared.clone(),
            scratch: base.join(command.scratch.clone().unwrap_or_else(std::env::temp_dir)),
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
        line(&self.program.to_string_lossy(), &self.args)
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
fn variables(command: &Command) -> Result<BTreeMap<String, String>, CommandError> {
    let mut variables = BTreeMap::new();
    for Variable {
        name,
        value,
        counts,
    } in &command.variables
    {
        let value = value.clone().map_or_else(|| std::env::var(name), Ok);
        match value {
            Ok(value) if *counts => drop(variables.insert(name.clone(), value)),
            Err(VarError::NotUnicode(_)) if *counts => {
                let why =
                    "its value is no text, so it can't be counted; give it one: --env NAME=VALUE";
                return Err(CommandError::refused(format!("the variable {name}"), why));
            }
            _ => {}
        }
    }
    Ok(variables)
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

/// Words as a shell would read them: other words are another text.
fn words(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

fn line(program: &str, args: &[String]) -> String {
    match args {
        [] => quoted(program),
        args => format!("{} {}", quoted(program), words(args)),
    }
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
