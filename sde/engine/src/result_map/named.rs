//! A published result: what its app declares of it, and the place of its value.

use std::ops::Deref;
use std::sync::Arc;

use super::spec::ResultSpec;
use super::stored::Stored;
use super::tag::Tags;
use super::value::{ErasedValue, WeakValue};
use crate::entry::FailureRecord;
use crate::error::{Error, printable};
use crate::output_file::{OutputFile, in_value};

/// Why a `no_cache` result is gone.
pub(crate) const NOT_KEPT: &str = "it is tagged no_cache and nobody else holds it any more";

/// Why a value is gone that was evicted.
pub(crate) const EVICTED: &str = "it was dropped to make room";

/// Why a value with these tags is gone, if only callers held it.
pub(crate) fn why_let_go(tags: Tags) -> &'static str {
    if tags.is_cached() { EVICTED } else { NOT_KEPT }
}

/// A result of one run.
///
/// It dereferences to its declaration: `named.name` is the name.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) content: Content,
    /// Shared by all runs of the app.
    pub(crate) spec: Arc<ResultSpec>,
    /// The tags of this run's value.
    pub(crate) tags: Tags,
}

impl Deref for Named {
    type Target = ResultSpec;

    fn deref(&self) -> &ResultSpec {
        &self.spec
    }
}

impl Named {
    /// Whether its value has output files, as far as is known without reading it.
    pub(crate) fn has_files(&self) -> bool {
        match &self.content {
            Content::Stored(stored) => stored.has_files(),
            _ => self.files().is_ok_and(|files| !files.is_empty()),
        }
    }

    /// The output files in its value. A stored value is read for it; an error says why it can't be.
    pub(crate) fn files(&self) -> Result<Vec<OutputFile>, String> {
        let held;
        let value = match &self.content {
            Content::Held(value) => Some(value),
            Content::Weak(weak) => {
                held = weak.upgrade();
                held.as_ref()
            }
            Content::Stored(stored) => Some(stored.get().map_err(ToString::to_string)?),
            Content::Gone(_) => None,
        };
        let found = self.codec.as_ref().zip(value);
        Ok(found.map_or_else(Vec::new, |(codec, value)| in_value(codec, value)))
    }

    /// Whether it is meant for a store.
    pub(crate) fn is_ever_saved(&self) -> bool {
        self.tags.is_checkpointed()
    }

    /// Whether it is a reference to a value that nothing holds any more.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(&self.content, Content::Weak(weak) if !weak.is_there())
    }

    /// Whether it holds its value, or a stored value to be read.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.content, Content::Held(_) | Content::Stored(_))
    }

    /// Bytes that its value takes in memory, or about as many once it is read.
    pub(crate) fn bytes(&self) -> usize {
        match &self.content {
            Content::Held(value) => self.size.of(value),
            Content::Stored(stored) => stored.bytes(),
            Content::Weak(_) | Content::Gone(_) => 0,
        }
    }
}

/// The place of a result's value.
#[derive(Clone)]
pub(crate) enum Content {
    /// Held by this map.
    Held(ErasedValue),
    /// A reference to a value that the program or another entry may hold.
    Weak(WeakValue),
    /// In the store, to be read when asked for.
    Stored(Stored),
    /// Gone, for this reason.
    Gone(&'static str),
}

impl Content {
    /// The value, which has these tags, or why it can't be given. Reads it if it is in a store.
    pub(crate) fn get(&self, tags: Tags) -> Result<ErasedValue, String> {
        match self {
            Self::Held(value) => Ok(value.clone()),
            Self::Weak(weak) => weak.upgrade().ok_or_else(|| why_let_go(tags).to_owned()),
            Self::Stored(stored) => stored.get().cloned().map_err(|error| format!("{error:#}")),
            Self::Gone(why) => Err((*why).to_owned()),
        }
    }

    /// Whether the value can be given. Reads it if it is in a store.
    pub(crate) fn can_give(&self) -> bool {
        match self {
            Self::Stored(stored) => stored.get().is_ok(),
            content => content.is_there(),
        }
    }

    /// Whether the value can be given, as far as is known without reading it.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Held(_) => true,
            Self::Weak(weak) => weak.is_there(),
            Self::Stored(stored) => !stored.is_damaged(),
            Self::Gone(_) => false,
        }
    }

    /// This content without a share in the value: a reference to it, for as long as anything else holds it.
    pub(crate) fn downgraded(&self) -> Self {
        match self {
            Self::Held(value) => Self::Weak(value.downgrade()),
            Self::Stored(stored) => match stored.if_read() {
                Some(value) => Self::Weak(value.downgrade()),
                None => Self::Gone(EVICTED),
            },
            Self::Weak(_) | Self::Gone(_) => self.clone(),
        }
    }
}

/// The results of an entry.
pub(crate) enum EntryResults {
    /// Most runs have one result.
    One(Named),
    Several(Box<[Named]>),
    /// The error of a run that failed, in memory.
    Failed(Failed),
    /// The failure of a run, for a store.
    Failure(Arc<FailureRecord>),
}

/// The failure of a run, as memory knows it.
#[derive(Clone)]
pub(crate) struct Failed {
    /// The error for later callers.
    pub(crate) error: Error,
    pub(crate) is_permanent: bool,
}

impl Deref for EntryResults {
    type Target = [Named];

    fn deref(&self) -> &[Named] {
        match self {
            Self::One(named) => std::slice::from_ref(named),
            Self::Several(list) => list,
            Self::Failed(_) | Self::Failure(_) => &[],
        }
    }
}

impl EntryResults {
    pub(crate) fn find(&self, name: &str) -> Option<&Named> {
        self.iter().find(|named| named.name == name)
    }

    pub(crate) fn tags(&self, name: &str) -> Option<Tags> {
        self.find(name).map(|named| named.tags)
    }

    /// The value of that name, or why there is none.
    pub(crate) fn get_erased(&self, name: &str) -> Result<ErasedValue, String> {
        match self.find(name) {
            Some(named) => named.content.get(named.tags),
            None => Err(format!("there is no result \"{}\"", printable(name))),
        }
    }

    /// Bytes that they own besides themselves and their values.
    pub(crate) fn owned(&self) -> usize {
        match self {
            Self::Several(list) => size_of_val(&**list),
            Self::Failure(failure) => failure.message.len() + failure.output.len(),
            Self::One(_) | Self::Failed(_) => 0,
        }
    }

    /// Bytes of the values. A stored value that was not read counts as if it was.
    pub(crate) fn bytes(&self) -> usize {
        let failure = match self {
            Self::Failed(failed) => failed.error.memory(),
            Self::One(_) | Self::Several(_) | Self::Failure(_) => 0,
        };
        let all = self.iter().map(Named::bytes);
        all.fold(failure, usize::saturating_add)
    }

    /// These results with the contents that `replacement` gives in place of their own.
    pub(crate) fn replacing(&self, replacement: impl Fn(&Named) -> Option<Content>) -> Self {
        let results = self.iter().map(|named| Named {
            content: replacement(named).unwrap_or_else(|| named.content.clone()),
            ..named.clone()
        });
        results.collect()
    }
}

impl FromIterator<Named> for EntryResults {
    fn from_iter<I: IntoIterator<Item = Named>>(results: I) -> Self {
        let mut results = results.into_iter();
        match (results.next(), results.next()) {
            (Some(one), None) => Self::One(one),
            (first, second) => {
                let first = first.into_iter().chain(second);
                Self::Several(first.chain(results).collect())
            }
        }
    }
}
