//! Sending what ranks have saved on their nodes to a writer on another node.
//!
//! A file on a node's own disk can be read there only. So one rank of each node without a writer
//! sends the bytes of all journals of that node, in pieces, and the writer puts them into files of
//! his own. Frames are bound to their segment and their place in it, not to a path: what arrives is
//! verified like what was never sent.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sde::{ArchiveError, GroupError, ProcessGroup};

use super::journal::{Handed, Journal};
use super::parts::Parts;
use super::share::cut_off;
use crate::format::directory::UNFINISHED;
use crate::format::id::UniqueId;
use crate::vfs::{Vfs, VfsFile};

/// How much one node sends at once.
pub(super) const PIECE: u64 = 8 << 20;

/// What a node without a writer sends: by the rank that sends it.
pub(super) type Far = Vec<(usize, Vec<Journal>)>;

/// What is to be sent to each writer. All ranks find the same.
pub(super) fn far(parts: &Parts, handed: &[Handed]) -> Vec<Far> {
    let mut far: Vec<Far> = vec![Vec::new(); parts.writers()];
    let mut places = HashMap::new();
    for (rank, handed) in handed.iter().enumerate() {
        let journals = &handed.own;
        if journals.is_empty() || parts.is_near(rank) {
            continue;
        }
        let to = &mut far[parts.writer(rank)];
        let leader = parts.leader(rank);
        let at = *places.entry(leader).or_insert_with(|| {
            to.push((leader, Vec::new()));
            to.len() - 1
        });
        to[at].1.extend(journals);
    }
    // The order of ranks in the group that they are sent in.
    far.iter_mut()
        .for_each(|far| far.sort_by_key(|(leader, _)| *leader));
    far
}

/// How many bytes a node sends.
fn total(journals: &[Journal]) -> u64 {
    journals.iter().map(|journal| journal.length).sum()
}

/// How many pieces it takes.
pub(super) fn rounds(far: &Far) -> u64 {
    let pieces = far
        .iter()
        .map(|(_, journals)| total(journals).div_ceil(PIECE));
    pieces.max().unwrap_or(0)
}

/// How long a piece is.
fn piece(journals: &[Journal], round: u64) -> u64 {
    let left = total(journals).saturating_sub(round.saturating_mul(PIECE));
    left.min(PIECE)
}

/// What one rank sends.
pub(super) struct Outgoing<'a> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    journals: &'a [Journal],
    /// What went wrong; zeros are sent from then on.
    pub(super) error: Option<ArchiveError>,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(vfs: &'a dyn Vfs, dir: &'a Path, journals: &'a [Journal]) -> Self {
        Self {
            vfs,
            dir,
            journals,
            error: None,
        }
    }

    pub(super) fn piece(&mut self, round: u64) -> Vec<u8> {
        let length = piece(self.journals, round);
        let mut bytes = Vec::with_capacity(length as usize);
        let (mut from, mut to) = (round * PIECE, round * PIECE + length);
        for journal in self.journals {
            let end = to.min(journal.length);
            if from < end && self.error.is_none() {
                self.error = self.read(journal, from..end, &mut bytes).err();
            }
            from = from.saturating_sub(journal.length);
            to = to.saturating_sub(journal.length);
        }
        bytes.resize(length as usize, 0);
        bytes
    }

    fn read(
        &self,
        journal: &Journal,
        range: std::ops::Range<u64>,
        to: &mut Vec<u8>,
    ) -> Result<(), ArchiveError> {
        let path = journal.path(self.dir);
        let file = self.vfs.open(&path);
        let read = file
            .and_then(|file| crate::vfs::read_bytes(&*file, range.start, range.end - range.start));
        to.extend(read.map_err(|error| ArchiveError::io("reading", path, error))?);
        Ok(())
    }
}

/// What a writer gets from one rank.
struct Arriving {
    journals: VecDeque<Journal>,
    /// The file of the first of them, and how much of it is still to come.
    open: Option<(Box<dyn VfsFile>, u64)>,
}

/// What a writer has got from all of them. The files are removed with it.
pub(super) struct Brought<'a> {
    arriving: Vec<Arriving>,
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    files: HashMap<UniqueId, PathBuf>,
    pub(super) error: Option<ArchiveError>,
}

impl<'a> Brought<'a> {
    pub(super) fn new(vfs: &'a dyn Vfs, dir: &'a Path, far: &Far) -> Self {
        let arriving = far.iter().map(|(_, journals)| Arriving {
            journals: journals.iter().copied().collect(),
            open: None,
        });
        Self {
            arriving: arriving.collect(),
            vfs,
            dir,
            files: HashMap::new(),
            error: None,
        }
    }

    /// Where the bytes of a journal are.
    pub(super) fn path(&self, id: &UniqueId) -> Option<&Path> {
        self.files.get(id).map(PathBuf::as_path)
    }

