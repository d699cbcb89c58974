//! Which earlier run a new one is compared with, and what is said of it.
//!
//! Found by using it: after an edit, `explain` and `peek` named an entry of other inputs, or a sibling that the edited
//! app had made meanwhile, since these differ in one thing too and are later. What people ask is what changed since the
//! run that they know.

use sde::archiver::{Archiver, MemoryArchiver};
use sde::key::InputFile;
use sde::record::{Changed, Difference, Nearest, Record};
use sde::store::DirStore;
use sde::{
    App, AppError, AppInfo, Fingerprint, Handle, Inputs, Parameter, Peek, ResultMap, ResultSpec,
    SavePolicy, Sde, Tag, inputs,
};

/// An app that is edited.
#[derive(Fingerprint)]
struct Edited {
    #[fingerprint(skip)]
    version: &'static str,
}

impl App for Edited {
    fn info(&self) -> AppInfo {
        AppInfo::new("nearest.Edited", self.version)
            .parameter(Parameter::new("tolerance", 1e-6_f64))
            .result(ResultSpec::new::<i64>("y"))
            .result(ResultSpec::new::<i64>("state").tagged(Tag::Intermediate))
    }
    fn run(&self, _: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let x = *inputs.get::<i64>("x")?;
        Ok(ResultMap::new().with("y", x).with("state", x))
    }
}

/// What calls it.
#[derive(Fingerprint)]
struct Caller {
    #[fingerprint(skip)]
    version: &'static str,
}

impl App for Caller {
    fn info(&self) -> AppInfo {
        AppInfo::new("nearest.Caller", "1").result(ResultSpec::new::<i64>("y"))
    }
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        let version = self.version;
        let results = sde.run(&Edited { version }, inputs)?;
        Ok(ResultMap::new().with_value("y", results.get::<i64>("y")?))
    }
}

fn x(x: i64) -> Inputs {
    inputs! { x: x }
}

fn missed(peek: &Peek) -> (&str, Option<&Nearest>) {
    match peek {
        Peek::Miss { why, nearest, .. } => (why, nearest.as_ref()),
        other => unreachable!("{other:?} is no miss"),
    }
}

fn parts(differences: &[Difference]) -> Vec<&Changed> {
    differences
        .iter()
        .map(|difference| &difference.part)
        .collect()
}

#[test]
fn an_edited_app_is_compared_with_its_run_before_the_edit() {
    let sde = Sde::new();
    let [before, after] = ["1", "2"].map(|version| Edited { version });
    let wanted = sde.request(&before, &x(1)).run().unwrap().key;
    sde.run(&before, &x(2)).unwrap();
    // The sibling: one difference as well, and later.
    sde.run(&after, &x(2)).unwrap();
    let peek = sde.peek(&after, &x(1)).unwrap();
    let (_, nearest) = missed(&peek);
    let nearest = nearest.unwrap();
    assert_eq!(parts(&nearest.differences), [&Changed::Code]);
    assert_eq!(nearest.key, wanted);
}

/// More differs in the code than in what was given, and what was given decides.
#[test]
fn the_fewest_given_things_decide_before_the_fewest_differences() {
    let sde = Sde::new();
    let set = |version, tolerance: f64| {
        let app = sde::Instance::new(Edited { version });
        app.set("tolerance", tolerance).unwrap()
    };
    let wanted = sde.request(&set("1", 1e-3), &x(2)).run().unwrap().key;
    sde.run(&set("1", 1e-3), &x(1)).unwrap();
    sde.run(&set("2", 1e-6), &x(2)).unwrap();
    let peek = sde.peek(&set("2", 1e-3), &x(2)).unwrap();
    let (_, nearest) = missed(&peek);
    assert_eq!(nearest.unwrap().key, wanted);
}

/// It was compared with the latest run of another number, or of another file.
#[test]
fn an_edited_file_is_compared_with_what_it_held_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("water.xyz");
    let hold = |content: &str| std::fs::write(&path, content).unwrap();
    let given = |x: i64| inputs! { x: x }.with("molecule", InputFile::new(&path));
    let [before, after] = ["1", "2"].map(|version| Edited { version });
    let sde = Sde::new();
    let nearest = |sde: &Sde| {
        let peek = sde.peek(&after, &given(1)).unwrap();
        let (_, nearest) = missed(&peek);
        nearest.unwrap().clone()
    };
    hold("3 atoms");
    let wanted = sde.request(&before, &given(1)).run().unwrap().key;
    hold("4 atoms");
    // One difference, and later; the edit of the file comes with one of the code.
    sde.run(&after, &given(2)).unwrap();
    let found = nearest(&sde);
    assert_eq!(found.key, wanted);
    let [code, file] = &found.differences[..] else {
        unreachable!("{found}")
    };
    assert_eq!(code.part, Changed::Code);
    let text = format!("content of \"{}\"", path.display());
    assert_eq!(file.same.as_deref(), Some(&*text));
    let said = format!("input \"molecule\": {text} changed, digest ");
    assert!(file.to_string().starts_with(&said), "{file}");
    // A run of equal inputs under other code is nearer than later runs of other inputs.
    let wanted = sde.request(&before, &given(1)).run().unwrap().key;
    hold("5 atoms");
    sde.run(&after, &given(1)).unwrap();
    hold("4 atoms");
    assert_eq!(nearest(&sde).key, wanted);
}

