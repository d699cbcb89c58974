//! Files that are edited while something keyed by them is held.
//!
//! The fault: what an `InputFile` held was keyed once wherever an encoding is kept, in a `Value`, in
//! `Inputs`, in a prepared and in a registered app. After an edit each of them went on giving the
//! result of the old content; and a body that read the new content had its result remembered, and
//! saved, under the key of the old.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use sde::archiver::MemoryArchiver;
use sde::key::FingerprintErrorKind;
use sde::{
    App, AppError, AppInfo, ErrorKind, Fingerprint, Handle, InputFile, Inputs, Instance, Parameter,
    Peek, Policy, ResultMap, ResultSpec, Sde, Slot, Value, inputs,
};

/// A file of its own, removed at the end.
struct File(PathBuf);

impl File {
    fn new(length: usize) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sde-volatile-{}-{number}", std::process::id());
        let file = Self(std::env::temp_dir().join(name));
        file.write(length);
        file
    }

    fn write(&self, length: usize) {
        fs::write(&self.0, "x\n".repeat(length)).unwrap();
    }

    fn input(&self) -> InputFile {
        InputFile::new(&self.0)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn count(file: &InputFile) -> Result<usize, std::io::Error> {
    Ok(fs::read_to_string(file.path())?.lines().count())
}

#[sde::app]
fn lines(file: &InputFile) -> Result<usize, std::io::Error> {
    count(file)
}

#[sde::app]
fn lines_of_shared(file: Value<InputFile>) -> Result<usize, std::io::Error> {
    count(&file)
}

#[derive(Fingerprint)]
struct Job {
    files: std::collections::BTreeMap<String, InputFile>,
}

#[sde::app]
fn lines_of_job(job: &Job) -> Result<usize, std::io::Error> {
    job.files.values().map(count).sum()
}

/// Counts the lines of the file that is its parameter.
#[derive(Fingerprint)]
struct Lines;

impl App for Lines {
    fn info(&self) -> AppInfo {
        AppInfo::new("volatile.Lines", "1")
            .parameter(Parameter::required::<InputFile>("file"))
            .result(ResultSpec::new::<usize>("lines"))
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("lines", count(sde.parameter("file")?)?))
    }
}

/// Runs what is in its slot.
#[derive(Fingerprint)]
struct Outer;

impl App for Outer {
    fn info(&self) -> AppInfo {
        AppInfo::new("volatile.Outer", "1")
            .slot(Slot::required("lines"))
            .result(ResultSpec::new::<usize>("lines"))
    }

    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        let results = sde.run(&sde.sub_app("lines")?, &inputs! {})?;
        Ok(ResultMap::new().with("lines", *results.get::<usize>("lines")?))
    }
}

/// Runs the app that is registered as "lines".
#[sde::app]
fn by_name(sde: &Handle) -> Result<usize, sde::Error> {
    Ok(*sde.run("lines", &inputs! {})?.get::<usize>("lines")?)
}

/// Calls an app that runs a registered one.
#[sde::app]
fn further_up(sde: &Handle) -> Result<usize, sde::Error> {
    Ok(*by_name.call(sde)?)
}

/// What `run` gives for a file of one line, and after each edit; asked for several times, so that
/// each level of the cache has its turn.
fn follows_edits(file: &File, run: impl Fn() -> usize) {
    for length in [1, 2, 3, 2] {
        file.write(length);
        for _ in 0..4 {
            assert_eq!(run(), length);
        }
    }
}

#[test]
fn inputs_that_are_held_are_read_anew() {
    let (sde, file) = (Sde::new(), File::new(1));
    follows_edits(&file, || *lines.call(&sde, &file.input()).unwrap());
    let inputs = inputs! { file: file.input() };
    let result = |results: ResultMap| *results.get::<usize>("result").unwrap();
    follows_edits(&file, || result(sde.run(&lines, &inputs).unwrap()));
    let both = [inputs.clone(), inputs];
    follows_edits(&file, || {
        let [a, b] = sde.par_map(&lines, &both).try_into().unwrap();
        assert_eq!(result(a.unwrap()), result(b.as_ref().unwrap().clone()));
        result(b.unwrap())
    });
}

