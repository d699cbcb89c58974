//! What a run gave.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sde_engine::{Data, Handle, InputFile, Key, OutputFile, ResultMap};

use crate::error::CommandError;
use crate::folder::RunFolder;
use crate::judge::{Judged, Judgement, Stream};
use crate::outputs::{Files, Outputs};
use crate::plan::Plan;
use crate::results::TRACED;
use crate::rules::Rules;
use crate::run::Whole;
use crate::trace::Traced;

/// A run that passed: what the program printed and wrote, and the values that were taken out of that.
#[derive(Clone)]
pub struct Ran {
    sde: Handle,
    app: String,
    key: Key,
    is_remembered: bool,
    status: i32,
    stdout: OutputFile,
    stderr: OutputFile,
    files: Files,
    outputs: Outputs,
    values: BTreeMap<String, Data>,
    others: Vec<String>,
    unkept: Vec<String>,
    left: Vec<String>,
    scratch: PathBuf,
    unshown: Option<String>,
    attempts: Vec<String>,
    is_resumed: bool,
    traced: Option<Traced>,
}

impl Ran {
    pub(crate) fn new(
        sde: &Handle,
        plan: &Arc<Plan>,
        done: (Key, bool, &ResultMap),
        whole: Option<Whole>,
    ) -> Result<Self, CommandError> {
        let (key, is_remembered, results) = done;
        let file = |name: &str| results.get::<OutputFile>(name).map(|file| (*file).clone());
        let (others, unkept, left, unshown) = whole
            .map(|whole| (whole.others, whole.unkept, whole.left, whole.unshown))
            .unwrap_or_default();
        Ok(Self {
            sde: sde.clone(),
            app: plan.app.clone(),
            key,
            is_remembered,
            status: i32::try_from(*results.get::<i64>("status")?).unwrap_or(i32::MAX),
            stdout: file("stdout")?,
            stderr: file("stderr")?,
            files: (*results.get::<Files>("files")?).clone(),
            outputs: plan.outputs.clone(),
            values: BTreeMap::new(),
            others,
            unkept,
            left,
            scratch: plan.scratch.clone(),
            unshown,
            // Runs of older programs have neither.
            attempts: results
                .get::<Vec<String>>(crate::results::ATTEMPTS)
                .map_or_else(|_| Vec::new(), |before| (*before).clone()),
            is_resumed: results
                .get::<bool>(crate::results::RESUMED)
                .is_ok_and(|is| *is),
            traced: traced(results, &plan.texts),
        })
    }

    pub(crate) fn with(mut self, judged: Judgement) -> Self {
        self.values = judged.values;
        self
    }

    pub(crate) fn judge(&self, rules: &Rules) -> Result<Judgement, CommandError> {
        let failed = |error| CommandError::file("reading what was kept of the run", "", error);
        rules.judge(self).map_err(failed)
    }

    /// The app's name: the program's, unless it was given another.
    #[must_use]
    pub fn app(&self) -> &str {
        &self.app
    }

    /// The key of the run.
    #[must_use]
    pub fn key(&self) -> Key {
        self.key
    }

    /// Whether this call ran nothing.
    #[must_use]
    pub fn is_remembered(&self) -> bool {
        self.is_remembered
    }

    /// The exit status.
    #[must_use]
    pub fn status(&self) -> i32 {
        self.status
    }

