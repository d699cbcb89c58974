//! A published result: what its app declares of it, and the place of its value.

use std::ops::Deref;
use std::sync::Arc;

use super::spec::ResultSpec;
use super::stored::Stored;
use super::tag::Tags;
use super::value::{ErasedValue, WeakValue};
use crate::output_file::{OutputFile, in_value};

/// Why a `no_cache` result is gone.
pub(crate) const NOT_KEPT: &str = "it is tagged no_cache and nobody else holds it any more";

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
            Content::Elsewhere(weak) => {
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

    /// Whether it holds its value, or a stored value to be read.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.content, Content::Held(_) | Content::Stored(_))
    }

    /// Bytes that its value takes in memory, or about as many once it is read.
    pub(crate) fn bytes(&self) -> usize {
        match &self.content {
            Content::Held(value) => self.size.of(value),
            Content::Stored(stored) => stored.bytes(),
            Content::Elsewhere(_) | Content::Gone(_) => 0,
        }
    }
}

/// The place of a result's value.
#[derive(Clone)]
pub(crate) enum Content {
    /// Held by this map.
    Held(ErasedValue),
    /// Held by callers only.
    Elsewhere(WeakValue),
    /// In the store, to be read when asked for.
    Stored(Stored),
    /// Gone, for this reason.
    Gone(&'static str),
}

impl Content {
    /// Whether the value can be given, as far as is known without reading it.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Held(_) => true,
            Self::Elsewhere(weak) => weak.is_there(),
            Self::Stored(stored) => !stored.is_damaged(),
            Self::Gone(_) => false,
        }
    }
}