    /// Takes a piece from the sender of this number.
    pub(super) fn take(&mut self, from: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.error.is_none() {
            match self.take_some(from, bytes) {
                Ok(rest) => bytes = rest,
                Err(error) => self.error = Some(error),
            }
        }
    }

    /// Takes what belongs to one journal, and gives the rest.
    fn take_some<'b>(&mut self, from: usize, bytes: &'b [u8]) -> Result<&'b [u8], ArchiveError> {
        let arriving = &mut self.arriving[from];
        let more = || ArchiveError::Other("a rank sent more than it had to".to_owned());
        let journal = *arriving.journals.front().ok_or_else(more)?;
        // A name of its own each time: a crash may have left one.
        let path = self.files.entry(journal.id).or_insert_with(|| {
            let name = format!("{}.{}{UNFINISHED}", journal.id, UniqueId::new().short());
            self.dir.join(name)
        });
        let failed = |error| ArchiveError::io("writing to", &*path, error);
        let (mut file, left) = match arriving.open.take() {
            Some(open) => open,
            None => (self.vfs.create(path).map_err(failed)?, journal.length),
        };
        let here = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (here, rest) = bytes.split_at(here);
        let at = journal.length - left;
        file.write_at(&[here], at).map_err(failed)?;
        match left - here.len() as u64 {
            0 => drop(arriving.journals.pop_front()),
            left => arriving.open = Some((file, left)),
        }
        Ok(rest)
    }

    /// Forgets what a sender could not read.
    pub(super) fn give_up(&mut self, journals: &[Journal]) {
        for journal in journals {
            if let Some(path) = self.files.remove(&journal.id) {
                // One that is left is taken for unfinished, and removed some day.
                let _ = self.vfs.remove(&path);
            }
        }
    }
}

impl Drop for Brought<'_> {
    fn drop(&mut self) {
        for path in self.files.values() {
            // One that is left is taken for unfinished, and removed some day.
            let _ = self.vfs.remove(path);
        }
    }
}

/// Sends what ranks on other nodes have to their writers; gives what this rank has got, if it is
/// such a writer. Collective.
///
/// # Errors
/// If a rank has left. What can't be read or written is an error in what is brought, or in the
/// other that is given.
pub(super) fn bring<'a>(
    group: &dyn ProcessGroup,
    parts: &Parts,
    far: &[Far],
    (vfs, dir): (&'a dyn Vfs, &'a Path),
) -> Result<(Option<Brought<'a>>, Option<ArchiveError>), ArchiveError> {
    let rank = group.rank();
    if far.iter().all(Vec::is_empty) {
        return Ok((None, None));
    }
    let writer = parts.writer(rank);
    let own = &far[writer];
    let is_writer = parts.own(rank).is_some() && !own.is_empty();
    let journals = own.iter().find(|(leader, _)| *leader == rank);
    let journals = journals.map(|(_, journals)| &journals[..]);
    let color = (is_writer || journals.is_some()).then_some(writer as u32);
    // The writer comes first, then the others in their order.
    let key = if is_writer { -1 } else { rank as i64 };
    let team = group.split(color, key).map_err(|error| cut_off(&error))?;
    let Some(team) = team else {
        return Ok((None, None));
    };
    let mut brought = is_writer.then(|| Brought::new(vfs, dir, own));
    let mut outgoing = Outgoing::new(vfs, dir, journals.unwrap_or_default());
    for round in 0..rounds(own) {
        let pieces = exchange(&*team, own, round, outgoing.piece(round));
        let pieces = pieces.map_err(|error| cut_off(&error))?;
        if let Some(brought) = &mut brought {
            let of_senders = pieces.iter().enumerate();
            of_senders.for_each(|(from, piece)| brought.take(from, piece));
        }
    }
    let sent = [u8::from(outgoing.error.is_none())];
    let sent = team.meet(&sent, Duration::MAX, &mut |_| {});
    let sent = sent.map_err(|error| cut_off(&error))?;
    if let Some(brought) = &mut brought {
        let unsent = own.iter().zip(&sent[1..]).filter(|(_, sent)| **sent == 0);
        unsent.for_each(|((_, journals), _)| brought.give_up(journals));
    }
    Ok((brought, outgoing.error))
}

/// One piece of each sender, for the writer.
fn exchange(
    team: &dyn ProcessGroup,
    far: &Far,
    round: u64,
    piece_of_own: Vec<u8>,
) -> Result<Vec<Vec<u8>>, GroupError> {
    if team.rank() > 0 {
        team.exchange(&[(0, &piece_of_own)], &mut [])?;
        return Ok(Vec::new());
    }
    let lengths = far.iter().map(|(_, journals)| piece(journals, round));
    let mut pieces: Vec<_> = lengths.map(|length| vec![0; length as usize]).collect();
    let places = pieces.iter_mut().map(|piece| &mut piece[..]);
    let mut receive: Vec<_> = (1..).zip(places).collect();
    team.exchange(&[], &mut receive)?;
    Ok(pieces)
}
