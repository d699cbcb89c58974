//! What files of runs hold, as the store has it.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use sde::key::Digest;
use sde_archives::inspect::{Item, Listed, Snapshot, StoredValue};

use super::FileContent;

/// Where the contents of some files are in a store.
#[derive(Debug)]
pub struct Contents(HashMap<Digest, Vec<StoredValue>>);

impl Contents {
    /// Finds these. It reads the index of each segment, and no content.
    pub fn of(store: &mut Snapshot, digests: impl Iterator<Item = Digest>) -> Self {
        let wanted: HashSet<Digest> = digests.collect();
        let prefixes: HashSet<u64> = wanted.iter().map(prefix).collect();
        let is_wanted = |listed: &Listed| prefixes.contains(&listed.prefix());
        let mut found: HashMap<Digest, Vec<StoredValue>> = HashMap::new();
        store.walk(Some(&is_wanted), |_, item| match item {
            Item::Content(content) if wanted.contains(&content.digest) => {
                found
                    .entry(content.digest)
                    .or_default()
                    .push(content.payload);
            }
            _ => {}
        });
        Self(found)
    }

    /// The first whole copy.
    pub fn whole(&self, digest: &Digest) -> Option<&StoredValue> {
        let is_whole = |payload: &&StoredValue| matches!(payload.check(|_| ()), Ok(None));
        self.0.get(digest)?.iter().find(is_whole)
    }

    /// A reader of what a file holds.
    ///
    /// # Errors
    ///
    /// The store has no whole copy of it.
    pub fn open(&self, file: FileContent) -> io::Result<Box<dyn Read>> {
        if file.length == 0 {
            return Ok(Box::new(io::empty()));
        }
        let lost = || io::Error::other("what it wrote is missing from the store, or damaged");
        let copy = self.whole(&file.digest).ok_or_else(lost)?;
        Ok(Box::new(copy.reader().map_err(io::Error::other)?))
    }

    /// The last bytes of a file, at most so many, as text.
    pub fn tail(&self, file: FileContent, most: u64) -> io::Result<String> {
        let mut from = self.open(file)?;
        let before = file.length.saturating_sub(most);
        io::copy(&mut (&mut from).take(before), &mut io::sink())?;
        let mut bytes = Vec::new();
        from.take(most).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn prefix(digest: &Digest) -> u64 {
    let first = digest.as_bytes().first_chunk();
    first.map_or(0, |first| u64::from_be_bytes(*first))
}
