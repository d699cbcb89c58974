//! The facts of frames that decide whether they are kept.

use std::sync::Arc;

use sde::Key;
use sde::archiver::ArchiveError;

use super::source::Member;
use crate::format::class::Class;
use crate::format::precedence::Precedence;
use crate::read::frame::EntryFrame;
use crate::read::payload::StoredValue;

/// The facts of an entry that decide whether it is kept.
pub(crate) struct Facts {
    pub(super) member: Member,
    pub(crate) key: Key,
    pub(crate) app: Arc<str>,
    pub(crate) user: Arc<str>,
    pub(crate) host: Arc<str>,
    pub(crate) class: Class,
    /// The total length of the values in the frame.
    pub(super) values: u64,
    /// The length of the frame.
    pub(crate) bytes: u64,
    pub(crate) precedence: Precedence,
    /// The results whose values are in the frame and whole.
    pub(crate) sound: Vec<Arc<str>>,
    /// Whether a value in the frame is damaged.
    pub(crate) damaged: bool,
    pub(crate) contents: Vec<Key>,
    /// Whether it is the failure of a run, which has no values.
    pub(super) is_failure: bool,
}

/// The facts of a state of an unfinished run.
pub(super) struct ScratchState {
    pub(super) member: Member,
    pub(super) key: Key,
    pub(super) app: Arc<str>,
    pub(super) bytes: u64,
}

/// The entries and states whose keys have the same prefix, the latest saved first.
#[derive(Default)]
pub(super) struct Group {
    pub(super) entries: Vec<Facts>,
    pub(super) states: Vec<ScratchState>,
}

impl Facts {
    /// `None` if its values lie outside of the frame.
    pub(super) fn of(
        member: &Member,
        entry: &EntryFrame<'_>,
        checked: bool,
    ) -> Result<Option<Self>, ArchiveError> {
        let mut precedence = entry.precedence();
        let (mut sound, mut values, mut damaged) = (Vec::new(), 0_u64, false);
        let Ok(found) = entry.values() else {
            return Ok(None);
        };
        for (kind, value) in entry.provenance.results.iter().zip(found) {
            let Some(value) = value else { continue };
            values = values.saturating_add(value.length());
            match !checked || is_sound(&value)? {
                true => sound.push(Arc::clone(&kind.name)),
                false => {
                    damaged = true;
                    precedence.has_results &= !kind.tags.is_archived();
                }
            }
        }
        Ok(Some(Self {
            member: *member,
            key: entry.frame.header.key,
            app: Arc::clone(&entry.provenance.app),
            user: Arc::clone(&entry.provenance.user),
            host: Arc::clone(&entry.provenance.host),
            class: entry.frame.header.class(),
            values,
            bytes: entry.frame.bytes(),
            precedence,
            sound,
            damaged,
            contents: entry.body.contents().collect(),
            is_failure: entry.body.failure.is_some(),
        }))
    }
}

/// Whether a value is whole.
pub(super) fn is_sound(value: &StoredValue) -> Result<bool, ArchiveError> {
    Ok(value.check(|_| ())?.is_none())
}
