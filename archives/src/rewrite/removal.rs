//! The keys that a user takes out of a store.
//!
//! A key goes with all its frames, and with its failures: if only a part went, an earlier computation would count again.
//! So a key stays whole while a segment that is not among the sources has a frame of it.

use std::collections::HashSet;
use std::sync::Arc;

use sde::Key;
use sde::archiver::ArchiveError;
use sde::record::failure_key;

use super::facts::Facts;
use super::selected::Selected;
use super::source::{FrameReader, Member, Source, by_key};
use crate::catalog::Catalog;
use crate::format::frame::FrameKind;
use crate::format::id::UniqueId;
use crate::format::index_block::prefix;
use crate::format::precedence::Precedence;
use crate::read::frame::{EntryFrame, scratch_body};
use crate::resolve::computations;

/// A key that may be taken out.
pub(crate) struct Candidate<'a> {
    pub(crate) key: Key,
    pub(crate) app: Arc<str>,
    /// The frames of the computation that counts; none if there are only states of a run.
    pub(crate) frames: &'a [EntryFrame<'a>],
    /// Whether it stays even if it is wanted.
    pub(crate) stays: bool,
}

/// Decides whether a key is taken out.
pub(crate) type Wanting<'a> = &'a dyn Fn(&Candidate<'_>) -> bool;

/// The frames of the keys that are taken out.
pub(crate) struct RemovedFrames {
    frames: Selected,
    /// The number of wanted keys that go.
    pub(crate) keys: usize,
    /// The number of wanted keys that stay.
    pub(crate) left: usize,
}

impl RemovedFrames {
    /// Chooses the keys that are taken out of these sources. Reads all entries. Keys of which all is in `written`, segments
    /// that are being written, are counted only.
    pub(crate) fn of(
        catalog: &Catalog,
        sources: &[Source],
        wanted: Wanting<'_>,
        written: &[Source],
    ) -> Result<Self, ArchiveError> {
        let ids = sources.iter().map(|one| one.segment.id).collect();
        let mut scan = RemovalScan::new(catalog, sources, &ids, wanted);
        by_key(sources, |members| scan.group(members))?;
        let mut removed = scan.removed;
        let mut scan = RemovalScan::new(catalog, written, &ids, wanted);
        by_key(written, |members| {
            let prefix = members.first().map_or(0, |one| one.row.prefix);
            match scan.lies_in(prefix, |id| ids.contains(id)) {
                true => Ok(()),
                false => scan.group(members),
            }
        })?;
        removed.left += scan.removed.left;
        Ok(removed)
    }

    /// Whether a frame goes, and with it all of its key.
    pub(super) fn has(&self, one: &Member) -> bool {
        self.frames.keeps(one.source, one.number)
    }

    /// Whether a source has frames that go.
    pub(crate) fn is_in(&self, source: usize) -> bool {
        self.frames.keeps_any(source)
    }
}

struct RemovalScan<'a> {
    catalog: &'a Catalog,
    sources: &'a [Source],
    /// The segments of which the frames may go.
    ids: &'a HashSet<UniqueId>,
    frames: FrameReader<'a>,
    wanted: Wanting<'a>,
    removed: RemovedFrames,
}

impl<'a> RemovalScan<'a> {
    fn new(
        catalog: &'a Catalog,
        sources: &'a [Source],
        ids: &'a HashSet<UniqueId>,
        wanted: Wanting<'a>,
    ) -> Self {
        Self {
            catalog,
            sources,
            ids,
            frames: FrameReader::new(catalog, sources),
            wanted,
            removed: RemovedFrames {
                frames: Selected::new(sources),
                keys: 0,
                left: 0,
            },
        }
    }

    fn group(&mut self, members: &[Member]) -> Result<(), ArchiveError> {
        let members = members.iter().filter(|one| is_value(one.row.kind()));
        let members: Vec<Member> = members.copied().collect();
        let (mut entries, mut states) = (Vec::new(), Vec::new());
        for one in &members {
            let Some(frame) = self.frames.frame(one)? else {
                continue;
            };
            if one.row.kind() == Some(FrameKind::Scratch) {
                let state = scratch_body(&frame).ok();
                states.extend(state.map(|(body, _)| (frame.header.key, body.app)));
            } else if let Some(entry) = self.frames.entry(one.source, frame)?
                && let Some(facts) = Facts::of(one, &entry, members.len() > 1)?
            {
                entries.push((facts.precedence, entry));
            }
        }
        while let Some(key) = first_key(&entries, &states) {
            let of_key = entries.extract_if(.., |(_, entry)| entry.frame.header.key == key);
            let counting = computations(of_key).into_iter().next();
            let frames = counting.map_or_else(Vec::new, |one| one.frames);
            let app = frames
                .first()
                .map(|entry| Arc::clone(&entry.provenance.app));
            let mut of_key = states
                .extract_if(.., |(of, _)| *of == key)
                .map(|(_, app)| app);
            let of_state = of_key.next();
            drop(of_key);
            let Some(app) = app.or(of_state) else { break };
            self.decide(&members, key, app, &frames);
        }
        Ok(())
    }

    fn decide(&mut self, members: &[Member], key: Key, app: Arc<str>, frames: &[EntryFrame<'a>]) {
        let failure = prefix(&failure_key(&key));
        let candidate = Candidate {
            stays: [prefix(&key), failure]
                .into_iter()
                .any(|prefix| self.lies_in(prefix, |id| !self.ids.contains(id))),
            key,
            app,
            frames,
        };
        if !(self.wanted)(&candidate) {
            return;
        }
        if candidate.stays {
            self.removed.left += 1;
            return;
        }
        self.removed.keys += 1;
        members.iter().for_each(|one| self.removed.frames.keep(one));
        for (source, of) in self.sources.iter().enumerate() {
            for (number, row) in of.rows.find_numbered(failure) {
                if is_value(row.kind()) {
                    self.removed.frames.keep(&Member {
                        source,
                        number,
                        row,
                    });
                }
            }
        }
    }

    /// Whether a segment that is such has frames of a key.
    fn lies_in(&self, prefix: u64, is_such: impl Fn(&UniqueId) -> bool) -> bool {
        let lies_in = self.catalog.known(|index| index.segments_of(prefix));
        lies_in.iter().any(is_such)
    }
}

fn is_value(kind: Option<FrameKind>) -> bool {
    matches!(kind, Some(FrameKind::Entry | FrameKind::Scratch))
}

/// The key of any of these frames: a prefix may be that of several.
fn first_key(entries: &[(Precedence, EntryFrame<'_>)], states: &[(Key, Arc<str>)]) -> Option<Key> {
    let of_entry = entries.first().map(|(_, entry)| entry.frame.header.key);
    of_entry.or_else(|| states.first().map(|(key, _)| *key))
}
