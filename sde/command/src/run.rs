//! One run: the folder, the inputs, the program, and what came of it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use rustix::process::Signal;
use sde_engine::{AppError, Handle, OutputFile, ResultMap};

use crate::carry::{Carry, Generation};
use crate::error::{Ended, EndedBy};
use crate::folder::RunFolder;
use crate::image;
use crate::outputs::{Files, Outputs, Placed};
use crate::plan::Plan;
use crate::process::{self, End, Finished, Launch};
use crate::results;
use crate::trace::{self, Places, Traced};
use crate::tree;

/// What a run that ended by itself gave.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    pub(crate) status: i32,
    pub(crate) stdout: OutputFile,
    pub(crate) stderr: OutputFile,
    pub(crate) files: Files,
    /// Files that nobody declared.
    pub(crate) others: Vec<String>,
    /// Outputs that could not be kept, and why.
    pub(crate) unkept: Vec<String>,
    /// Processes that it left behind, and which were ended.
    pub(crate) left: Vec<String>,
    /// Why what it printed was not passed on as a whole.
    pub(crate) unshown: Option<String>,
    /// Why attempts before it failed.
    pub(crate) attempts: Vec<String>,
    /// Whether it went on from files that an attempt before it left.
    pub(crate) is_resumed: bool,
    pub(crate) traced: Option<Traced>,
}

/// How an attempt ended.
pub(crate) enum Attempt {
    Whole(Whole),
    Ended(Ended),
}

/// How much of what a run printed an error shows.
const SHOWN: u64 = 2_000;

impl Plan {
    /// Runs the program once, from a generation of carried files or from none. An error says that it could not be run.
    pub(crate) fn attempt(
        &self,
        sde: Option<&Handle>,
        carry: &Carry<'_>,
        from: Option<&Generation>,
    ) -> Result<Attempt, AppError> {
        let failed = |what: String, error: io::Error| AppError::message(format!("{what}: {error}"));
        let in_scratch = |error| {
            let scratch = self.scratch.display();
            failed(
                format!("making the run's folder in {scratch} (--scratch names another)"),
                error,
            )
        };
        let folder = Arc::new(RunFolder::make(&self.scratch).map_err(in_scratch)?);
        // TERM, as from a batch system.
        let cancelled = || sde.is_some_and(Handle::is_cancelled).then_some(15);
        // A signal is passed on when the answer before was another, so one that is sent again follows on none.
        let last = Cell::new(None);
        let told = || {
            let sent = self.stop.sent().filter(|&sent| Some(sent) != self.heard);
            let is_again = last.replace(sent).is_some_and(|last| Some(last) != sent);
            sent.filter(|_| !is_again).map(|(_, signal)| signal)
        };
        // What was told goes before: it is passed on, and so is what is told again.
        let is_told = || {
            self.stop
                .sent()
                .is_some_and(|sent| Some(sent) != self.heard)
        };
        let stop = || match is_told() {
            true => told(),
            false => cancelled(),
        };
        let stopped = self.place_all(&folder.work(), &stop)?;
        let placed = Placed::new(&folder.work());
        let handed = from.map_or(Ok(()), |from| from.place(&folder.work()));
        handed.map_err(|error| failed("placing what an attempt before left".into(), error))?;
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.path().join(name));
        let finished = match stopped {
            Some(signal) => Ok((Finished::not_started(signal), None)),
            None => carry.beside(&folder.work(), self.carry_every, || {
                self.launch(&folder, &stdout, &stderr, &stop)
            }),
        };
        let (finished, traced) = finished.map_err(|error| {
            failed(
                format!("running {}", self.code.program.path.display()),
                error,
            )
        })?;
        let status = match self.ended(finished.end, [&stdout, &stderr]) {
            Ok(status) => status,
            Err(ended) => {
                carry.copy(&folder.work());
                return Ok(Attempt::Ended(ended));
            }
        };
        let taken = || -> io::Result<Whole> {
            if self.is_linked {
                self.check_links()?;
            }
            self.code.check()?;
            let mut taken = self.outputs.take(&folder, &placed)?;
            taken.others.retain(|name| !self.carried.contains(name));
            folder.clear()?;
            Ok(Whole {
                status,
                stdout: OutputFile::without_place(stdout, Arc::clone(&folder))?,
                stderr: OutputFile::without_place(stderr, Arc::clone(&folder))?,
                files: taken.files,
                others: taken.others,
                unkept: taken.unkept,
                left: finished.left,
                unshown: finished.unshown,
                attempts: Vec::new(),
                is_resumed: from.is_some(),
                traced,
            })
        };
        taken()
            .map(Attempt::Whole)
            .map_err(|error| failed("taking what it wrote".into(), error))
    }

    /// Copies the inputs, or a part of them: up to a signal, which is given.
    fn place_all(
        &self,
        work: &Path,
        stop: &dyn Fn() -> Option<i32>,
    ) -> Result<Option<i32>, AppError> {
        for (name, (path, digest)) in &self.trees {
            if let Some(signal) = stop() {
                return Ok(Some(signal));
            }
            let to = work.join(name);
            let failed = |why: String| AppError::message(format!("copying the tree {name}: {why}"));
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(|error| failed(error.to_string()))?;
            }
            tree::copy(path, &to).map_err(|error| failed(error.to_string()))?;
            if tree::digest(&to).map_err(|error| failed(error.to_string()))? != *digest {
                return Err(failed(
                    "it was changed since the run's key was made; run it again".into(),
                ));
            }
        }
        for (name, file) in &self.files {
            if let Some(signal) = stop() {
                return Ok(Some(signal));
            }
            let placed = file.place(&work.join(name), self.is_linked);
            placed
                .map_err(|error| AppError::message(format!("copying the input {name}: {error}")))?;
        }
        Ok(None)
    }

    /// Linked files may have been written to, by the program too.
    fn check_links(&self) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(name, file)| match &file.content {
                crate::builder::Content::Path(path) => file
                    .check(path)
                    .map_err(|error| io::Error::other(format!("the linked input {name}: {error}"))),
                crate::builder::Content::Bytes(_) => Ok(()),
            })
    }

    fn launch(
        &self,
        folder: &Arc<RunFolder>,
        stdout: &Path,
        stderr: &Path,
        stop: &dyn Fn() -> Option<i32>,
    ) -> io::Result<(Finished, Option<Traced>)> {
        let stdin = match &self.stdin {
            None => File::open("/dev/null")?,
            Some(given) => {
                let path = folder.path().join("stdin");
                given.place(&path, false)?;
                File::open(path)?
            }
        };
        let mut environment = self.code.environment.clone();
        // Paths of inputs in them are names in the folder.
        environment.retain(|(name, _)| !self.variables.keys().any(|counted| name == &**counted));
        let counted = self.variables.iter();
        environment.extend(counted.map(|(name, value)| (name.into(), value.into())));
        let places = [("HOME", folder.home()), ("TMPDIR", folder.tmp())];
        for (name, path) in places.into_iter().filter(|_| self.image.is_none()) {
            if !environment.iter().any(|(there, _)| there == name) {
                environment.push((name.into(), path.into()));
            }
        }
        let mut args: Vec<OsString> = self.args.iter().map(OsString::from).collect();
        let mut program = self.code.program.path.clone();
        if let Some(image) = &self.image {
            let inside = image::contained(image, &program, args, &environment, folder)?;
            (program, args, environment) = (inside.program, inside.args, inside.environment);
        }
        let work = folder.work();
        let mut run = |program: &Path, args: &[OsString]| {
            process::run(Launch {
                program,
                args,
                environment: &environment,
                folder: &work,
                stdin: stdin.try_clone()?,
                stdout: File::create(stdout)?,
                stderr: File::create(stderr)?,
                echo: self.is_echoed,
                limit: self.limit,
                grace: self.grace,
                lock: folder.lock(),
                stop,
            })
        };
        match self.trace {
            None => Ok((run(&program, &args)?, None)),
            Some(_) => {
                let places = Places {
                    run: folder.path(),
                    work: &work,
                    stderr,
                };
                let traced = trace::run(&self.declared, places, (&program, &args), &mut run)?;
                Ok((traced.0, Some(traced.1)))
            }
        }
    }

    /// The status of a run that ended by itself.
    fn ended(&self, end: End, printed: [&Path; 2]) -> Result<i32, Ended> {
        let by = match end {
            End::Signal(signal) if is_crash(signal) => EndedBy::Crash,
            End::Signal(_) | End::Lost => EndedBy::Outside,
            End::TimeLimit(_) => EndedBy::Limit,
            _ => EndedBy::Caller,
        };
        let (how, status) = match end {
            End::Exited(status) => return Ok(status),
            End::Signal(signal) => (format!("it was ended by signal {signal}"), 128 + signal),
            End::TimeLimit(limit) => (
                format!("it took longer than {limit:?}, its time limit"),
                124,
            ),
            End::Interrupted(signal) => (
                format!("it was told to end (signal {signal})"),
                128 + signal,
            ),
            End::Full(error) => {
                let scratch = self.scratch.display();
                (
                    format!("{error} (its folder is in {scratch}, --scratch names another)"),
                    125,
                )
            }
            End::Lost => ("the process that watched it was ended".to_owned(), 125),
        };
        let tail = tail(&mut printed.into_iter().filter_map(|path| File::open(path).ok()));
        Err(Ended {
            how,
            tail,
            status,
            by,
            attempts: Vec::new(),
        })
    }
}