/// The records that a caller leaves, made by two programs over one store.
fn record(store: &MemoryArchiver, version: &'static str, n: i64) -> Record {
    let sde = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    sde.run(&Edited { version }, &x(0)).unwrap();
    let key = sde.request(&Caller { version }, &x(n)).run().unwrap().key;
    sde.finish().unwrap();
    Record::clone(&store.find(&key).unwrap().unwrap().record)
}

#[test]
fn the_same_run_before_an_edit_beneath_is_nearest_of_all() {
    let store = MemoryArchiver::new();
    let before = record(&store, "1", 1);
    let sibling = record(&store, "2", 2);
    let after = record(&store, "2", 1);
    assert_eq!(before.key, after.key);
    for others in [[&before, &sibling], [&sibling, &before]] {
        let (nearest, differences) = after.nearest(others).unwrap();
        assert_eq!(nearest.run, before.run);
        let expected = Changed::Callee("nearest.Edited".to_owned());
        assert_eq!(parts(&differences), [&expected]);
    }
}

/// Memory lets go of the inputs that a store has: a run without any would differ from all others in each.
#[test]
fn a_run_of_which_only_the_store_has_the_inputs_is_compared_by_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = DirStore::open(folder.path()).unwrap();
    let builder = Sde::builder().store(store).save(SavePolicy::OnRequest);
    let (sde, app) = (builder.build().unwrap(), Edited { version: "1" });
    sde.run(&app, &x(1)).unwrap();
    sde.checkpoint().unwrap();
    let peek = sde.peek(&app, &x(2)).unwrap();
    let (_, nearest) = missed(&peek);
    let [difference] = &nearest.unwrap().differences[..] else {
        unreachable!("one input")
    };
    assert_eq!(difference.earlier.as_deref(), Some("1"));
}

/// It said that the run had not been made before, and that something of it was gone.
#[test]
fn what_is_stored_and_does_not_serve_was_run_before() {
    let store = MemoryArchiver::new();
    let program = |store| {
        Sde::builder()
            .store(store)
            .save(SavePolicy::OnRequest)
            .build()
            .unwrap()
    };
    let app = Edited { version: "1" };
    let sde = program(store.clone());
    sde.run(&app, &x(1)).unwrap();
    sde.finish().unwrap();
    let peek = program(store.archive_only()).peek(&app, &x(1)).unwrap();
    let (why, nearest) = missed(&peek);
    assert_eq!(
        why,
        "what is stored does not serve: result \"state\" is gone"
    );
    assert!(nearest.is_none());
}

/// It named the run of another input.
#[test]
fn what_is_gone_from_memory_is_compared_with_nothing() {
    let sde = Sde::new();
    let app = Edited { version: "1" };
    sde.run(&app, &x(1)).unwrap();
    sde.run(&app, &x(2)).unwrap();
    sde.clear_app("nearest.Edited").unwrap();
    let peek = sde.peek(&app, &x(1)).unwrap();
    let (why, nearest) = missed(&peek);
    assert_eq!(why, "result \"y\" is gone");
    assert!(nearest.is_none(), "{nearest:?}");
}

#[test]
fn a_peek_reads_as_a_sentence() {
    let store = MemoryArchiver::new();
    let sde = Sde::builder()
        .store(store.clone())
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let app = Edited { version: "1" };
    let outcome = sde.request(&app, &x(1)).run().unwrap();
    let (key, run) = (outcome.key.short(), outcome.made_by);
    let said = |sde: &Sde, n| sde.peek(&app, &x(n)).unwrap().to_string();
    let got = said(&sde, 1);
    assert_eq!(got, format!("[{key}] is in memory, made by {run}"));
    let other = sde.peek(&app, &x(2)).unwrap().key().short();
    assert_eq!(
        said(&sde, 2),
        format!(
            "[{other}] would be computed: it was not run before; most like [{key}] but for input \"x\": 1 -> 2"
        )
    );
    sde.checkpoint().unwrap();
    let later = Sde::builder()
        .store(store)
        .save(SavePolicy::OnRequest)
        .build()
        .unwrap();
    let got = said(&later, 1);
    assert_eq!(got, format!("[{key}] is in the store, made by {run}"));
}
