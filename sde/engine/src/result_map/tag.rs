//! The tags of a result, and the table that says what each means.

use std::fmt;

/// A mark on one named result that says where it is kept.
///
/// | tag | in memory | checkpointed | archived |
/// |---|---|---|---|
/// | none | yes | yes | yes |
/// | `Intermediate` | yes | yes | no |
/// | `Expendable` | yes | no | no |
/// | `NoCache` | only while the program holds it | no | no |
/// | `Distributed` | each rank's part, as without it | each rank's part, as without it | each rank's part, as without it |
///
/// `Distributed` combines with any one of the others; the first three exclude
/// one another.
///
/// ```
/// use sde::{Sde, Tag, inputs};
///
/// #[sde::app(tags(intermediate))]
/// fn grid(points: u32) -> Vec<f64> {
///     (0..points).map(f64::from).collect()
/// }
///
/// let results = Sde::new().run(&grid, &inputs! { points: 3_u32 })?;
/// assert_eq!(results.tags("result"), Some(Tag::Intermediate.into()));
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tag {
    /// Useful mainly for obtaining other results: checkpointed, not archived.
    Intermediate,
    /// Cheap to compute again: neither checkpointed nor archived.
    Expendable,
    /// Not kept at all: the cache has it only while the program holds it.
    NoCache,
    /// Each rank of the process set has a part of it. Only results declared by
    /// [`ResultSpec::distributed`](crate::ResultSpec::distributed) may have this tag.
    Distributed,
}

impl Tag {
    /// All tags.
    pub const ALL: [Self; 4] = [
        Self::Intermediate,
        Self::Expendable,
        Self::NoCache,
        Self::Distributed,
    ];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The tag's name in messages and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intermediate => "intermediate",
            Self::Expendable => "expendable",
            Self::NoCache => "no_cache",
            Self::Distributed => "distributed",
        }
    }
}

/// A set of [`Tag`]s.
///
/// ```
/// use sde::{Tag, Tags};
///
/// let tags = Tag::Intermediate | Tag::Distributed;
/// assert!(tags.contains(Tag::Distributed) && tags.is_checkpointed() && !tags.is_archived());
/// assert!((Tag::Intermediate | Tag::NoCache).conflict().is_some());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Tags(u8);

impl Tags {
    /// No tag: a result worth archiving.
    pub const NONE: Self = Self(0);

    /// Whether the tag is in the set.
    #[must_use]
    pub const fn contains(self, tag: Tag) -> bool {
        self.0 & tag.bit() != 0
    }

    /// The set with this tag in it.
    #[must_use]
    pub const fn with(self, tag: Tag) -> Self {
        Self(self.0 | tag.bit())
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two sets share a tag.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The tags of the set.
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        Tag::ALL.into_iter().filter(move |tag| self.contains(*tag))
    }

    /// Whether the cache itself keeps the value alive.
    #[must_use]
    pub const fn is_cached(self) -> bool {
        !self.contains(Tag::NoCache)
    }

    /// Whether a checkpoint saves it.
    #[must_use]
    pub const fn is_checkpointed(self) -> bool {
        self.is_needed()
    }

    /// Whether an archive saves it.
    #[must_use]
    pub const fn is_archived(self) -> bool {
        self.is_needed() && !self.contains(Tag::Intermediate)
    }

    /// Whether a run is a hit only if this result is there.
    #[must_use]
    pub const fn is_needed(self) -> bool {
        !self.contains(Tag::NoCache) && !self.contains(Tag::Expendable)
    }

    /// Two tags of the set that exclude one another, if there are any.
    #[must_use]
    pub fn conflict(self) -> Option<(Tag, Tag)> {
        let mut kept = self.iter().filter(|tag| *tag != Tag::Distributed);
        Some((kept.next()?, kept.next()?))
    }
}

impl From<Tag> for Tags {
    fn from(tag: Tag) -> Self {
        Self(tag.bit())
    }
}

impl FromIterator<Tag> for Tags {
    fn from_iter<I: IntoIterator<Item = Tag>>(tags: I) -> Self {
        tags.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<const N: usize> From<[Tag; N]> for Tags {
    fn from(tags: [Tag; N]) -> Self {
        tags.into_iter().collect()
    }
}

impl std::ops::BitOr for Tag {
    type Output = Tags;
    fn bitor(self, other: Self) -> Tags {
        Tags::from(self).with(other)
    }
}

impl std::ops::BitOr<Tag> for Tags {
    type Output = Tags;
    fn bitor(self, other: Tag) -> Tags {
        self.with(other)
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (i, tag) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            f.write_str(tag.name())?;
        }
        Ok(())
    }
}