#[test]
fn values_that_are_held_are_read_anew() {
    let (sde, file) = (Sde::new(), File::new(1));
    let value = Value::new(file.input());
    follows_edits(&file, || {
        *lines_of_shared.call(&sde, value.clone()).unwrap()
    });
    let files = [("a".to_owned(), file.input())].into();
    let job = Value::new(Job { files });
    follows_edits(&file, || *lines_of_job.call(&sde, &job).unwrap());
    let nested = inputs! { job: Value::new(job) };
    #[sde::app]
    fn number_of_jobs(jobs: &[Value<Value<Job>>]) -> usize {
        jobs.len()
    }
    let deeper = inputs! { jobs: Value::new(vec![nested.value::<Value<Job>>("job").unwrap()]) };
    let keys = [1, 2].map(|length| {
        file.write(length);
        sde.peek(&number_of_jobs, &deeper).unwrap().key()
    });
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn apps_that_are_held_are_identified_anew() {
    let (sde, file) = (Sde::new(), File::new(1));
    let instance = Instance::new(Lines).set("file", file.input()).unwrap();
    let prepared = sde.prepare(&instance).unwrap();
    let outer = Instance::new(Outer)
        .fill("lines", instance.clone())
        .unwrap();
    let outer = sde.prepare(&outer).unwrap();
    sde.apps().register("lines", instance.clone()).unwrap();
    let named = Instance::new(Outer).fill("lines", "lines").unwrap();
    sde.apps().register("outer", named).unwrap();
    let of = |results: ResultMap| *results.get::<usize>("lines").unwrap();
    let none = inputs! {};
    follows_edits(&file, || of(sde.run(&instance, &none).unwrap()));
    follows_edits(&file, || of(sde.run(&prepared, &none).unwrap()));
    follows_edits(&file, || of(sde.run(&outer, &none).unwrap()));
    follows_edits(&file, || of(sde.run("lines", &none).unwrap()));
    follows_edits(&file, || of(sde.run("outer", &none).unwrap()));
    follows_edits(&file, || *by_name.call(&sde).unwrap());
    follows_edits(&file, || *further_up.call(&sde).unwrap());
    // Each content was counted once by each app.
    let computed = |app: &str| sde.stats().apps[app].computed;
    assert_eq!(computed("volatile.Lines"), 3);
    assert_eq!(computed("volatile.Outer"), 3);
}

/// The key was made, the file edited, and the body read the new content.
#[test]
fn a_key_that_was_made_before_the_edit_gets_no_result_of_after_it() {
    let file = File::new(1);
    let store = MemoryArchiver::new();
    let instance = || Instance::new(Lines).set("file", file.input()).unwrap();
    let sde = Sde::builder()
        .store(store.clone())
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let prepared = sde.prepare(&instance()).unwrap();
    let inputs = inputs! { file: file.input() };
    assert!(matches!(
        sde.peek(&lines, &inputs).unwrap(),
        Peek::Miss { .. }
    ));
    file.write(2);
    let two = sde.run(&prepared, &inputs! {}).unwrap();
    assert_eq!(*two.get::<usize>("lines").unwrap(), 2);
    let two = sde.run(&lines, &inputs).unwrap();
    assert_eq!(*two.get::<usize>("result").unwrap(), 2);
    sde.finish().unwrap();
    file.write(1);
    let sde = Sde::builder()
        .store(store)
        .save(sde::SavePolicy::OnRequest)
        .build()
        .unwrap();
    let one = sde.run(&instance(), &inputs! {}).unwrap();
    assert_eq!(*one.get::<usize>("lines").unwrap(), 1);
    assert_eq!(*lines.call(&sde, &file.input()).unwrap(), 1);
}

/// Edits the file before it reads it, as another program could.
#[sde::app]
fn edits_first(file: &InputFile) -> Result<usize, AppError> {
    fs::write(file.path(), "edited\nby another\n")?;
    Ok(count(file)?)
}

/// The same with the file among its settings.
#[derive(Fingerprint)]
struct EditsFirst {
    file: InputFile,
}

impl App for EditsFirst {
    fn info(&self) -> AppInfo {
        AppInfo::new("volatile.EditsFirst", "1").result(ResultSpec::new::<usize>("lines"))
    }

    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        fs::write(self.file.path(), "edited\nby another\n")?;
        Ok(ResultMap::new().with("lines", count(&self.file)?))
    }
}

