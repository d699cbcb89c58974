//! A run of a command: how it is judged, what it wrote, and the end of what it printed.

use std::collections::HashMap;

use sde::Data;
use sde_archives::inspect::{Entry, Snapshot};
use sde_command::{Judgement, Rules};
use serde_json::{Value as Json, json};

use super::{INDENT, list};
use crate::failure::Failure;
use crate::output::Output;
use crate::text;
use sde_table::runs::{self, Contents, Run, RunResults};

/// How much of each stream is shown.
const SHOWN: u64 = 2_000;

/// How many undeclared files are named.
const NAMED: usize = 100;

pub struct ShownRun {
    run: RunResults,
    judged: Judgement,
    /// The ends of its standard output and error.
    printed: [String; 2],
}

impl ShownRun {
    /// `None` for an entry that is no such run.
    pub fn of(store: &mut Snapshot, entry: &Entry) -> Result<Option<Self>, Failure> {
        let Some(Run::Whole(run)) = Run::of(entry) else {
            return Ok(None);
        };
        let mut rules: HashMap<String, Rules> =
            runs::kept_rules(store, std::iter::once(&*entry.record.app))?;
        let rules = rules.remove(&*entry.record.app).unwrap_or_default();
        let contents = Contents::of(store, run.digests());
        // Of a damaged one the rest is shown.
        let printed = [run.stdout, run.stderr].map(|file| {
            let tail = contents.tail(file, SHOWN);
            tail.unwrap_or_else(|error| format!("({error})"))
        });
        let judged = runs::judge(&run, &rules, &contents)?;
        Ok(Some(Self {
            run,
            judged,
            printed,
        }))
    }

    pub fn print(&self, out: &mut Output) -> Result<(), Failure> {
        let mut field =
            |name: &str, value: &str| out.wrapped(format!("{name:<INDENT$}{value}"), INDENT);
        field("command", &self.run.line)?;
        field("status", &self.run.status.to_string())?;
        if !self.run.attempts.is_empty() {
            let before = self.run.attempts.join("; ");
            let count = self.run.attempts.len() + 1;
            field("attempts", &format!("{count}; before it: {before}"))?;
        }
        if self.run.is_resumed {
            field("resumed", "it went on from what an attempt before it left")?;
        }
        if self.judged.failures.is_empty() {
            field("judged", "passes, by the rules last asked for")?;
        }
        for failure in &self.judged.failures {
            field("judged", &format!("fails: {failure}"))?;
        }
        if let Some(traced) = &self.run.traced {
            let how = match (traced.cut(), traced.is_clean()) {
                (Some(why), _) => format!("not as a whole: {why}"),
                (None, true) => "all that it read was declared".to_owned(),
                (None, false) => "it read what nobody declared".to_owned(),
            };
            field("traced", &how)?;
        }
        let values = self.judged.values.iter();
        let values = values.map(|(name, value)| (&**name, shown(value)));
        list("values", 0, values, out)?;
        if let Some(traced) = &self.run.traced {
            let used = traced.undeclared();
            let more = used.len().saturating_sub(NAMED) as u64 + traced.more();
            let used = used.iter().take(NAMED);
            let used = used.map(|one| (one.used.words(), one.path.clone()));
            let more = (more > 0).then(|| ("and", format!("{more} more")));
            list("not declared", 0, used.chain(more), out)?;
        }
        let files = self.run.files.iter();
        let files = files.map(|(name, file)| (&**name, text::size(file.length)));
        list("outputs", 0, files, out)?;
        let held = [self.run.stdout, self.run.stderr];
        for (title, (tail, held)) in ["standard output", "standard error"]
            .into_iter()
            .zip(self.printed.iter().zip(held))
        {
            if held.length == 0 {
                continue;
            }
            let size = text::size(held.length);
            let part = match held.length > SHOWN {
                true => format!("{title}, {size}, the last {SHOWN} bytes"),
                false => format!("{title}, {size}"),
            };
            out.line(part)?;
            tail.lines()
                .try_for_each(|line| out.wrapped(format!("  {line}"), 4))?;
        }
        Ok(())
    }

    pub fn json(&self) -> Json {
        let files = self.run.files.iter();
        let files = files.map(|(name, file)| json!({ "name": name, "bytes": file.length }));
        let failures = self.judged.failures.iter();
        let failures = failures.map(|one| json!({ "rule": one.rule, "why": one.why }));
        let values = self.judged.values.iter();
        let values: serde_json::Map<String, Json> = values
            .map(|(name, value)| (name.clone(), as_json(value)))
            .collect();
        let traced = self.run.traced.as_ref().map(|traced| {
            let used = traced.undeclared().iter();
            let used = used.map(|one| json!({ "used": one.used.words(), "path": one.path }));
            json!({
                "cut": traced.cut(),
                "undeclared": used.collect::<Vec<_>>(),
                "more": traced.more(),
            })
        });
        json!({
            "traced": traced,
            "command": self.run.line,
            "status": self.run.status,
            "attempts": self.run.attempts.len() + 1,
            "failed_attempts": self.run.attempts,
            "resumed": self.run.is_resumed,
            "failures": failures.collect::<Vec<_>>(),
            "values": values,
            "outputs": files.collect::<Vec<_>>(),
            "stdout_end": self.printed[0],
            "stderr_end": self.printed[1],
        })
    }
}

fn shown(value: &Data) -> String {
    match value {
        Data::Int(number) => number.to_string(),
        Data::Float(number) => format!("{number:?}"),
        Data::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

/// As in tables.
fn as_json(value: &Data) -> Json {
    match value {
        Data::Int(number) => json!(number),
        Data::Float(number) => crate::json::number(format!("{number:?}")),
        other => json!(shown(other)),
    }
}
