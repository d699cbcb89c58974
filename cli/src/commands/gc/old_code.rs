//! The codes that are not current, by the rule of `sde table`, and on which nothing of current code rests.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::SystemTime;

use sde::Key;
use sde_archives::inspect::{Computations, Listed, Standing};

use crate::failure::Failure;
use crate::{store, time};
use sde_table::codes::{Codes, Counts};
use sde_table::failed;
use sde_table::listing::prefix;
use sde_table::runs::Run;
use sde_table::singles::{EntryRole, Singles};

/// The key of an entry, when it was made, and the number of its code.
type Of = (Key, SystemTime, u32);

/// The codes of entries that are not current.
pub fn old_codes(path: &Path, codes: &mut Codes) -> Result<HashSet<u32>, Failure> {
    let (store, old) = store::read(path, |store| {
        let mut seen = HashSet::new();
        // The beginnings of the keys that runs called, each with the code of the caller.
        let mut calls: HashSet<(u32, u64)> = HashSet::new();
        let wanted = |listed: &Listed| listed.is_entry() || listed.is_mark() || listed.is_uses();
        let singles = Singles::of(
            store,
            Some(&wanted),
            |(key, ..): &Of| *key,
            |entry| {
                let run = Run::of(entry);
                let code = codes.of(&entry.record, run.is_some());
                seen.insert(code);
                let called = entry.record.calls.iter();
                calls.extend(called.map(|(_, key)| (code, prefix(key))));
                EntryRole::Single((entry.record.key, entry.record.made_at, code))
            },
        );
        let is_called: HashSet<u64> = calls.iter().map(|(_, called)| *called).collect();
        let mut of_keys: HashMap<u64, u32> = HashMap::new();
        for (key, made, code) in &singles.all {
            let used = singles.found.uses(key);
            let used = used.map(|uses| time::of_nanos(uses.last));
            codes.note(*code, time::of(*made), used, Counts::Result);
            if is_called.contains(&prefix(key)) {
                of_keys.insert(prefix(key), *code);
            }
        }
        let others = singles.others;
        drop(singles.all);
        let mut found = Computations::default();
        let is_other = |listed: &Listed| {
            listed.is_uses() || wanted(listed) && others.contains(&listed.prefix())
        };
        store.walk(Some(&is_other), |_, item| {
            found.add(item, |entry| {
                let code = codes.of(&entry.record, Run::of(&entry).is_some());
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
        of_keys.extend(current.map(|one| (prefix(&one.key), one.of.0)));
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
