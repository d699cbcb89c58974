//! What an app declares of one result.

use std::borrow::Cow;

use super::codec::{Codec, Storable};
use super::data::Data;
use super::size::{MemorySize, SizeOf};
use super::tag::{Tag, Tags};
use crate::ranks::distributed::{DistOps, Distributed};

/// One result that an app declares: its name, its type and its tags.
#[derive(Clone, Debug)]
pub struct ResultSpec {
    pub(crate) name: Cow<'static, str>,
    pub(crate) about: Cow<'static, str>,
    pub(crate) tags: Tags,
    /// `None` if it can't be saved, and so must be `expendable` or `no_cache`.
    pub(crate) codec: Option<Codec>,
    /// How its parts move between ranks, if it has parts.
    pub(crate) parts: Option<DistOps>,
    /// How the size of its values is measured.
    pub(crate) size: SizeOf,
    /// Whether two computations of one key must agree in it.
    pub(crate) is_compared: bool,
    pub(crate) type_name: &'static str,
}

impl ResultSpec {
    /// A result of a type that can be saved.
    #[must_use]
    pub fn new<T: Storable>(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            about: Cow::Borrowed(""),
            tags: Tags::NONE,
            codec: Some(Codec::of::<T>()),
            parts: None,
            size: SizeOf::encoded::<T>(),
            is_compared: true,
            type_name: std::any::type_name::<T>(),
        }
    }

    /// A result without a Rust type of its own: a [`Data`](crate::Data).
    #[must_use]
    pub fn data(name: impl Into<Cow<'static, str>>) -> Self {
        Self::new::<Data>(name).sized::<Data>()
    }

    /// A result of a type that can't be saved. It must be tagged `expendable` (the default) or `no_cache`.
    #[must_use]
    pub fn unsaved<T: Send + Sync + 'static>(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            about: Cow::Borrowed(""),
            tags: Tag::Expendable.into(),
            codec: None,
            parts: None,
            size: SizeOf::flat::<T>(),
            is_compared: true,
            type_name: std::any::type_name::<T>(),
        }
    }

    /// A result as a store tells of it.
    pub(crate) fn stored(name: Cow<'static, str>, tags: Tags, codec: Option<Codec>) -> Self {
        Self {
            tags,
            codec,
            ..Self::unsaved::<()>(name)
        }
    }

    /// A result of which each rank of the process set has a part, tagged `distributed`; for apps
    /// that are [`distributed`](crate::AppInfo::distributed).
    #[must_use]
    pub fn distributed<T: Distributed>(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            tags: Tag::Distributed.into(),
            parts: Some(DistOps::of::<T>()),
            ..Self::new::<T>(name)
        }
    }

    /// Declares that the values tell their size to a [budget](crate::MemoryBudget). Otherwise lists of numbers count
    /// with their elements, other values that can be saved with the length of their encoding, and the rest with their
    /// own fields. `T` is the type of the result.
    #[must_use]
    pub fn sized<T: MemorySize + Send + Sync + 'static>(mut self) -> Self {
        self.size = SizeOf::told::<T>();
        self
    }

    /// Declares that two computations of one key may give other bits for this result, such as a text with a date in
    /// it, or a set walked in any order. Other results are compared when two computations of a key meet; other bits
    /// are a warning and count as [`differing`](crate::AppStats::differing). Keys do not depend on it.
    #[must_use]
    pub fn not_compared(mut self) -> Self {
        self.is_compared = false;
        self
    }

    /// Describes the result, with its unit.
    #[must_use]
    pub fn about(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.about = text.into();
        self
    }

    /// The result with these tags in place of its tags. A result declared by [`distributed`](Self::distributed) keeps
    /// that tag; no other result may have it.
    #[must_use]
    pub fn tagged(mut self, tags: impl Into<Tags>) -> Self {
        self.tags = self.all_tags(tags.into());
        self
    }

    /// The tags of a value that is returned with the tags `said`.
    pub(crate) fn all_tags(&self, said: Tags) -> Tags {
        match self.parts {
            Some(_) => said.with(Tag::Distributed),
            None => said,
        }
    }

    /// Why this result can't have a value with these tags.
    pub(crate) fn refused(&self, tags: Tags) -> Option<String> {
        let is_whole = self.parts.is_none() && tags.contains(Tag::Distributed);
        is_whole.then(|| {
            format!(
                "\"{}\" is tagged distributed, and nothing says how a {} is put together from the parts of several ranks: \
                 declare it with `ResultSpec::distributed`, or leave the tag out",
                self.name, self.type_name
            )
        })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.about
    }

    /// The tags.
    #[must_use]
    pub fn tags(&self) -> Tags {
        self.tags
    }

    /// The name of its type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }
}
