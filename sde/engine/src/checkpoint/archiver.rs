//! The duties of a store.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::Journal;
use super::batch::{Batch, Mark, Saved, Selection};
use crate::entry::Record;
use crate::error::ArchiveError;
use crate::key::{Digest, Key};
use crate::ranks::group::ProcessGroup;
use crate::result_map::{Payload, Tags};

/// A durable home of entries.
///
/// All methods are called by many threads at once. Saved entries stay readable through an archiver until it is dropped.
///
/// A bad, torn, missing or foreign entry is `Ok(None)`, with a note in the log; an
/// error means that the store itself could not be asked.
///
/// A later release adds methods only with a default, so that an implementation of today still compiles.
///
/// A store has five methods to write, and a [`Payload`](crate::archiver::Payload) that reads its values:
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
///
/// use sde::archiver::{ArchiveError, Archiver, Batch, Codec, Mark, Payload, Saved, StoredEntry, StoredResult};
/// use sde::{ErasedValue, Key, Sde};
///
/// /// The results of each run as JSON.
/// #[derive(Clone, Default)]
/// struct Notes(Arc<Mutex<HashMap<Key, StoredEntry>>>);
///
/// struct Json(String);
///
/// impl Payload for Json {
///     fn decode(&self, codec: &Codec) -> Result<ErasedValue, ArchiveError> {
///         let value = codec.decode(&mut serde_json::Deserializer::from_str(&self.0));
///         value.map_err(|why| ArchiveError::other(why.to_string()))
///     }
///
///     fn may_be(&self, _: &Codec) -> bool {
///         true
///     }
///
///     fn stored_bytes(&self) -> u64 {
///         self.0.len() as u64
///     }
/// }
///
/// impl Archiver for Notes {
///     fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError> {
///         for entry in &batch.entries {
///             // A result without a payload is computed again.
///             let results = entry.results().map(|result| {
///                 let payload = result.value.and_then(|(value, codec)| {
///                     let json = codec.encode(value, serde_json::value::Serializer).ok()?;
///                     Some(Arc::new(Json(json.to_string())) as Arc<dyn Payload>)
///                 });
///                 StoredResult::new(result.name, result.tags, payload)
///             });
///             let record = entry.record().clone();
///             let stored = StoredEntry::new(record, results.collect());
///             self.0.lock().unwrap().insert(entry.record().key, stored);
///         }
///         Ok(Saved::default())
///     }
///
///     fn find(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
///         Ok(self.0.lock().unwrap().get(key).cloned())
///     }
///
///     fn find_scratch(&self, _: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
///         Ok(None)
///     }
///
///     fn marks(&self) -> Result<Vec<Mark>, ArchiveError> {
///         Ok(Vec::new())
///     }
///
///     fn describe(&self) -> String {
///         "notes in JSON".to_owned()
///     }
/// }
///
/// #[sde::app]
/// fn cube(x: f64) -> f64 {
///     x.powi(3)
/// }
///
/// let notes = Notes::default();
/// let first = Sde::builder().store(notes.clone()).build()?;
/// cube.call(&first, 2.0)?;
/// first.finish()?;
/// let second = Sde::builder().store(notes).build()?;
/// assert_eq!(*cube.call(&second, 2.0)?, 8.0);
/// assert_eq!(second.stats().total.computed, 0);
/// # Ok::<(), sde::Error>(())
/// ```
#[allow(
    unused_variables,
    reason = "a duty that a store need not do has its names for the documentation"
)]
pub trait Archiver: Send + Sync {
    /// Makes the batch durable, all of it or nothing that a later
    /// [`find`](Self::find) would take for whole. Of several entries that were saved
    /// under one key, in whatever order, `find` gives the one that was made last. A value that can't be turned into bytes is
    /// left out and told of, since it must not keep all others from being saved.
    ///
    /// # Errors
    /// If it can't be saved. What was saved before is still there.
    fn save(&self, batch: &Batch) -> Result<Saved, ArchiveError>;

