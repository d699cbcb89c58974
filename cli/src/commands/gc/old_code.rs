//! The codes that are not current, by the rule of `sde table`, and on which nothing of current code rests.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sde_archives::inspect::{Computations, Listed, Standing};

use crate::codes::{Codes, Counts};
use crate::failed;
use crate::failure::Failure;
use crate::listing::prefix;
use crate::runs::Run;
use crate::{store, time};

/// The codes of entries that are not current.
pub fn old_codes(path: &Path, codes: &mut Codes) -> Result<HashSet<u32>, Failure> {
    let (store, old) = store::read(path, |store| {
        let mut seen = HashSet::new();
        // The beginnings of the keys that runs called, each with the code of the caller.
        let mut calls: HashSet<(u32, u64)> = HashSet::new();
        let mut found = Computations::default();
        let wanted = |listed: &Listed| listed.is_entry() || listed.is_mark() || listed.is_uses();
        store.walk(Some(&wanted), |_, item| {
            found.add(item, |entry| {
                let code = codes.of(&entry.record, Run::of(&entry).is_some());
                seen.insert(code);
                let called = entry.record.calls.iter();
                calls.extend(called.map(|(_, key)| (code, prefix(key))));
                let failure = entry.record.failure.as_ref();
                let made = time::of(entry.record.made_at);
                Some((code, made, failure.map(|failure| failure.of)))
            });
        });
        let found = found.resolve(|_, _| {});
        store.gone |= found.gone;
        let failures = failed::standing(&found.all, |(.., of)| *of);
        for one in &found.all {
            let (code, made, failed) = one.of;
            let counts = match (one.standing, failed) {
                (Standing::Current, None) => Counts::Result,
                (Standing::Current, Some(_)) if failures.contains(&one.key) => Counts::Failure,
                _ => Counts::Nothing,
            };
            let uses = found.uses(&one.key);
            let uses = uses.filter(|_| matches!(counts, Counts::Result));
            let used = uses.map(|uses| time::of_nanos(uses.last));
            codes.note(code, made, used, counts);
        }
        let mut stays = codes.current_or_newer();
        let current = found
            .all
            .iter()
            .filter(|one| one.standing == Standing::Current);
        let of_keys: HashMap<u64, u32> = current.map(|one| (prefix(&one.key), one.of.0)).collect();
        let rests = calls.iter().filter_map(|(code, called)| {
            let of_called = of_keys.get(called)?;
            Some((*code, *of_called))
        });
        add_rests(&mut stays, &rests.collect());
        seen.retain(|code| !stays.contains(code));
        Ok(seen)
    })?;
    match store.is_whole() {
        true => Ok(old),
        // What can't be read may be of the code that counts.
        false => Err(Failure::told(
            "the store is damaged, so which code is old is not certain; `sde verify` says what is damaged",
        )),
    }
}

/// Adds the codes whose runs those of these codes called, directly or through others.
fn add_rests(stays: &mut HashSet<u32>, rests: &HashSet<(u32, u32)>) {
    let mut before = 0;
    while stays.len() > before {
        before = stays.len();
        let called = rests.iter().filter(|(code, _)| stays.contains(code));
        let called: Vec<u32> = called.map(|(_, called)| *called).collect();
        stays.extend(called);
    }
}
