//! The code of runs, and which code of an app is current.
//!
//! The code of a run has parts: that of its app, of the apps in its slots, and of all that it called, each with a name.
//! Runs that called something only at some points have more parts than others. So each name by itself has a current
//! code: the one that was active last. A run is of current code if all its parts are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;
use sde::key::Digest;
use sde::record::{AppSetup, Callee, CodeId, Provenance, Record, ValueSummary};

/// The codes of all runs of a list, each code once.
#[derive(Debug, Default)]
pub struct Codes {
    all: Vec<Code>,
    known: HashMap<Box<[u32]>, u32>,
    parts: Interned<(u32, Digest)>,
    /// Each name has its app before it, so that apps are apart.
    names: Interned<Box<str>>,
    /// The code of the entry that was asked for last: most entries share what they were made with.
    last: Option<(Arc<Provenance>, bool, Option<Digest>, u32)>,
}

/// A code.
#[derive(Debug)]
pub struct Code {
    /// The name of the app.
    pub app: Arc<str>,
    parts: Box<[u32]>,
    /// The version, where that is all, or else the first digits of a digest of all parts.
    pub label: Rc<str>,
    /// The users who made runs of it, as they say, and where.
    pub makers: BTreeSet<(Arc<str>, Arc<str>)>,
    /// The code of the app itself.
    pub of_app: CodeId,
    /// Of its runs that have results.
    active: Option<Active>,
    /// Of its runs that failed.
    failed: Option<Active>,
    /// Of all its runs, those that are invalid or replaced too.
    all: Option<Active>,
}

/// What a run has that counts.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// A result.
    Result,
    /// A failure that stands.
    Failure,
    /// Nothing: it is invalid, or replaced.
    Nothing,
}

impl Code {
    /// The part of the app itself.
    fn own(&self) -> Option<u32> {
        self.parts.first().copied()
    }
}

/// When a code was active: runs were made, or recorded as used.
#[derive(Debug, Clone, Copy)]
struct Active {
    first: Timestamp,
    last: Timestamp,
}

impl Active {
    fn add(to: &mut Option<Self>, more: Self) {
        let known = to.get_or_insert(more);
        known.first = known.first.min(more.first);
        known.last = known.last.max(more.last);
    }
}

/// The current part of each name, and when it was active last.
type Current = HashMap<u32, (Timestamp, u32)>;

/// The digits of a code that are shown.
const DIGITS: usize = 8;

impl Codes {
    /// The number of the code of a run. Of a command only the program and its script are code: libraries are what it was
    /// given.
    pub fn of(&mut self, record: &Record, is_command: bool) -> u32 {
        let made = &record.provenance;
        let script = script(record).filter(|_| is_command);
        let script = script.map(|script| script.digest);
        if let Some((last, of_command, of_script, code)) = &self.last
            && Arc::ptr_eq(last, made)
            && (*of_command, *of_script) == (is_command, script)
        {
            return *code;
        }
        let named = named_parts(made, is_command, script);
        let label = label(made, &named);
        let app = &made.app;
        let parts = named.into_iter().map(|(name, part)| {
            let name = self.names.number(format!("{app}\0{name}").into());
            self.parts.number((name, part))
        });
        let parts: Box<[u32]> = parts.collect();
        let code = match self.known.get(&parts) {
            Some(code) => *code,
            None => self.add(made, parts, label),
        };
        let maker = (Arc::clone(&made.user), Arc::clone(&made.host));
        self.all[code as usize].makers.insert(maker);
        self.last = Some((Arc::clone(made), is_command, script, code));
        code
    }

    fn add(&mut self, made: &Provenance, parts: Box<[u32]>, label: Rc<str>) -> u32 {
        let code = self.all.len() as u32;
        self.known.insert(parts.clone(), code);
        self.all.push(Code {
            app: Arc::clone(&made.app),
            parts,
            label,
            makers: BTreeSet::new(),
            of_app: made.code.clone(),
            active: None,
            failed: None,
            all: None,
        });
        code
    }

    /// The code of a number that [`of`](Self::of) gave.
    pub fn get(&self, code: u32) -> &Code {
        &self.all[code as usize]
    }