    /// Turns the batch into bytes, and gives the function that writes them, once, as [`save`](Self::save) would.
    /// Writing calls no code of the values' types, so threads may wait for it, and it goes on beside the encoding of
    /// the next batch. To call the engine while writing is an error. A store that encodes as it writes gives `None`.
    ///
    /// # Errors
    /// If nothing can be saved.
    fn encode(&self, batch: &Batch) -> Result<Option<EncodedSave<'_>>, ArchiveError> {
        Ok(None)
    }

    /// Takes the journal of this process, to be written with one of the next [commits](Self::commit) in place of the
    /// one before. Nothing rests on it.
    fn keep_journal(&self, journal: Journal) {}

    /// Takes note that entries of these keys were used from memory since the last time. The engine tells it before each
    /// [commit](Self::commit). Says whether uses are counted: if not, they are not noted any more.
    fn note_uses(&self, keys: &[Key]) -> bool {
        false
    }

    /// Notes that all remembered entries of a selection have been saved: a generation that can be told from those
    /// before and after it. Does nothing if nothing was saved since the last.
    ///
    /// # Errors
    /// If that can't be noted. What was saved is there all the same.
    fn commit(&self, selection: Selection) -> Result<(), ArchiveError> {
        Ok(())
    }

    /// Whether checkpoints and archives are saved to one place, so that entries saved by one of them need not be saved
    /// once more by the other.
    fn is_one_store(&self) -> bool {
        false
    }

    /// Whether this store was opened by all ranks together and is committed by all of them. Then
    /// [`commit`](Self::commit) leaves the part that takes all ranks to [`commit_together`](Self::commit_together).
    fn commits_together(&self) -> bool {
        false
    }

    /// [Commits](Self::commit) what all ranks have saved, together. Collective: every rank of the program calls it,
    /// and does the same operations of the group in the same order, whatever fails.
    ///
    /// # Errors
    /// If something can't be noted, on this rank or, where that is known, on any. Saved entries are there all the same.
    fn commit_together(
        &self,
        selection: Selection,
        ranks: &dyn ProcessGroup,
    ) -> Result<(), ArchiveError> {
        self.commit(selection)
    }

    /// Called when the program, on one process, has saved all that it will: a store may put its entries in order. A
    /// failure is warned of.
    fn finish(&self) {}

    /// The entry of this key that counts: as a rule the newest. A store may prefer an older one that has results to a
    /// newer one that has none.
    ///
    /// # Errors
    /// If the store can't be read.
    fn find(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError>;

    /// Looks for an entry that is not to be used: to see whether the store has it, or which is to be replaced.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    fn look(&self, key: &Key) -> Result<Option<StoredEntry>, ArchiveError> {
        self.find(key)
    }

    /// The newest scratch state of this key, unless its run has finished since.
    ///
    /// # Errors
    /// If the store can't be read.
    fn find_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError>;

    /// The state that was saved before the newest. Ranks that are killed while they save go on from it, since not all
    /// have the newest; with a store that gives none they start afresh.
    ///
    /// # Errors
    /// If the store can't be read.
    fn find_earlier_scratch(&self, key: &Key) -> Result<Option<Arc<dyn Payload>>, ArchiveError> {
        Ok(None)
    }

    /// Announces to other processes that this one is about to compute a key of an app, unless another has announced it. Nothing
    /// rests on it: two processes that compute one key lose time only. The engine calls it for a run that it shares:
    /// before it computes, of an app known to take long, or once the run has gone on for 20 ms; and when another
    /// process has ended without a result. A store that no other process uses gives [`Announced::Unsupported`], as it
    /// is here.
    fn announce(&self, app: &str, key: &Key) -> Announced {
        Announced::Unsupported
    }

    /// Makes this process known as one that is at work, until the guard is dropped: people can then see it, and tell it
    /// to stop. The engine calls it for a sweep that goes on for 1 s or more. `None`, as it is here, where nobody can.
    fn attend(&self) -> Option<Box<dyn Send + Sync>> {
        None
    }

    /// Calls `told` when this process is told to stop, and with `None` when that is taken back, while it
    /// [attends](Self::attend) or has something [announced](Self::announce). `told` gives `false` when nobody
    /// listens any more. The engine calls it when it gets the store.
    fn heed(&self, told: StopListener) {}

    /// The other process that has [announced](Self::announce) a key and lives, as far as can be told.
    fn announced_by(&self, key: &Key) -> Option<Holder> {
        None
    }

    /// Calls `changed` as soon as the announcement of a key is removed, and at other times too, until the returned
    /// guard is dropped. A call that waits for another process asks [`announced_by`](Self::announced_by) then. It asks
    /// without that too: after 20 ms, and each time after twice as long, up to 2 s. A store that can't tell gives
    /// `None`, as it is here.
    fn watch(
        &self,
        key: &Key,
        changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Option<Box<dyn Send + Sync>> {
        None
    }

    /// Writes a batch so that other processes find its entries once they [catch up](Self::catch_up). It need not be
    /// durable: the next [`save`](Self::save) is given these entries once more.
    ///
    /// # Errors
    /// If it can't be written.
    fn write_through(&self, batch: &Batch) -> Result<(), ArchiveError> {
        self.save(batch).map(drop)
    }

    /// Takes note of entries that other processes have written by now, some of which [`find`](Self::find) may else know
    /// only later. They may spare a run that takes so long; a store where looking takes longer need not look each time.
    /// The engine calls it before it looks with [`find`](Self::find) once more: when it has announced a key, and when
    /// it is about to compute a run of an app of unknown cost. It calls it with [`Duration::MAX`] when another process
    /// is no longer at a key.
    fn catch_up(&self, spares: Duration) {}

    /// Writes the content of an [output file](crate::OutputFile), found by its digest, over the content of this file,
    /// and says whether it is there and whole. Without a file it only says whether it is there.
    ///
    /// # Errors
    /// If the store can't be read, or the file not be written.
    fn content(&self, digest: &Digest, to: Option<&mut File>) -> Result<bool, ArchiveError> {
        Ok(false)
    }

    /// Reads the content of an output file, and says whether it is there and whole. The engine asks before the
    /// first hit of a result whose file has no place. A store that can't tell damage may leave this out.
    ///
    /// # Errors
    /// If the store can't be read.
    fn has_whole_content(&self, digest: &Digest) -> Result<bool, ArchiveError> {
        self.content(digest, None)
    }

    /// The marks that were saved, oldest first; of each computation at least the latest.
    ///
    /// # Errors
    /// If the store can't be read.
    fn marks(&self) -> Result<Vec<Mark>, ArchiveError>;

    /// Passes the records of this app's entries to `each`, for a person who asks which is nearest to a run that is
    /// not remembered: in any order, some perhaps twice. A store of very many entries may give only the latest; one
    /// that can't tell gives none.
    ///
    /// # Errors
    /// If the store can't be read.
    fn records(&self, app: &str, each: &mut dyn FnMut(&Record)) -> Result<(), ArchiveError> {
        Ok(())
    }

    /// Writes the results, and nothing else, to a new store in a directory that is empty or
    /// does not exist.
    ///
    /// # Errors
    /// If that can't be written, or this kind of store has no directories.
    fn archive_to(&self, dir: &Path) -> Result<(), ArchiveError> {
        let (this, dir) = (self.describe(), dir.display());
        Err(ArchiveError::Other(format!(
            "{this} can't be archived to {dir}: it is not kept in a directory"
        )))
    }

    /// The kind of store and its place, for messages.
    fn describe(&self) -> String;

    /// Whether nothing can be saved. An engine then does not try unasked, unless it was told a policy.
    fn is_read_only(&self) -> bool {
        false
    }
}

