//! The journal of each process: how often it computed, loaded and waited, and the time that took and saved.

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use sde::archiver::Journal;

use crate::cbor::metadata::to_bytes;
use crate::format::about::{About, JournalBody, journal_key};
use crate::format::class::{Class, Part};
use crate::format::frame::{FrameHeader, FrameKind};
use crate::locks::lock;
use crate::store::DirStore;
use crate::writer::frame::{Body, NewFrame};

/// A running process rewrites its journal at this interval. If it is killed, activity since the last time is lost.
const PAUSE: Duration = Duration::from_secs(60);

/// The journal of this process.
#[derive(Default)]
pub(crate) struct ProcessJournal(Mutex<Journals>);

#[derive(Default)]
struct Journals {
    journal: Option<Journal>,
    written: Option<(Journal, SystemTime)>,
}

impl ProcessJournal {
    pub(crate) fn keep(&self, journal: Journal) {
        lock(&self.0).journal = Some(journal);
    }

    /// Marks the journal as not written, after an error.
    pub(crate) fn put_back(&self) {
        lock(&self.0).written = None;
    }

    /// Whether the last writing is long enough ago.
    pub(crate) fn is_old(&self, now: SystemTime) -> bool {
        let state = lock(&self.0);
        let age = |at: &SystemTime| now.duration_since(*at).unwrap_or_default();
        let written = state.written.as_ref();
        written.is_none_or(|(_, at)| age(at) >= PAUSE)
    }

    /// The journal, if it has changed since it was written.
    fn due(&self, now: SystemTime) -> Option<Journal> {
        let mut state = lock(&self.0);
        let is_due = match (&state.journal, &state.written) {
            (Some(journal), None) => !journal.apps.is_empty(),
            (Some(journal), Some((written, _))) => journal != written,
            (None, _) => false,
        };
        let journal = state.journal.clone().filter(|_| is_due)?;
        state.written = Some((journal.clone(), now));
        Some(journal)
    }
}

impl DirStore {
    /// The frame with this process's journal, if it is due.
    pub(crate) fn journal_frame(&self, now: SystemTime) -> Option<NewFrame> {
        let journal = self.0.journal.due(now)?;
        let key = journal_key(journal.process);
        let body = JournalBody {
            about: About::this(),
            journal,
            capacity: self.0.room.retention.allowed(),
        };
        // Encoding it can't fail.
        let body = to_bytes(&body).ok()?;
        let saved_at = self.0.catalog.clock.stamp();
        let header = FrameHeader::new(FrameKind::Journal, Class::Result, key, saved_at);
        NewFrame::new(Part::Entries, header, Body::Bytes(body)).ok()
    }
}
