//! Stores to look into, and the program to look into them with.

use std::cell::Cell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Instance, Key, Parameter, Policy,
    ResultMap, ResultSpec, SavePolicy, Sde, Slot, Tag, inputs,
};
use sde_archives::DirStore;

#[path = "../../../tests/src/says.rs"]
#[allow(dead_code, reason = "part of it is for other tests")]
mod says;
pub use says::says;

/// The energy of a charge.
#[sde::app(
    name = "cli.energy",
    version = "1",
    author = "A. Nonymous",
    citation = "J. Irreproducible Results 1 (1955)"
)]
pub fn energy(basis: &str, charge: i32) -> f64 {
    basis.len() as f64 + f64::from(charge) / 4.0 + OFFSET.get()
}

thread_local! {
    /// Something that is not in the key, and should be.
    pub static OFFSET: Cell<f64> = const { Cell::new(0.0) };
}

/// A state that is saved before it fails.
#[sde::app(name = "cli.iterate", version = "1")]
fn iterate(sde: &Handle, from: f64) -> Result<f64, AppError> {
    sde.scratch::<(u32, f64)>().save((3, from))?;
    Err(AppError::message("interrupted"))
}

/// Has results of each kind.
#[derive(Fingerprint, Clone)]
pub struct Solver {
    pub order: u32,
    #[fingerprint(skip)]
    pub version: &'static str,
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Report {
    #[serde(with = "sde::bulk")]
    weights: Vec<f32>,
    label: String,
    steps: Option<u64>,
}

impl App for Solver {
    fn info(&self) -> AppInfo {
        AppInfo::new("cli.Solver", self.version)
            .parameter(Parameter::new("tolerance", 1e-6_f64))
            .parameter(Parameter::new("threads", 1_usize).transparent())
            .slot(Slot::new("inner", Inner))
            .result(ResultSpec::new::<Vec<[f64; 3]>>("positions"))
            .result(ResultSpec::new::<Vec<f64>>("guess").tagged(Tag::Intermediate))
            .result(ResultSpec::new::<Report>("report"))
            .result(ResultSpec::new::<u64>("trace").tagged(Tag::Expendable))
    }
    fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        energy.call(sde, "STO-3G", 0)?;
        let n = f64::from(self.order);
        let report = Report {
            weights: vec![0.5, 1.5],
            label: "a label".to_owned(),
            steps: None,
        };
        Ok(ResultMap::new()
            .with("positions", vec![[0.0, 1.0, 2.0], [n, f64::NAN, -0.0]])
            .with("guess", vec![1.0, 2.0, n])
            .with("report", report)
            .with("trace", 7_u64))
    }
}

#[derive(Fingerprint)]
struct Inner;

impl App for Inner {
    fn info(&self) -> AppInfo {
        AppInfo::new("cli.Inner", "1").parameter(Parameter::new("damping", 0.5_f64))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new())
    }
}

/// An app whose texts a terminal would obey.
#[derive(Fingerprint)]
struct Evil;

impl App for Evil {
    fn info(&self) -> AppInfo {
        AppInfo::new("cli.evil\u{1b}[2J", "\u{202e}1\r")
            .result(ResultSpec::new::<String>("a\u{7}b\nc"))
    }
    fn run(&self, _: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
        Ok(ResultMap::new().with("a\u{7}b\nc", "\u{1b}]0;title\u{7}\u{9b}2J".to_owned()))
    }
}

/// The keys of what is in the sample.
pub struct Keys {
    pub small: Key,
    pub large: Key,
    pub solver: Key,
    pub invalid: Key,
    pub evil: Key,
}

pub fn engine(path: &Path) -> Sde {
    let store = DirStore::open(path).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    builder.save(SavePolicy::EveryResult).build().unwrap()
}

/// A store with all there may be in one.
pub fn sample(path: &Path) -> Keys {
    let sde = engine(path);
    let run = |inputs: &Inputs| sde.request(&energy, inputs).run().unwrap().key;
    let small = run(&inputs! { basis: "STO-3G".to_owned(), charge: 0_i32 });
    let large = run(&inputs! { basis: "6-31G*".to_owned(), charge: 0_i32 });
    let invalid = run(&inputs! { basis: "wrong".to_owned(), charge: 9_i32 });
    let again = inputs! { basis: "6-31G*".to_owned(), charge: 0_i32 };
    sde.request(&energy, &again)
        .policy(Policy::Refresh)
        .run()
        .unwrap();
    // A use: it is had from the store.
    sde.clear_app("cli.energy").unwrap();
    run(&again);
    sde.invalidate(&invalid, "bad memory in node 7").unwrap();
    let solver = Instance::new(Solver {
        order: 4,
        version: "2.0",
    });
    let solver = solver.set("tolerance", 1e-9).unwrap();
    let solver = sde.request(&solver, &inputs! {}).run().unwrap().key;
    iterate.call(&sde, 0.25).unwrap_err();
    let evil = sde.request(&Evil, &inputs! {}).run().unwrap().key;
    sde.checkpoint().unwrap();
    sde.finish().unwrap();
    Keys {
        small,
        large,
        solver,
        invalid,
        evil,
    }
}

/// What the program did.
pub struct Done {
    pub out: String,
    pub err: String,
    pub status: i32,
}

impl Done {
    /// Of a command that finds all well.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!(self.status, 0, "{}{}", self.out, self.err);
        assert_eq!(self.err, "");
        self.out
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Makes an executable copy, by another process: a file that this one has open for writing can't be executed where
/// another test forks meanwhile.
pub fn install(from: impl AsRef<OsStr>, to: &Path) {
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(from).arg(to);
    assert!(install.status().unwrap().success());
}

pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sde"));
    command.env_remove("COLUMNS").stdin(Stdio::null());
    command
}

pub fn sde<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Done {
    done(program().args(arguments).output().unwrap())
}

/// The same on a terminal of so many columns.
pub fn sde_wide<S: AsRef<OsStr>>(columns: usize, arguments: impl IntoIterator<Item = S>) -> Done {
    let columns = columns.to_string();
    done(
        program()
            .env("COLUMNS", columns)
            .args(arguments)
            .output()
            .unwrap(),
    )
}

/// What became of it.
pub fn done(output: Output) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let done = Done {
        out: text(output.stdout),
        err: text(output.stderr),
        status: output.status.code().expect("it was not killed"),
    };
    assert!(!done.err.contains("panicked"), "{}", done.err);
    done
}

/// A store with all there may be in one, made once for each test.
pub struct Sample {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub keys: Keys,
}

impl Sample {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        Self {
            keys: sample(&path),
            path,
            _folder: folder,
        }
    }

    /// A command on this store.
    pub fn run(&self, command: &str, arguments: &[&str]) -> Done {
        sde(self.line(command, arguments))
    }

    pub fn line(&self, command: &str, arguments: &[&str]) -> Vec<String> {
        let path = self.path.to_str().unwrap();
        let all = [command, path].into_iter().chain(arguments.iter().copied());
        all.map(str::to_owned).collect()
    }

    /// The files of the store, sorted.
    pub fn files(&self) -> Vec<PathBuf> {
        files(&self.path)
    }
}

pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// Copies a store, to damage the copy.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(std::fs::copy(&path, &to).unwrap()),
        }
    }
}
