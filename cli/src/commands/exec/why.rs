//! `sde exec --why`: what would be done, and why.

use std::path::Path;

use sde::{Key, Peek, Sde};
use sde_archives::StoreOptions;
use sde_command::Rules;

use super::{Exec, told, told_as};
use crate::failure::Failure;
use crate::find::find;
use crate::output::Output;
use crate::runs::{self, Contents, Run};
use crate::{store, time};

impl Exec {
    /// Runs nothing, and makes no store.
    pub fn explain(&self, out: &mut Output) -> Result<u8, Failure> {
        let command = self.command()?;
        let store = self.store().filter(|store| store.exists());
        let mut sde = Sde::builder();
        if let Some(store) = &store {
            sde = sde.store(StoreOptions::new().read_only().open(store)?);
        }
        let sde = sde.build().map_err(told)?;
        let (peek, rules) = match (command.peek(&sde), command.rules()) {
            (Ok(peek), Ok(rules)) => (peek, rules),
            (Err(error), _) | (_, Err(error)) => return Ok(told_as(&error)),
        };
        out.wrapped(peek.to_string(), 2)?;
        if let (Some(store), Peek::Load { key, .. }) = (store, peek) {
            out.wrapped(remembered(&store, key, &rules)?, 2)?;
        }
        out.flush()?;
        Ok(0)
    }
}

/// When a run was made, and how it is judged.
fn remembered(store: &Path, key: Key, rules: &Rules) -> Result<String, Failure> {
    let (_, text) = store::read(store, |store| {
        let entry = find(store, &key.to_string())?.swap_remove(0).entry;
        let made = time::text(time::of(entry.record.made_at));
        let mut text = format!("made {made} UTC");
        if let Some(Run::Whole(run)) = Run::of(&entry) {
            let contents = Contents::of(store, run.digests());
            let judged = runs::judge(&run, rules, &contents)?;
            text.push_str(match judged.failures.is_empty() {
                true => ", and passes: it would be given",
                false => ", and fails: if it failed so then, it would run again; else the call would fail",
            });
            for failure in judged.failures {
                text.push_str(&format!("; {} ({})", failure.why, failure.rule));
            }
        }
        Ok(text)
    })?;
    Ok(text)
}
