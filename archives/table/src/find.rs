//! The entry of a key's prefix.

use sde::Key;
use sde::archiver::Mark;
use sde::record::Record;
use sde_archives::inspect::{
    Computation, Computations, Entry, EntryUses, Item, Listed, Resolved, Snapshot,
};
use serde::Serialize;

use crate::error::Error;

/// A computation, assembled from all its frames.
#[derive(Debug)]
pub struct Found {
    /// Its record and results.
    pub entry: Entry,
    /// Where its frames are.
    pub places: Vec<Location>,
    /// The mark that it must not be used, if any.
    pub mark: Option<Mark>,
    /// When it was used.
    pub uses: Option<EntryUses>,
}

/// The place of one of its frames.
#[derive(Debug, Serialize)]
pub struct Location {
    /// The file, within the store.
    pub file: String,
    /// The class of its results.
    pub class: &'static str,
    /// The byte where it begins.
    pub at: u64,
}

/// The largest value that is read to choose between frames.
const CHECKED: u64 = 16 << 20;

/// All computations of the only key with this prefix, or its failures if it has none; the one that counts comes first.
pub fn find(store: &mut Snapshot, prefix: &str) -> Result<Vec<Found>, Error> {
    let found = find_any(store, prefix)?;
    match found.is_empty() {
        true => Err(none(prefix)),
        false => Ok(found),
    }
}

/// The failure if nothing is found.
pub fn none(prefix: &str) -> Error {
    Error::told(format!(
        "no entry has a key that begins with {prefix}; `sde ls` shows those there are"
    ))
}

/// What [`find`] gives; nothing if no key begins so.
pub fn find_any(store: &mut Snapshot, prefix: &str) -> Result<Vec<Found>, Error> {
    let prefix = prefix.to_ascii_lowercase();
    let is_hex = prefix.chars().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !(1..=64).contains(&prefix.len()) {
        return Err(Error::told(format!(
            "\"{prefix}\" is not a key, nor the beginning of one; `sde ls` shows them"
        )));
    }
    let first = prefix.get(..16).unwrap_or(&prefix);
    let begins = |key: u64| format!("{key:016x}").starts_with(first);
    let is_of_key = |listed: &Listed| listed.is_entry() || listed.is_mark();
    let wanted = |listed: &Listed| listed.is_uses() || is_of_key(listed) && begins(listed.prefix());
    // The key of a failure is shown nowhere, so that nobody means it.
    let mut found = search(store, &wanted, &begins, &|record: &Record| {
        record.failure.is_none() && record.key.to_string().starts_with(&prefix)
    });
    if found.all.is_empty() {
        // A failure is under another key than its run.
        found = search(store, &is_of_key, &|_| false, &|record: &Record| {
            let failure = record.failure.as_ref();
            failure.is_some_and(|failure| failure.of.to_string().starts_with(&prefix))
        });
    }
    store.gone |= found.gone;
    let all = std::mem::take(&mut found.all);
    let of = |one: &Computation<Vec<(Entry, Location)>>| {
        let record = one.of.first().map(|(entry, _)| &entry.record);
        let failure = record.and_then(|record| record.failure.as_ref());
        failure.map_or(one.key, |failure| failure.of)
    };
    let mut keys: Vec<Key> = all.iter().map(of).collect();
    keys.dedup();
    if keys.len() > 1 {
        return Err(several(&prefix, &keys));
    }
    let whole = all.into_iter().filter_map(|mut one| {
        if one.of.len() > 1 {
            for (part, _) in &mut one.of {
                store.gone |= part.check(CHECKED);
            }
        }
        let (mark, uses) = (found.mark(&one).cloned(), found.uses(&one.key));
        let mut parts = one.of.into_iter();
        let (mut entry, place) = parts.next()?;
        let mut places = vec![place];
        for (part, place) in parts {
            entry.fill(part);
            places.push(place);
        }
        Some(Found {
            entry,
            places,
            mark,
            uses,
        })
    });
    Ok(whole.collect())
}

/// The computations that fit, each with the places of its frames, and the uses of keys that begin so.
fn search(
    store: &mut Snapshot,
    wanted: &dyn Fn(&Listed) -> bool,
    begins: &dyn Fn(u64) -> bool,
    fits: &dyn Fn(&Record) -> bool,
) -> Resolved<Vec<(Entry, Location)>> {
    let mut found = Computations::default();
    store.walk(Some(wanted), |segment, mut item| {
        if let Item::Uses { uses, .. } = &mut item {
            uses.retain(|one| begins(one.prefix));
        }
        found.add(item, |entry| {
            let place = Location {
                file: segment.path().to_owned(),
                class: entry.class.name(),
                at: entry.place.start,
            };
            fits(&entry.record).then(|| vec![(entry, place)])
        });
    });
    found.resolve(Vec::append)
}

fn several(prefix: &str, keys: &[Key]) -> Error {
    let some: Vec<_> = keys.iter().take(5).map(Key::short).collect();
    Error::told(format!(
        "{} keys begin with {prefix}: {}{}; give more of it",
        keys.len(),
        some.join(", "),
        if keys.len() > 5 { ", …" } else { "" }
    ))
}