    /// Notes a run of this code. Failures decide only where an app has no results; runs of which nothing counts never.
    pub fn note(&mut self, code: u32, made: Timestamp, used: Option<Timestamp>, counts: Counts) {
        let code = &mut self.all[code as usize];
        let last = used.map_or(made, |used| used.max(made));
        let active = Active { first: made, last };
        Active::add(&mut code.all, active);
        match counts {
            Counts::Result => Active::add(&mut code.active, active),
            Counts::Failure => Active::add(&mut code.failed, active),
            Counts::Nothing => {}
        }
    }

    /// The codes that are current, by number.
    pub fn current(&self) -> HashSet<u32> {
        let all = |_: &Code| true;
        let mut current = Current::new();
        self.decide(&all, &mut current);
        self.agreeing(&current)
    }

    /// The codes that are current, and those that were active after what is current in their place: their runs may be
    /// all that there is of the newest code, and have failed or be invalid.
    pub fn current_or_newer(&self) -> HashSet<u32> {
        let mut current = Current::new();
        self.decide(&|_| true, &mut current);
        let is_newer = |code: &Code, last: Timestamp| code.all.is_some_and(|all| all.last > last);
        self.fitting(&current, is_newer)
    }

    /// The codes that go with those of this label or version; a part that they leave open is as it was last. If there are
    /// none of them, or several of one app, their labels are the error.
    pub fn labelled(&self, wanted: &str) -> Result<HashSet<u32>, BTreeSet<Rc<str>>> {
        let is_exact = |code: &Code| {
            *code.label == *wanted
                || matches!(&code.of_app, CodeId::Version(version) if version == wanted)
        };
        let has_exact = self.all.iter().any(is_exact);
        let is_it = |code: &Code| match has_exact {
            true => is_exact(code),
            false => code.label.starts_with(wanted),
        };
        let found: Vec<&Code> = self.all.iter().filter(|code| is_it(code)).collect();
        let apps: HashSet<&str> = found.iter().map(|code| &*code.app).collect();
        let own: HashSet<u32> = found.iter().filter_map(|code| code.own()).collect();
        if found.is_empty() || own.len() > apps.len() {
            return Err(found.iter().map(|code| Rc::clone(&code.label)).collect());
        }
        let is_of_app = |code: &Code| code.own().is_some_and(|part| own.contains(&part));
        let mut current = Current::new();
        self.decide(&is_it, &mut current);
        let agreeing = self.agreeing(&current);
        let agrees = |code: &Code| agreeing.contains(&self.known[&code.parts]);
        self.decide(&|code| is_of_app(code) && agrees(code), &mut current);
        let mut all = self.agreeing(&current);
        all.retain(|code| is_of_app(self.get(*code)));
        Ok(all)
    }

    /// Decides the current part of each name that has none, among some codes.
    fn decide(&self, among: &dyn Fn(&Code) -> bool, current: &mut Current) {
        let with_results: HashSet<&str> = self
            .all
            .iter()
            .filter(|code| code.active.is_some())
            .map(|code| &*code.app)
            .collect();
        let mut latest: HashMap<u32, (Timestamp, Digest, u32)> = HashMap::new();
        for code in self.all.iter().filter(|code| among(code)) {
            let active = match with_results.contains(&*code.app) {
                true => &code.active,
                false => &code.failed,
            };
            let Some(active) = active else { continue };
            for part in &code.parts {
                let (name, digest) = *self.parts.get(*part);
                let found = (active.last, digest, *part);
                let known = latest.entry(name).or_insert(found);
                *known = (*known).max(found);
            }
        }
        for (name, (last, _, part)) in latest {
            current.entry(name).or_insert((last, part));
        }
    }

    /// The codes of which no part is another than the current one of its name.
    fn agreeing(&self, current: &Current) -> HashSet<u32> {
        self.fitting(current, |_, _| false)
    }

    /// The codes of which each part is the current one of its name, or may be another by when that was active last.
    fn fitting(
        &self,
        current: &Current,
        may_differ: impl Fn(&Code, Timestamp) -> bool,
    ) -> HashSet<u32> {
        let fits = |code: &Code, part: &u32| {
            let (name, _) = self.parts.get(*part);
            let current = current.get(name);
            current.is_none_or(|(last, current)| current == part || may_differ(code, *last))
        };
        let all = self.all.iter().zip(0..);
        let fitting = all.filter(|(code, _)| code.parts.iter().all(|part| fits(code, part)));
        fitting.map(|(_, number)| number).collect()
    }

