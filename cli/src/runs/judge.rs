//! Whether stored runs pass, by the rules last asked for of their apps.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::sync::Arc;

use sde_archives::inspect::{Computations, Decoded, Entry, Listed, Snapshot, Standing};
use sde_command::{Judged, Judgement, Rules, Stream, results};

use super::{Contents, RunResults, text};
use crate::failed::{self, FailedLine};
use crate::failure::Failure;

/// The longest rules that are read.
const LONGEST: u64 = 1 << 20;

/// The rules that were last asked for of these apps, by app.
pub fn kept_rules<'a>(
    store: &mut Snapshot,
    apps: impl Iterator<Item = &'a str>,
) -> Result<HashMap<String, Rules>, Failure> {
    let keys: BTreeMap<&str, _> = apps.map(|app| (app, sde_command::rules_key(app))).collect();
    let unknown = |error| Failure::told(format!("the rules can't be looked for: {error}"));
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
            let unread =
                |error| Failure::told(format!("the rules of {app} can't be read: {error}"));
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
pub fn judge(run: &RunResults, rules: &Rules, contents: &Contents) -> Result<Judgement, Failure> {
    let judged = rules.judge(&Stored { run, contents });
    judged.map_err(|error| Failure::told(format!("{} can't be judged: {error}", run.line)))
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