/// The outcome of [announcing](Archiver::announce) a key.
#[non_exhaustive]
pub enum Announced {
    /// Other processes are told that this one computes it, until this is dropped.
    Mine(Box<dyn Send + Sync>),
    /// Another process computes it, as far as can be told.
    Others(Holder),
    /// This store tells other processes nothing, or could not.
    Unsupported,
}

impl fmt::Debug for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mine(_) => f.write_str("Mine"),
            Self::Others(holder) => f.debug_tuple("Others").field(holder).finish(),
            Self::Unsupported => f.write_str("Unsupported"),
        }
    }
}

/// A function that hears what a process was told; see [`Archiver::heed`].
pub type StopListener = Arc<dyn Fn(Option<&StopRequest>) -> bool + Send + Sync>;

/// What a process was told by `sde stop`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopRequest {
    /// The name of who asked, as they say.
    pub by: String,
    /// The name of their machine.
    pub host: String,
    /// When the process is to begin nothing more; a time that is over is at once.
    pub at: SystemTime,
}

impl StopRequest {
    /// The request of this user, from that machine.
    #[must_use]
    pub fn new(by: impl Into<String>, host: impl Into<String>, at: SystemTime) -> Self {
        Self {
            by: by.into(),
            host: host.into(),
            at,
        }
    }
}

/// A process that has announced a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The name of its machine.
    pub host: String,
    /// The process's number there.
    pub process: u32,
}

impl Holder {
    /// The process of this number on that machine.
    #[must_use]
    pub fn new(host: impl Into<String>, process: u32) -> Self {
        Self {
            host: host.into(),
            process,
        }
    }
}

/// Writes an [encoded](Archiver::encode) batch.
pub type EncodedSave<'a> = Box<dyn FnOnce() -> Result<Saved, ArchiveError> + Send + 'a>;

/// One entry as a store has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredEntry {
    /// The record of how the entry was made.
    pub record: Record,
    /// All its results.
    pub results: Vec<StoredResult>,
    /// Whether an archive has all that belongs in one. If not, a program that
    /// loads the entry archives it with the next archive it makes.
    pub archived: bool,
    /// Whether another user saved it. Then no output file of it is put where its results say: that could be any file of this
    /// user's.
    pub is_of_others: bool,
    /// Other computations of the key that the store has. They are compared with this one, and serve nobody.
    pub others: Vec<StoredEntry>,
}

impl StoredEntry {
    /// An entry that is not archived, and the only one of its key.
    #[must_use]
    pub fn new(record: Record, results: Vec<StoredResult>) -> Self {
        Self {
            record,
            results,
            archived: false,
            is_of_others: false,
            others: Vec::new(),
        }
    }
}

/// One result as a store has it.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoredResult {
    /// The result's name.
    pub name: String,
    /// The result's tags.
    pub tags: Tags,
    /// The place of the value's bytes; `None` if it was not saved.
    pub payload: Option<Arc<dyn Payload>>,
}

impl fmt::Debug for StoredResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredResult")
            .field("name", &self.name)
            .field("tags", &self.tags)
            .field("is_saved", &self.payload.is_some())
            .finish()
    }
}

impl StoredResult {
    /// A result, and where its bytes are; `None` if it was not saved.
    #[must_use]
    pub fn new(name: impl Into<String>, tags: Tags, payload: Option<Arc<dyn Payload>>) -> Self {
        Self {
            name: name.into(),
            tags,
            payload,
        }
    }
}