    /// A value that a rule took: `None` if it is optional and was not found, or no rule has this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Data> {
        self.values.get(name)
    }

    /// A value that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.values.get(name)? {
            Data::Float(value) => Some(*value),
            #[expect(
                clippy::cast_precision_loss,
                reason = "integers that programs print are small"
            )]
            Data::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// All values that rules took, by name.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Data)> {
        self.values.iter().map(|(name, value)| (&**name, value))
    }

    /// What it printed on its standard output, as a whole in memory.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn stdout(&self) -> io::Result<Vec<u8>> {
        self.bytes(&self.stdout)
    }

    /// What it printed on its standard error, as a whole in memory.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn stderr(&self) -> io::Result<Vec<u8>> {
        self.bytes(&self.stderr)
    }

    /// Writes what it printed to these, a piece at a time.
    ///
    /// # Errors
    /// If it can't be read or written.
    pub fn print(&self, stdout: &mut dyn Write, stderr: &mut dyn Write) -> io::Result<()> {
        io::copy(&mut self.content(&self.stdout)?, stdout)?;
        io::copy(&mut self.content(&self.stderr)?, stderr)?;
        stdout.flush()?;
        stderr.flush()
    }

    /// The paths of its outputs in the run's folder, sorted.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(|name| &**name)
    }

    /// What an output holds, as a whole in memory.
    ///
    /// # Errors
    /// If there is none of this name, or it can't be read.
    pub fn read(&self, output: &str) -> io::Result<Vec<u8>> {
        self.bytes(self.file(output)?)
    }

    /// Puts an output at a path, in one step, with its permission bits. A file that holds it already is left alone.
    ///
    /// # Errors
    /// As [`Handle::put`], or if there is no output of this name.
    pub fn put(&self, output: &str, path: impl AsRef<Path>) -> io::Result<()> {
        self.sde.put(self.file(output)?, path.as_ref())
    }

    /// Puts all outputs below a folder. Each is written whole beside its place first; then all get their names.
    ///
    /// # Errors
    /// As [`put`](Self::put), with nothing changed; unless a name could not be given at the end.
    pub fn put_all(&self, folder: impl AsRef<Path>) -> io::Result<()> {
        self.put_each(|name| folder.as_ref().join(name))
    }

    /// Puts each output at the path that is given for its name, otherwise as [`put_all`](Self::put_all).
    ///
    /// # Errors
    /// As [`put_all`](Self::put_all).
    pub fn put_each(&self, path: impl Fn(&str) -> PathBuf) -> io::Result<()> {
        let mut wanted: Vec<(&OutputFile, PathBuf)> = Vec::new();
        for (name, file) in &self.files {
            let place = std::path::absolute(path(name))?;
            if fs::symlink_metadata(&place).is_ok_and(|about| !about.is_file()) {
                let why = format!(
                    "{} is no regular file, so the output is not put there",
                    place.display()
                );
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            wanted.push((file, place));
        }
        let mut places: Vec<&Path> = wanted.iter().map(|(_, place)| &**place).collect();
        places.sort();
        if let Some([_, within]) = places.windows(2).find(|pair| pair[1].starts_with(pair[0])) {
            let why = format!("two outputs would be put at {}", within.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        wanted.retain(|(file, place)| !is_there(file, place));
        let Some((_, first)) = wanted.first() else {
            return Ok(());
        };
        // A kill leaves a folder that the next call removes.
        let here = first.ancestors().skip(1).find(|folder| folder.is_dir());
        let stage = RunFolder::make(here.unwrap_or(first))?;
        let staged = |at: usize| stage.path().join(at.to_string());
        let at_place = |place: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", place.display()))
        };
        for (at, (file, place)) in wanted.iter().enumerate() {
            let ready = self.sde.put(file, &staged(at));
            let ready = ready.and_then(|()| fs::create_dir_all(place.parent().unwrap_or(place)));
            ready.map_err(|error| at_place(place, error))?;
        }
        for (at, (file, place)) in wanted.iter().enumerate() {
            let put = match fs::rename(staged(at), place) {
                // A place on another disk gets it by itself.
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    self.sde.put(file, place)
                }
                renamed => renamed,
            };
            put.map_err(|error| at_place(place, error))?;
        }
        Ok(())
    }

    /// Outputs that could not be kept, and why, if this call ran it.
    #[must_use]
    pub fn unkept(&self) -> &[String] {
        &self.unkept
    }

    /// Files that it wrote and nobody declared, if this call ran it. They are gone.
    #[must_use]
    pub fn undeclared(&self) -> &[String] {
        &self.others
    }

    /// Processes that it left behind and that were ended, if this call ran it.
    #[must_use]
    pub fn left_behind(&self) -> &[String] {
        &self.left
    }

    /// What the trace of the run found, if this call asks for [`trace`](crate::Command::trace).
    #[must_use]
    pub fn traced(&self) -> Option<&Traced> {
        self.traced.as_ref()
    }

    /// What could not be passed on of what it printed, if this call ran it with [`echo`](crate::Command::echo): the
    /// stream and the error, such as a full disk. A reader that left is none. What is kept of the run is whole.
    #[must_use]
    pub fn unshown(&self) -> Option<&str> {
        self.unshown.as_deref()
    }

    /// Why attempts failed that were made before it, in its call: see [`retry`](crate::Command::retry).
    #[must_use]
    pub fn attempts(&self) -> &[String] {
        &self.attempts
    }

    /// Whether it went on from files that an attempt before it left: see [`carry`](crate::Command::carry).
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The files with what it printed, as far as they can be read.
    pub(crate) fn printed(&self) -> impl Iterator<Item = File> {
        [&self.stdout, &self.stderr]
            .into_iter()
            .filter_map(|file| self.content(file).ok())
    }

    fn file(&self, output: &str) -> io::Result<&OutputFile> {
        self.files.get(output).ok_or_else(|| {
            let names: Vec<&str> = self.outputs().collect();
            let why = format!(
                "the run wrote no output {output:?}; it has: {}",
                names.join(", ")
            );
            io::Error::new(io::ErrorKind::NotFound, why)
        })
    }

    fn bytes(&self, file: &OutputFile) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.content(file)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// What a file holds, to be read: the file itself, or one without a name.
    fn content(&self, file: &OutputFile) -> io::Result<File> {
        if file.is_unchanged().unwrap_or(false) {
            return File::open(file.path());
        }
        let failed = |error: io::Error| {
            let why = format!(
                "in {} (--scratch names another folder): {error}",
                self.scratch.display()
            );
            io::Error::new(error.kind(), why)
        };
        let mut content = tempfile::tempfile_in(&self.scratch).map_err(failed)?;
        self.sde.content(file, &mut content).map_err(failed)?;
        content.rewind()?;
        Ok(content)
    }
}

/// What the trace of a run found, if it was traced, but for what these texts free.
pub(crate) fn traced(results: &ResultMap, texts: &[String]) -> Option<Traced> {
    let kept = results.get::<String>(TRACED).ok()?;
    Some(Traced::read(&kept).without(texts))
}

/// Whether a path has what a file holds, with its permission bits.
fn is_there(file: &OutputFile, place: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let bits = |about: fs::Metadata| about.permissions().mode() & 0o777;
    let held = || InputFile::new(place).content_digest().ok();
    fs::symlink_metadata(place).is_ok_and(|about| bits(about) == file.mode())
        && held() == Some((file.length(), file.digest()))
}

impl Judged for Ran {
    fn status(&self) -> i32 {
        self.status
    }

    fn declared(&self) -> Vec<String> {
        self.outputs.names()
    }

    fn files(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    fn open(&self, stream: Stream<'_>) -> io::Result<Box<dyn Read + '_>> {
        let content = match stream {
            Stream::Output => self.content(&self.stdout),
            Stream::Error => self.content(&self.stderr),
            Stream::File(name) => self.content(self.file(name)?),
        };
        Ok(Box::new(content?))
    }
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ran")
            .field("app", &self.app)
            .field("key", &self.key)
            .field("status", &self.status)
            .field("values", &self.values)
            .field("outputs", &self.files.keys())
            .finish_non_exhaustive()
    }
}