/// Fails for good for what it has read of the edited file.
#[sde::app]
fn edits_and_fails(file: &InputFile) -> Result<usize, AppError> {
    fs::write(file.path(), "edited\nby another\n")?;
    Err(AppError::message("not a molecule").permanent())
}

#[track_caller]
fn assert_changed(error: &sde::Error, file: &File) {
    let named = match error.kind() {
        ErrorKind::Fingerprint { source, .. } => match source.kind() {
            FingerprintErrorKind::Changed { file, .. } => Some(file),
            _ => None,
        },
        _ => None,
    };
    assert_eq!(named, Some(&file.0), "{error}");
}

#[test]
fn a_file_that_changes_during_a_run_leaves_no_result() {
    let (sde, file) = (Sde::new(), File::new(1));
    let error = edits_first.call(&sde, &file.input()).unwrap_err();
    assert_changed(&error, &file);
    // Of the content that it has had since, there is one.
    assert_eq!(*edits_first.call(&sde, &file.input()).unwrap(), 2);
    file.write(1);
    let inputs = inputs! { file: file.input() };
    let peek = sde.peek(&edits_first, &inputs).unwrap();
    assert!(matches!(peek, Peek::Miss { .. }), "{peek:?}");
    let bypass = sde.request(&edits_first, &inputs).policy(Policy::Bypass);
    assert_changed(&bypass.run().unwrap_err(), &file);

    file.write(1);
    let app = EditsFirst { file: file.input() };
    assert_changed(&sde.run(&app, &inputs! {}).unwrap_err(), &file);
    assert!(sde.run(&app, &inputs! {}).is_ok());

    file.write(1);
    assert!(edits_and_fails.call(&sde, &file.input()).is_err());
    file.write(1);
    let peek = sde.peek(&edits_and_fails, &inputs).unwrap();
    let Peek::Miss { why, .. } = peek else {
        panic!("{peek:?}");
    };
    assert!(!why.contains("would again"), "{why}");
}

/// What serde shows of an atomic is what it holds now.
#[derive(Fingerprint)]
struct Counter {
    #[fingerprint(serde)]
    count: Arc<AtomicU64>,
}

#[sde::app]
fn counted(counter: &Counter) -> u64 {
    counter.count.load(Ordering::SeqCst)
}

#[test]
fn what_serde_shows_is_looked_at_each_time() {
    let sde = Sde::new();
    let count = Arc::new(AtomicU64::new(1));
    let counter = Value::new(Counter {
        count: Arc::clone(&count),
    });
    let inputs = inputs! { counter: counter.clone() };
    for now in [1, 2, 1] {
        count.store(now, Ordering::SeqCst);
        for _ in 0..4 {
            let results = sde.run(&counted, &inputs).unwrap();
            assert_eq!(*results.get::<u64>("result").unwrap(), now);
            assert_eq!(*counted.call(&sde, &counter).unwrap(), now);
        }
    }
}

/// The app of the fault: it reads a file that is one of its parameters, by default.
#[derive(Fingerprint)]
struct Reader;

impl App for Reader {
    fn info(&self) -> AppInfo {
        AppInfo::new("volatile.Reader", "1")
            .parameter(Parameter::new("file", InputFile::new(settings_file())))
            .failures(sde::Failure::Permanent)
            .result(ResultSpec::new::<usize>("lines"))
    }
    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        match count(sde.parameter::<InputFile>("file")?)? {
            0 => Err(AppError::message("the file is empty")),
            number => Ok(ResultMap::new().with("lines", number)),
        }
    }
}

fn settings_file() -> PathBuf {
    std::env::temp_dir().join(format!("sde-volatile-settings-{}", std::process::id()))
}

#[sde::app(failures = "permanent")]
fn reads(sde: &Handle) -> Result<usize, sde::Error> {
    Ok(*sde.run(&Reader, &inputs! {})?.get::<usize>("lines")?)
}

/// Found by a hostile program: a caller that declares nothing went on failing after the file was mended for which its callee
/// had failed for good.
#[test]
fn a_failure_lasts_no_longer_than_the_file_that_caused_it() {
    let file = File(settings_file());
    file.write(0);
    let sde = Sde::new();
    assert!(reads.call(&sde).is_err());
    file.write(3);
    assert_eq!(*reads.call(&sde).unwrap(), 3);
}