impl Whole {
    pub(crate) fn results(&self, plan: &Plan) -> ResultMap {
        let digests = self.files.iter().filter(|(name, _)| {
            plan.compared.iter().any(|output| {
                // It is one of the declared.
                Outputs::new(std::slice::from_ref(output)).is_ok_and(|one| one.may_be(name))
            })
        });
        let compared: BTreeMap<String, String> = digests
            .map(|(name, file)| (name.clone(), file.digest().to_string()))
            .collect();
        let map = match &self.traced {
            Some(traced) => ResultMap::new().with(results::TRACED, traced.kept()),
            None => ResultMap::new(),
        };
        map.with(results::STATUS, i64::from(self.status))
            .with(results::COMMAND, plan.line())
            .with(results::RULES, plan.rules.to_string())
            .with(results::DECLARED, plan.outputs.names())
            .with(results::STDOUT, self.stdout.clone())
            .with(results::STDERR, self.stderr.clone())
            .with(results::FILES, self.files.clone())
            .with(results::ATTEMPTS, self.attempts.clone())
            .with(results::RESUMED, self.is_resumed)
            .with(results::ENDED, results::ended_now())
            .with(results::COMPARED, compared)
    }
}

/// Whether the kernel sends a signal for what a program did itself.
fn is_crash(signal: i32) -> bool {
    let crashes = [
        Signal::ABORT,
        Signal::BUS,
        Signal::FPE,
        Signal::ILL,
        Signal::SEGV,
        Signal::SYS,
        Signal::TRAP,
    ];
    crashes.iter().any(|crash| crash.as_raw() == signal)
}

/// The end of what was printed.
pub(crate) fn tail(files: &mut dyn Iterator<Item = File>) -> String {
    let read = |mut file: File| -> io::Result<String> {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
        let mut bytes = Vec::new();
        file.take(SHOWN).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let texts = files
        .filter_map(|file| read(file).ok())
        .filter(|text| !text.trim().is_empty());
    texts.collect::<Vec<_>>().join("")
}
