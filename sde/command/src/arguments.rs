//! What a command is given: the files that it names, and its arguments as the program gets them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::builder::{Command, Content};
use crate::code::is_executable;
use crate::error::CommandError;
use crate::launched::{Kind, Launched};
use crate::outputs::{Outputs, is_inside, plain};
use crate::paths::{Known, Paths, shown};

pub(crate) struct Arguments {
    pub(crate) args: Vec<String>,
    /// The values of variables that count, as the program gets them.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) files: BTreeMap<String, Content>,
    pub(crate) trees: BTreeMap<String, PathBuf>,
    /// The script or program that an interpreter or a launcher runs, for the name of the app.
    pub(crate) launched: Option<String>,
}

/// What the arguments are read with.
struct Reading<'a> {
    command: &'a Command,
    outputs: &'a Outputs,
    base: &'a Path,
    is_launcher: bool,
    files: BTreeMap<String, Content>,
    trees: BTreeMap<String, PathBuf>,
    /// Names in the run's folder, by the paths that are declared as inputs and trees.
    names: BTreeMap<PathBuf, String>,
}

impl Arguments {
    /// `program` is the file that runs, and `find` looks for a program in the run's `PATH`.
    pub(crate) fn read(
        command: &Command,
        program: &Path,
        outputs: &Outputs,
        base: &Path,
        variables: &BTreeMap<String, String>,
        find: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Result<Self, CommandError> {
        let kind = Kind::of(program);
        let mut reading = Reading {
            command,
            outputs,
            base,
            is_launcher: matches!(kind, Kind::Launcher { .. }),
            files: BTreeMap::new(),
            trees: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        reading.declared()?;
        let paths = reading.paths(matches!(kind, Kind::Launcher { is_shell: true }));
        let args = command.args.iter().map(|arg| reading.argument(arg, &paths));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let replaced = variables.iter().map(|(name, value)| {
            // These lead to programs and libraries, which count.
            let is_free = name == "PATH" || name == "LD_LIBRARY_PATH" || reading.is_declared(value);
            let value = match is_free {
                true => value.clone(),
                false => paths.replaced(value, &format!("the variable {name}"))?,
            };
            Ok((name.clone(), value))
        });
        let variables = replaced.collect::<Result<_, CommandError>>()?;
        let checked = Launched {
            find,
            is_declared: &|word| reading.is_declared(word) || reading.is_used(word, find),
            is_input: &|word| reading.is_input(word),
            is_program: &|word| reading.is_program(word),
        };
        let launched = match (&command.image, &kind) {
            (None, _) => checked.check(&kind, &args)?,
            (Some(_), Kind::Other) => None,
            // All other programs are the image's, and count.
            (Some(_), _) => args.iter().find(|arg| reading.is_input(arg)).cloned(),
        };
        let Reading { files, trees, .. } = reading;
        Ok(Self {
            args,
            variables,
            files,
            trees,
            launched,
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
            let path = self.base.join(tree);
            if !path.is_dir() {
                let why = match path.exists() {
                    true => "it is no folder; a file is an input: -i",
                    false => "there is no such folder",
                };
                return Err(CommandError::refused(
                    format!("the tree {}", tree.display()),
                    why,
                ));
            }
            let name = name_of(tree)?;
            self.names.insert(plain_path(&path), name.clone());
            let other = self.trees.insert(name.clone(), path.clone());
            if let Some(other) = other.filter(|other| *other != path) {
                return Err(clash(&name, &other.display().to_string()));
            }
        }
        for tree in self.trees.keys() {
            let is_within = |name: &&String| *name != tree && Path::new(name).starts_with(tree);
            if let Some(name) = self.files.keys().chain(self.trees.keys()).find(is_within) {
                return Err(clash(name, tree));
            }
            if self
                .outputs
                .names()
                .iter()
                .any(|name| Path::new(name).starts_with(tree))
            {
                let why = "an output that is put there makes it another input for the next call: have it written beside it";
                return Err(CommandError::refused(
                    format!("an output in the tree {tree}"),
                    why,
                ));
            }
        }
        Ok(())
    }

    /// Adds a file under a name.
    fn add(&mut self, name: String, content: Content) -> Result<(), CommandError> {
        let name = plain(&name);
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
                    "it is a folder: --tree takes folders",
                ));
            }
            self.names.insert(plain_path(path), name.clone());
        }
        let same = |other: &Content| match (other, &content) {
            (Content::Path(one), Content::Path(other)) => plain_path(one) == plain_path(other),
            (Content::Bytes(one), Content::Bytes(other)) => one == other,
            _ => false,
        };
        match self.files.insert(name.clone(), content.clone()) {
            Some(other) if !same(&other) => Err(clash(&name, "another one")),
            _ => Ok(()),
        }
    }

    /// What a text may name by a path.
    fn paths(&self, is_shell: bool) -> Paths {
        let named = self.names.iter().filter_map(|(path, name)| {
            Some(Known {
                path: path.to_str()?.to_owned(),
                name: Some(self.spelled(name)),
                is_folder: self.trees.contains_key(name),
            })
        });
        let kept = |path: &str, is_folder| Known {
            path: plain(path),
            name: None,
            is_folder,
        };
        let used = self
            .command
            .uses
            .iter()
            .map(|used| used.strip_prefix('?').unwrap_or(used))
            .map(|used| kept(used, self.base.join(used).is_dir()));
        let texts = self.command.texts.iter().map(|text| kept(text, false));
        let known = named.chain(used).chain(texts);
        Paths::new(
            known.filter(|known| known.path.starts_with('/')).collect(),
            is_shell,
            self.command.image.is_some(),
        )
    }

    /// An argument as the program gets it.
    fn argument(&mut self, arg: &str, paths: &Paths) -> Result<String, CommandError> {
        let path = self.base.join(arg);
        let own = plain(arg);
        if self.is_declared(arg) || !arg.is_empty() && self.outputs.is_named(&own) {
            return Ok(arg.to_owned());
        }
        let is_name = self.files.contains_key(&own) || self.trees.contains_key(&own);
        match self.names.get(&plain_path(&path)) {
            Some(name) if is_name && *name != own => return Err(clash(arg, "another one")),
            Some(name) if *name != own => return Ok(self.spelled(name)),
            None if !is_name => {}
            // It leads there in the run's folder too.
            _ => return Ok(arg.to_owned()),
        }
        let is_relative = !arg.is_empty() && !arg.starts_with('-') && !arg.starts_with('/');
        if !is_relative || self.is_in_a_tree(&own) {
            return paths.replaced(arg, &format!("the argument {}", shown(arg)));
        }
        if path.is_file() {
            return self.by_itself(arg);
        }
        if path.is_dir() {
            let why = match own.is_empty() || own.contains("..") {
                true => format!(
                    "it is a folder that holds more than the run needs: name what it needs by -i and --tree, or --text {arg} if it is just a word"
                ),
                false => format!(
                    "it is a folder: --tree {0} copies it into the run, --text {0} says that it is just a word",
                    shown(arg)
                ),
            };
            return Err(CommandError::refused(
                format!("the argument {}", shown(arg)),
                why,
            ));
        }
        paths.replaced(arg, &format!("the argument {}", shown(arg)))
    }

    /// A file that an argument names is an input, unless it may be what an earlier run wrote.
    fn by_itself(&mut self, arg: &str) -> Result<String, CommandError> {
        let name = name_of(Path::new(arg))?;
        if self.outputs.may_be(&name) {
            return Err(CommandError::refused(
                format!("the argument {}", shown(arg)),
                format!(
                    "a pattern of outputs has that name too: -i {0} if it is an input, -o {0} if it is written",
                    shown(arg)
                ),
            ));
        }
        self.add(name.clone(), Content::Path(PathBuf::from(arg)))?;
        let is_own = plain(arg) == name;
        Ok(if is_own {
            arg.to_owned()
        } else {
            self.spelled(&name)
        })
    }

    /// A name that takes the place of a path: no option, and nothing that is looked for in `PATH`.
    fn spelled(&self, name: &str) -> String {
        match name.starts_with('-') || self.is_launcher && !name.contains('/') {
            true => format!("./{name}"),
            false => name.to_owned(),
        }
    }

    fn is_declared(&self, arg: &str) -> bool {
        self.command
            .texts
            .iter()
            .chain(&self.command.uses)
            .any(|there| there == arg || there.strip_prefix('?') == Some(arg))
    }

    fn is_in_a_tree(&self, own: &str) -> bool {
        self.trees
            .keys()
            .any(|tree| Path::new(own).starts_with(tree))
    }

    /// Whether a word leads to an input in the run's folder.
    fn is_input(&self, word: &str) -> bool {
        let own = plain(word);
        self.files.contains_key(&own) || self.is_in_a_tree(&own)
    }

    /// Whether a program that is started by its name is one of those that are used by their paths.
    fn is_used(&self, word: &str, find: &dyn Fn(&str) -> Option<PathBuf>) -> bool {
        let real = |path: PathBuf| path.canonicalize().ok();
        let Some(program) = find(word).and_then(real) else {
            return false;
        };
        let mut used = self.command.uses.iter().filter(|used| used.contains('/'));
        used.any(|used| real(self.base.join(used)).is_some_and(|used| used == program))
    }

    fn is_program(&self, word: &str) -> bool {
        let is_file = |path: &Path| path.is_file() && is_executable(path);
        let own = plain(word);
        match self.files.get(&own) {
            Some(Content::Path(path)) => is_file(path),
            Some(Content::Bytes(_)) => false,
            None => {
                let is_it = |used: &&String| *used == word;
                let used = self.command.uses.iter().find(is_it);
                used.is_some_and(|used| !used.contains('/') || is_file(&self.base.join(used)))
            }
        }
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
        true => Some(plain_path(path)),
        false => path.file_name().map(PathBuf::from),
    };
    let name = name
        .and_then(|name| name.to_str().map(str::to_owned))
        .filter(|name| !name.is_empty());
    name.ok_or_else(|| {
        CommandError::refused(
            format!("the input {}", path.display()),
            "its path ends in no name that is text: a file is given one by -i SOURCE=NAME, and of a folder name what the run needs",
        )
    })
}

fn plain_path(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}
