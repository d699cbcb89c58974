//! Whether stored runs pass, by the rules last asked for of their apps.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use sde::Key;
use sde::record::RunId;
use sde_archives::inspect::{Computations, Decoded, Entry, Listed, Snapshot, Standing};
use sde_command::{Judged, Judgement, Rules, Stream, results};

use super::{Contents, Run, RunResults, text};
use crate::error::Error;
use crate::failed::{self, FailedLine};

/// The longest rules that are read.
const LONGEST: u64 = 1 << 20;

/// The rules that were last asked for of these apps, by app.
pub fn kept_rules<'a>(
    store: &mut Snapshot,
    apps: impl Iterator<Item = &'a str>,
) -> Result<HashMap<String, Rules>, Error> {
    let keys: BTreeMap<&str, _> = apps.map(|app| (app, sde_command::rules_key(app))).collect();
    let unknown = |error| Error::told(format!("the rules can't be looked for: {error}"));
    let keys = keys
        .into_values()
        .collect::<Result<Vec<_>, _>>()
        .map_err(unknown)?;
    let mut found = Computations::default();
    let wanted = |listed: &Listed| {
        let is_kept = || keys.iter().any(|key| listed.may_be_of(key));
        (listed.is_entry() || listed.is_mark()) && is_kept()
    };
    store.walk(Some(&wanted), |_, item| {
        found.add(item, |entry| rules_of(&entry));
    });
    let found = found.resolve(|_, _| {});
    store.gone |= found.gone;
    let mut rules = HashMap::new();
    for one in found.all {
        let ((app, kept), standing) = (one.of, one.standing);
        if standing == Standing::Current {
            let unread = |error| Error::told(format!("the rules of {app} can't be read: {error}"));
            let kept = kept.parse().map_err(unread)?;
            rules.insert(app, kept);
        }
    }
    Ok(rules)
}

/// The app whose rules an entry keeps, and these.
fn rules_of(entry: &Entry) -> Option<(String, String)> {
    if *entry.record.app != *results::RULES_APP {
        return None;
    }
    let app = entry
        .record
        .inputs
        .iter()
        .find(|input| input.name == "app")?;
    let mut payloads = entry
        .results
        .iter()
        .filter_map(|saved| saved.payload.as_ref());
    match payloads.next()?.value(LONGEST).ok()? {
        Decoded::Text(kept) => Some((text(app), kept)),
        _ => None,
    }
}

/// Judges a run.
pub fn judge(run: &RunResults, rules: &Rules, contents: &Contents) -> Result<Judgement, Error> {
    let judged = rules.judge(&Stored { run, contents });
    judged.map_err(|error| Error::told(format!("{} can't be judged: {error}", run.line)))
}

/// Notes which of these runs fail by the rules last asked for of their apps, and why; and which can't be judged.
pub fn judge_all(
    store: &mut Snapshot,
    runs: Vec<(&str, &mut RunResults, &mut Option<Box<FailedLine>>)>,
) -> Result<(), Error> {
    if runs.is_empty() {
        return Ok(());
    }
    let rules = kept_rules(store, runs.iter().map(|(app, ..)| *app))?;
    // Without rules the status decides alone.
    let plain = Rules::default();
    let with_rules = runs.iter().filter(|(app, ..)| rules.contains_key(*app));
    let contents = Contents::of(store, with_rules.flat_map(|(_, run, _)| run.digests()));
    for (app, run, fails) in runs {
        match judge(run, rules.get(app).unwrap_or(&plain), &contents) {
            Ok(judged) => *fails = failed(run, &judged).map(Box::new),
            Err(_) => run.is_not_judged = true,
        }
    }
    Ok(())
}

/// A stored run that fails by the rules last asked for of its app.
#[derive(Debug)]
pub struct Failing {
    pub key: Key,
    pub run: RunId,
    pub took: Duration,
    pub line: FailedLine,
}

/// The runs of these apps that count and fail by rules, which `sde ls --failed` lists. It reads what they wrote, if their
/// apps have rules. One that can't be judged is not among them.
pub fn failing(
    store: &mut Snapshot,
    is_of_app: impl Fn(&str) -> bool,
) -> Result<Vec<Failing>, Error> {
    let mut found = Computations::default();
    let wanted = |listed: &Listed| listed.is_entry() || listed.is_mark();
    store.walk(Some(&wanted), |_, item| {
        found.add(item, |entry| match Run::of(&entry) {
            Some(Run::Whole(run)) if is_of_app(&entry.record.app) => Some((entry.record, run)),
            _ => None,
        });
    });
    let found = found.resolve(|_, _| {});
    store.gone |= found.gone;
    let mut all = found.all;
    all.retain(|one| one.standing == Standing::Current);
    let runs = || all.iter().map(|one| (&*one.of.0.app, &one.of.1));
    let rules = kept_rules(store, runs().map(|(app, _)| app))?;
    let with_rules = runs().filter(|(app, _)| rules.contains_key(*app));
    let contents = Contents::of(store, with_rules.flat_map(|(_, run)| run.digests()));
    // Without rules the status decides alone.
    let plain = Rules::default();
    let failing = all.iter().filter_map(|one| {
        let (record, run) = &one.of;
        let judged = judge(run, rules.get(&*record.app).unwrap_or(&plain), &contents);
        Some(Failing {
            key: record.key,
            run: record.run,
            took: record.took,
            line: failed(run, &judged.ok()?)?,
        })
    });
    Ok(failing.collect())
}

/// The line of a run in a list of failures, if it fails by rules.
pub fn failed(run: &RunResults, judged: &Judgement) -> Option<FailedLine> {
    let whys: Vec<String> = judged.failures.iter().map(ToString::to_string).collect();
    (!whys.is_empty()).then(|| FailedLine {
        error: failed::first_line(&whys.join("; ")),
        host: Arc::clone(&run.host),
        job: Arc::clone(&run.job),
        lasts: failed::lasts(sde::Failure::Ordinary),
    })
}

#[derive(Debug)]
struct Stored<'a> {
    run: &'a RunResults,
    contents: &'a Contents,
}

impl Judged for Stored<'_> {
    fn status(&self) -> i32 {
        self.run.status
    }

    fn declared(&self) -> Vec<String> {
        self.run.declared.clone()
    }

    fn files(&self) -> Vec<String> {
        self.run.files.keys().cloned().collect()
    }

    fn open(&self, stream: Stream<'_>) -> io::Result<Box<dyn Read + '_>> {
        let file = match stream {
            Stream::Output => Some(self.run.stdout),
            Stream::Error => Some(self.run.stderr),
            Stream::File(name) => self.run.files.get(name).copied(),
        };
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.contents.open(file.ok_or_else(missing)?)
    }
}
