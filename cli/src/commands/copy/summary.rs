//! The summary of a copy.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use sde_archives::Copied;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::output::Output;
use crate::{text, time};

/// The counts of a copy, summed over its parts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CopySummary {
    pub entries: usize,
    pub there: usize,
    pub damaged: usize,
    pub missing: usize,
    /// The keys that TO had computed too.
    pub conflicts: usize,
    pub users: BTreeSet<String>,
    pub hosts: BTreeSet<String>,
    pub first_made_at: Option<Timestamp>,
    pub last_made_at: Option<Timestamp>,
}

impl CopySummary {
    /// Adds the counts of a part.
    pub fn add(&mut self, part: Copied) {
        let owned = |names: BTreeSet<std::sync::Arc<str>>| {
            let names = names.into_iter();
            names.map(|name| name.to_string()).collect::<Vec<_>>()
        };
        self.entries += part.entries;
        self.there += part.there;
        self.damaged += part.damaged;
        self.missing += part.missing;
        self.conflicts += part.conflicts;
        self.users.extend(owned(part.users));
        self.hosts.extend(owned(part.hosts));
        if let Some((first, last)) = part.made {
            let (first, last) = (time::of(first), time::of(last));
            let known = self.first_made_at.unwrap_or(first);
            self.first_made_at = Some(known.min(first));
            self.last_made_at = self.last_made_at.max(Some(last));
        }
    }

    /// Prints it as text or JSON.
    pub fn print(&self, from: &Path, out: &mut Output) -> Result<(), Failure> {
        out.found |= self.damaged + self.missing > 0;
        if out.json {
            return out.object(self);
        }
        let entries = |count| text::count(count, "entry", "entries");
        let made = self.made();
        let copied = entries(self.entries);
        out.wrapped(
            format!("{copied} copied{made}; {} there already", self.there),
            2,
        )?;
        if self.conflicts > 0 {
            let keys = text::count(self.conflicts, "key", "keys");
            out.wrapped(
                format!(
                    "of {keys} both stores had a computation of their own: the later one counts"
                ),
                2,
            )?;
        }
        if self.damaged > 0 {
            let left_out = entries(self.damaged);
            out.line(format!(
                "{left_out} left out: `sde verify` says what is damaged"
            ))?;
        }
        if self.missing > 0 {
            let files = text::count(self.missing, "output file", "output files");
            out.line(format!(
                "what {files} held is missing in {}",
                from.display()
            ))?;
        }
        Ok(())
    }

    /// `, made by anna on node17, 2026-11-20 to 2026-11-24`, as far as it is known.
    fn made(&self) -> String {
        let names = |of: &BTreeSet<String>| some(of).unwrap_or_default();
        let (users, hosts) = (names(&self.users), names(&self.hosts));
        let day = |at: Timestamp| at.strftime("%F").to_string();
        let days = match (self.first_made_at.map(day), self.last_made_at.map(day)) {
            (Some(first), Some(last)) if first == last => first,
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => return String::new(),
        };
        let by = match users.is_empty() {
            true => users,
            false => format!(" by {users}"),
        };
        let on = match hosts.is_empty() {
            true => hosts,
            false => format!(" on {hosts}"),
        };
        format!(", made{by}{on}, {days}")
    }
}

/// The first few of some names; `None` if there are none.
fn some(names: &BTreeSet<String>) -> Option<String> {
    const SHOWN: usize = 5;
    let first: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match (first.is_empty(), names.len().saturating_sub(SHOWN)) {
        (true, _) => None,
        (false, 0) => Some(first.join(", ")),
        (false, more) => Some(format!("{} and {more} more", first.join(", "))),
    }
}