    /// The other codes that were active after these had begun, the latest first; their runs may have failed or be invalid.
    pub fn active_since(&self, shown: &HashSet<u32>) -> Vec<(&Code, Timestamp)> {
        let all = self.all.iter().zip(0..);
        let active = all.filter_map(|(code, number)| Some((number, code, code.all.as_ref()?)));
        let active: Vec<_> = active.collect();
        let mut begun: HashMap<&str, Timestamp> = HashMap::new();
        for (number, code, active) in &active {
            if shown.contains(number) {
                let known = begun.entry(&code.app).or_insert(active.first);
                *known = active.first.min(*known);
            }
        }
        let since = active.into_iter().filter(|(number, code, active)| {
            let begun = begun.get(&*code.app);
            !shown.contains(number) && begun.is_some_and(|begun| active.last > *begun)
        });
        let mut since: Vec<_> = since.map(|(_, code, active)| (code, active.last)).collect();
        since.sort_by_key(|(_, last)| Reverse(*last));
        since
    }
}

/// The script that a command gives to an interpreter: the input by which its app is named.
pub fn script(record: &Record) -> Option<&ValueSummary> {
    let is_script = |input: &&ValueSummary| {
        let file = input.name.strip_prefix("./").map(Path::new);
        let name = file.and_then(Path::file_name);
        name.is_some_and(|name| name == &*record.app)
    };
    record.inputs.iter().find(is_script)
}

/// The parts of a code by name, that of the app itself first.
fn named_parts(
    made: &Provenance,
    is_command: bool,
    script: Option<Digest>,
) -> Vec<(String, Digest)> {
    let own = match (is_command, made.setup.source) {
        // With helpers, which are libraries.
        (true, Some(program)) => CodeId::Source(program),
        _ => made.code.clone(),
    };
    let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut own = code_bytes(&own);
    own.extend(script.iter().flat_map(|script| script.as_bytes()));
    found.insert(String::new(), own);
    in_slots("", &made.setup, &mut found);
    for callee in &made.dependencies {
        let (name, bytes) = match callee {
            Callee::Code {
                app,
                code,
                defaults,
            } => {
                let mut bytes = code_bytes(code);
                bytes.extend(defaults.iter().flat_map(|defaults| defaults.as_bytes()));
                (format!("app {app}"), bytes)
            }
            Callee::Named { name, id } => (format!("name {name}"), id.as_bytes().to_vec()),
            Callee::Absent { name } => (format!("name {name}"), Vec::new()),
            other => ("other".to_owned(), format!("{other:?}").into_bytes()),
        };
        // One run may call an app of several versions.
        let all = found.entry(name).or_default();
        all.extend((bytes.len() as u64).to_le_bytes());
        all.extend(bytes);
    }
    let found = found.into_iter();
    found
        .map(|(name, bytes)| (name, Digest::from_bytes(*blake3::hash(&bytes).as_bytes())))
        .collect()
}

/// Another app in a slot is another setting; another code of the same app is another code.
fn in_slots(before: &str, setup: &AppSetup, found: &mut BTreeMap<String, Vec<u8>>) {
    for slot in &setup.slots {
        let path = format!("{before}.{}", slot.slot);
        found.insert(format!("slot {path} {}", slot.app), code_bytes(&slot.code));
        in_slots(&path, &slot.setup, found);
    }
}

fn code_bytes(code: &CodeId) -> Vec<u8> {
    match code {
        CodeId::Version(version) => [b"version ", version.as_bytes()].concat(),
        CodeId::Source(digest) => [b"source ", &digest.as_bytes()[..]].concat(),
        other => other.to_string().into_bytes(),
    }
}

fn label(made: &Provenance, named: &[(String, Digest)]) -> Rc<str> {
    if let ([_], CodeId::Version(version)) = (named, &made.code) {
        return (&**version).into();
    }
    let mut hasher = blake3::Hasher::new();
    for (name, part) in named {
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..DIGITS].into()
}

/// Values with small numbers.
#[derive(Debug)]
struct Interned<T> {
    all: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    fn number(&mut self, value: T) -> u32 {
        let number = self.all.len() as u32;
        let known = self.numbers.entry(value.clone()).or_insert(number);
        if *known == number {
            self.all.push(value);
        }
        *known
    }

    fn get(&self, number: u32) -> &T {
        &self.all[number as usize]
    }
}
