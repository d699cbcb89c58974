//! The two ends of a copy between machines: one sends what the other lacks.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sde::Key;
use sde::record::RunId;
use sde_archives::{Class, Copyable, DirStore, StoreOptions};
use serde::{Deserialize, Serialize};

use super::summary::CopySummary;
use super::wire::{Receiver, Sender};
use crate::failure::Failure;

/// The identity of an entry in both stores.
type Id = (Key, RunId, Class);

/// An entry that the sender would copy.
struct Candidate {
    id: Id,
    results: Vec<Arc<str>>,
    bytes: u64,
    is_damaged: bool,
}

/// The counts that only the sender knows.
#[derive(Default, Serialize, Deserialize)]
struct LeftOut {
    damaged: usize,
    missing: usize,
}

/// Which part of a message comes next.
const MORE: u8 = 1;
const LAST: u8 = 0;

/// Sends the wanted entries that the other side lacks, as stores of about `portion` bytes. The receiver keeps each that has
/// arrived whole.
pub fn send(
    from: &DirStore,
    wanted: impl Fn(&Copyable<'_>) -> bool,
    portion: u64,
    (input, output): (impl Read, impl Write),
    other: &str,
) -> Result<CopySummary, Failure> {
    let (mut answers, mut to) = begin(input, output, other)?;
    let mut all = from.copyable(|one| wanted(one).then(|| Candidate::of(one)))?;
    let mut left = LeftOut::default();
    all.retain(|one| {
        left.damaged += usize::from(one.is_damaged);
        !one.is_damaged
    });
    all.iter()
        .try_for_each(|one| one.send(&mut to))
        .and_then(|()| to.bytes(&[LAST]))?;
    to.end()?;
    let mut lacking = Vec::new();
    for one in all {
        if answers.bytes::<1>()? == [LAST] {
            lacking.push((one.id, one.bytes));
        }
    }
    answers.end()?;
    // One store goes in any case: invalidations are not asked for.
    let mut rest = lacking.into_iter().peekable();
    loop {
        let (mut ids, mut bytes) = (HashSet::new(), 0_u64);
        while let Some((id, length)) = rest.next_if(|_| bytes < portion) {
            ids.insert(id);
            bytes = bytes.saturating_add(length);
        }
        send_portion(from, &ids, &mut left, &mut to)?;
        if rest.peek().is_none() {
            break;
        }
    }
    to.bytes(&[LAST])?;
    to.object(&left)?;
    to.end()?;
    let summary = answers.object()?;
    answers.end()?;
    Ok(summary)
}

/// Sends these entries as a store.
fn send_portion(
    from: &DirStore,
    ids: &HashSet<Id>,
    left: &mut LeftOut,
    to: &mut Sender<impl Write>,
) -> Result<(), Failure> {
    let folder = temporary()?;
    let path = folder.path().join("store");
    let store = StoreOptions::new().without_environment();
    let store = store.without_uses().open(&path)?;
    let copied = store.copy_from(from, |one| ids.contains(&id_of(one)))?;
    left.damaged += copied.damaged;
    left.missing += copied.missing;
    drop(store);
    to.bytes(&[MORE])?;
    send_store(&path, to)
}

/// Receives entries into the store, which is made when the first portion has arrived.
pub fn receive(
    into: &Path,
    open: impl Fn(&Path) -> Result<DirStore, Failure>,
    (input, output): (impl Read, impl Write),
    other: &str,
) -> Result<CopySummary, Failure> {
    let (mut from, mut to) = begin(input, output, other)?;
    let mut store = match is_nothing(into) {
        true => None,
        false => Some(open(into)?),
    };
    if let Some(store) = &store {
        store.refresh()?;
    }
    let mut summary = CopySummary::default();
    let mut has = Vec::new();
    while from.bytes::<1>()? == [MORE] {
        let ((key, run, class), results) = Candidate::receive(&mut from)?;
        let is_here = |store: &DirStore| store.has_copy(&key, run, class, &results);
        has.push(match store.as_ref().is_some_and(is_here) {
            true => MORE,
            false => LAST,
        });
    }
    from.end()?;
    summary.there = has.iter().filter(|has| **has == MORE).count();
    to.bytes(&has)?;
    to.end()?;
    while from.bytes::<1>()? == [MORE] {
        let folder = temporary()?;
        let path = folder.path().join("store");
        receive_store(&path, &mut from)?;
        // The folder is this user's alone, whatever the modes in it.
        let arrived = StoreOptions::new().read_only().trust_others().open(&path)?;
        let to = match &store {
            Some(store) => store,
            None => store.insert(open(into)?),
        };
        summary.add(to.copy_from(&arrived, |_| true)?);
    }
    let left: LeftOut = from.object()?;
    from.end()?;
    summary.damaged += left.damaged;
    summary.missing = left.missing;
    to.object(&summary)?;
    to.end()?;
    Ok(summary)
}

/// Exchanges hellos. If the other side has ended already, its missing hello says more than the failed send.
fn begin<R: Read, W: Write>(
    input: R,
    output: W,
    other: &str,
) -> Result<(Receiver<R>, Sender<W>), Failure> {
    let to = Sender::begin(output);
    let from = Receiver::begin(input, other)?;
    Ok((from, to?))
}

/// Whether there is nothing at a path, or an empty folder.
fn is_nothing(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut names) => names.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn id_of(one: &Copyable<'_>) -> Id {
    (*one.key, one.run, one.class)
}

impl Candidate {
    fn of(one: &Copyable<'_>) -> Self {
        Self {
            id: id_of(one),
            results: one.results.to_vec(),
            bytes: one.bytes,
            is_damaged: one.is_damaged,
        }
    }

    fn send(&self, to: &mut Sender<impl Write>) -> Result<(), Failure> {
        let (key, run, class) = &self.id;
        to.bytes(&[MORE])?;
        to.bytes(key.as_bytes())?;
        to.number(run.process)?;
        to.number(run.number)?;
        to.text(class.name())?;
        to.number(self.results.len() as u64)?;
        self.results.iter().try_for_each(|name| to.text(name))
    }

    fn receive(from: &mut Receiver<impl Read>) -> Result<(Id, Vec<Arc<str>>), Failure> {
        let key = Key::from_bytes(from.bytes()?);
        let run = RunId::new(from.number()?, from.number()?);
        let class = from.text()?;
        let class = Class::ALL.into_iter().find(|one| one.name() == class);
        let class =
            class.ok_or_else(|| Failure::told("an entry of an unknown class is offered"))?;
        let results = (0..from.number()?).map(|_| from.text().map(Arc::from));
        Ok(((key, run, class), results.collect::<Result<_, _>>()?))
    }
}

/// The folder of a store on its way, which goes away with it.
fn temporary() -> Result<tempfile::TempDir, Failure> {
    let made = tempfile::Builder::new().prefix("sde-copy-").tempdir();
    made.map_err(|error| {
        Failure::told(format!(
            "no folder can be made in {} for what is copied: {error}; name another by TMPDIR",
            std::env::temp_dir().display()
        ))
    })
}

/// The files of a store that are sent. Other files belong to processes that use the store.
fn files(store: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = vec![PathBuf::from("FORMAT")];
    for folder in ["entries", "manifests"] {
        let path = store.join(folder);
        let failed = |error| not_done("listing", &path, &error);
        let names = match fs::read_dir(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            names => names.map_err(failed)?,
        };
        for name in names {
            files.push(Path::new(folder).join(name.map_err(failed)?.file_name()));
        }
    }
    Ok(files)
}

fn send_store(store: &Path, to: &mut Sender<impl Write>) -> Result<(), Failure> {
    for name in files(store)? {
        let path = store.join(&name);
        let failed = |error| not_done("reading", &path, &error);
        let file = File::open(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        to.bytes(&[MORE])?;
        to.text(&name.to_string_lossy())?;
        to.file(length, file, failed)?;
    }
    to.bytes(&[LAST])?;
    to.end()
}

/// Whatever the other side calls its files, they are made in this folder.
fn receive_store(store: &Path, from: &mut Receiver<impl Read>) -> Result<(), Failure> {
    while from.bytes::<1>()? == [MORE] {
        let name = PathBuf::from(from.text()?);
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !name.components().all(is_plain) || name.components().count() > 2 {
            return Err(Failure::told(format!(
                "{} is no file of a store, and nothing of what arrived was used",
                name.display()
            )));
        }
        let path = store.join(&name);
        let failed = |error| not_done("writing", &path, &error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut file = File::create_new(&path).map_err(failed)?;
        from.file(&mut file, failed)?;
    }
    from.end()
}

fn not_done(doing: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::told(format!("{doing} {} failed: {error}", path.display()))
}
