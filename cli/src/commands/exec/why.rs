//! `sde exec --why`: what would be done, and why.

use std::path::Path;

use sde::{Key, Peek, Sde};
use sde_command::{Rules, Verdict};

use super::{Exec, told, told_as};
use crate::failure::Failure;
use crate::output::Output;
use crate::{store, time};
use sde_table::find::find;
use sde_table::runs::{self, Contents, Run};

impl Exec {
    /// Runs nothing, and makes no store.
    pub fn explain(&self, out: &mut Output) -> Result<u8, Failure> {
        let (command, _stdin) = self.command()?;
        let store = self.looked_in()?;
        let mut sde = Sde::builder();
        if let Some(store) = &store {
            sde = sde.store(store.clone());
        }
        let sde = sde.build().map_err(told)?;
        let (peek, rules) = match (command.peek(&sde), command.rules()) {
            (Ok(peek), Ok(rules)) => (peek, rules),
            (Err(error), _) | (_, Err(error)) => return Ok(told_as(&error)),
        };
        match (store, &peek) {
            (Some(store), Peek::Load { key, .. }) => {
                let dir = store.found_in(key)?.unwrap_or(store.path());
                let is_own = |own| std::path::absolute(own).is_ok_and(|own| own == dir);
                let name = match self.store().is_some_and(is_own) {
                    true => "the store".to_owned(),
                    false => format!("{}, which SDE_ALSO names", dir.display()),
                };
                out.wrapped(format!("[{}] is in {name}", key.short()), 2)?;
                out.wrapped(self.remembered(dir, *key, &rules)?, 2)?;
            }
            _ => out.wrapped(peek.to_string(), 2)?,
        }
        out.flush()?;
        Ok(0)
    }

    /// When a run was made, and what a call does with it.
    fn remembered(&self, store: &Path, key: Key, rules: &Rules) -> Result<String, Failure> {
        let (_, text) = store::read(store, |store| {
            let entry = find(store, &key.to_string())?.swap_remove(0).entry;
            let made = time::text(time::of(entry.record.made_at));
            let Some(Run::Whole(run)) = Run::of(&entry) else {
                return Ok(format!("made {made} UTC"));
            };
            let traced = run.traced.as_ref();
            let is_clean = traced.is_some_and(|traced| traced.without(&self.text).is_clean());
            let contents = Contents::of(store, run.digests());
            let judged = runs::judge(&run, rules, &contents)?;
            let then = runs::judge(&run, &runs::rules_then(&entry)?, &contents)?;
            let how = match judged.verdict(&then, self.keep_failures) {
                _ if self.again => "would run, since --again",
                _ if self.trace.as_deref() == Some("strict") && !is_clean => {
                    "would run again, since it was not traced, or read what nobody declared"
                }
                Verdict::Given => "passes: it would be given",
                Verdict::Again => "fails: it would run again, since it failed so when it was made",
                Verdict::Kept => "fails: it would be given as a failure",
                _ => {
                    "fails: the call would fail and nothing run, since that rule is new: --again runs it"
                }
            };
            let mut text = format!("made {made} UTC; {how}");
            for failure in judged.failures {
                text.push_str(&format!("; {failure}"));
            }
            Ok(text)
        })?;
        Ok(text)
    }
}
