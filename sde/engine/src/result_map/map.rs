//! The table of a run's results.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::codec::Codec;
use super::size::SizeOf;
use super::stored::Stored;
use super::tag::Tags;
use super::value::{ErasedValue, Value, WeakValue};
use crate::error::{Error, ErrorKind, join_names, printable};
use crate::event::RunId;
use crate::key::Key;
use crate::output_file::{OutputFile, in_value};

/// The error of a look-up of a result that is not there. `origin` is an `app [short key]`.
pub(crate) fn no_result(origin: &str, name: &str, there: &[String]) -> Error {
    let (name, there) = (printable(name), join_names(there));
    Error::invalid_argument(format!(
        "{origin} has no result \"{name}\"; there are: {there}"
    ))
}

/// The results of one run, by name.
///
/// An app builds one and returns it; once published it is read-only and shared,
/// and cloning it costs one reference count.
///
/// ```
/// use sde::ResultMap;
///
/// let map = ResultMap::new().with("energy", -76.0_f64).with("cycles", 11_u32);
/// assert_eq!(*map.get::<f64>("energy")?, -76.0);
///
/// let error = map.get::<f32>("energy").unwrap_err();
/// assert!(error.to_string().contains("is a f64, not a f32"));
/// let error = map.get::<f64>("enrgy").unwrap_err();
/// assert!(error.to_string().contains("there are: energy, cycles"));
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ResultMap(Arc<NamedResults>);

#[derive(Clone, Default)]
struct NamedResults {
    origin: Option<Origin>,
    /// Inline for one, since most maps have one.
    results: SmallVec<[Named; 1]>,
}

/// A weak reference to a map.
pub(crate) struct WeakResultMap(Weak<NamedResults>);

impl WeakResultMap {
    #[inline]
    pub(crate) fn upgrade(&self) -> Option<ResultMap> {
        self.0.upgrade().map(ResultMap)
    }
}

/// The computation that a published map comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The app that was run.
    pub app: Arc<str>,
    /// The key of the run.
    pub key: Key,
    /// The computation.
    pub run: RunId,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.app, self.key.short())
    }
}

/// Why a `no_cache` result is gone.
pub(crate) const NOT_KEPT: &str = "it is tagged no_cache and nobody else holds it any more";

/// Why a value is gone that was evicted.
pub(crate) const EVICTED: &str = "it was dropped to make room";

#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) name: Cow<'static, str>,
    /// The tags given when the app returned the result; `None` leaves the declared ones.
    pub(crate) tags: Option<Tags>,
    /// The codec by which a store writes it; `None` before publication.
    pub(crate) codec: Option<Codec>,
    /// How its size in memory is measured; `None` before publication.
    pub(crate) size: Option<SizeOf>,
    pub(crate) content: Content,
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
        self.tags.unwrap_or_default().is_checkpointed()
    }

    /// Why its value is gone, if only callers held it.
    pub(crate) fn why_let_go(&self) -> &'static str {
        match self.tags.unwrap_or_default().is_cached() {
            true => EVICTED,
            false => NOT_KEPT,
        }
    }

    /// Whether it was a reference to a value that nothing holds any more.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(&self.content, Content::Elsewhere(weak) if !weak.is_there())
    }

    /// Whether it holds its value, or a stored value to be read.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.content, Content::Held(_) | Content::Stored(_))
    }

    /// Bytes that its value takes in memory, or about as many once it is read.
    pub(crate) fn bytes(&self) -> usize {
        match (&self.content, self.size) {
            (Content::Held(value), Some(size)) => size.of(value),
            (Content::Stored(stored), _) => stored.bytes(),
            _ => 0,
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

    /// This content without a share in the value: a reference to it, for as long as anything else holds it.
    pub(crate) fn downgraded(&self) -> Self {
        match self {
            Self::Held(value) => Self::Elsewhere(value.downgrade()),
            Self::Stored(stored) => match stored.if_read() {
                Some(value) => Self::Elsewhere(value.downgrade()),
                None => Self::Gone(EVICTED),
            },
            Self::Elsewhere(_) | Self::Gone(_) => self.clone(),
        }
    }
}

impl ResultMap {
    /// An empty map, to be filled by [`with`](Self::with).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The map with one more result. Its tags are those the app's
    /// [`AppInfo`](crate::AppInfo) declares. A [`Value`] is shared, not wrapped
    /// again: use [`with_value`](Self::with_value) for those. A name given twice
    /// keeps the later value.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(
        self,
        name: impl Into<Cow<'static, str>>,
        value: T,
    ) -> Self {
        self.with_erased(name.into(), ErasedValue::new(value), None)
    }

    /// The map with one more result, which is already shared.
    #[must_use]
    pub fn with_value<T: Send + Sync + 'static>(
        self,
        name: impl Into<Cow<'static, str>>,
        value: Value<T>,
    ) -> Self {
        self.with_erased(name.into(), value.into(), None)
    }

    /// The map with one more result, whose tags replace the declared ones for this run only.
    #[must_use]
    pub fn with_tagged<T: Send + Sync + 'static>(
        self,
        name: impl Into<Cow<'static, str>>,
        value: T,
        tags: impl Into<Tags>,
    ) -> Self {
        self.with_erased(name.into(), ErasedValue::new(value), Some(tags.into()))
    }

    fn with_erased(
        mut self,
        name: Cow<'static, str>,
        value: ErasedValue,
        tags: Option<Tags>,
    ) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        let content = Content::Held(value);
        match inner.results.iter_mut().find(|named| named.name == name) {
            Some(named) => {
                named.tags = tags;
                named.content = content;
            }
            None => inner.results.push(Named {
                name,
                tags,
                codec: None,
                size: None,
                content,
            }),
        }
        self
    }

    /// The result of that name.
    ///
    /// A result that is still in the store is read here, once, which takes as long as its store needs.
    ///
    /// # Errors
    /// If there is no such result, it has another type, it is gone (cleaned, `no_cache`, not in an archive), or its
    /// stored bytes are damaged. The message names the results there are, or says why the value is gone and how to get
    /// it.
    pub fn get<T: Send + Sync + 'static>(&self, name: &str) -> Result<Value<T>, Error> {
        let value = self.get_erased(name)?;
        value.downcast().ok_or_else(|| {
            Error::invalid_argument(format!(
                "result \"{}\" of {} is a {}, not a {}",
                printable(name),
                self.origin_text(),
                value.type_name(),
                std::any::type_name::<T>()
            ))
        })
    }

    /// The result of that name, whatever its type.
    ///
    /// # Errors
    /// As [`get`](Self::get), but for the type.
    pub fn get_erased(&self, name: &str) -> Result<ErasedValue, Error> {
        let Some(named) = self.find(name) else {
            let there: Vec<_> = self.names().map(str::to_owned).collect();
            return Err(no_result(&self.origin_text(), name, &there));
        };
        let gone = |why: String| {
            Error::from(ErrorKind::Gone {
                origin: self.origin_text(),
                name: name.to_owned(),
                why,
            })
        };
        match &named.content {
            Content::Held(value) => Ok(value.clone()),
            Content::Elsewhere(weak) => weak
                .upgrade()
                .ok_or_else(|| gone(named.why_let_go().to_owned())),
            Content::Stored(stored) => stored
                .get()
                .cloned()
                .map_err(|error| gone(error.to_string())),
            Content::Gone(why) => Err(gone((*why).to_owned())),
        }
    }

    /// Whether the result of that name can be given, as far as is known without reading it from a store.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|named| named.content.is_there())
    }

    /// Whether the result of that name can be given. Reads it if it is in a store.
    pub(crate) fn can_give(&self, name: &str) -> bool {
        self.find(name).is_some_and(|named| match &named.content {
            Content::Stored(stored) => stored.get().is_ok(),
            content => content.is_there(),
        })
    }

    /// The names of all results in the order of the app's returns, gone ones included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.results.iter().map(|named| &*named.name)
    }

    /// The tags of the result of that name.
    #[must_use]
    pub fn tags(&self, name: &str) -> Option<Tags> {
        self.find(name).map(|named| named.tags.unwrap_or_default())
    }

    /// The computation that the map comes from; `None` before it is published.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.0.origin.as_ref()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Named> {
        self.0.results.iter().find(|named| named.name == name)
    }

    fn origin_text(&self) -> String {
        match &self.0.origin {
            Some(origin) => origin.to_string(),
            None => "this result map".to_owned(),
        }
    }

    pub(crate) fn from_parts(origin: Origin, results: impl IntoIterator<Item = Named>) -> Self {
        Self(Arc::new(NamedResults {
            origin: Some(origin),
            results: results.into_iter().collect(),
        }))
    }

    /// This map with the contents that `replacement` gives in place of its own.
    pub(crate) fn replacing(&self, replacement: impl Fn(&Named) -> Option<Content>) -> Self {
        let results = self.0.results.iter().map(|named| Named {
            content: replacement(named).unwrap_or_else(|| named.content.clone()),
            ..named.clone()
        });
        Self(Arc::new(NamedResults {
            origin: self.0.origin.clone(),
            results: results.collect(),
        }))
    }

    /// Bytes of a map that a weak reference keeps allocated.
    pub(crate) const BLOCK: usize = size_of::<NamedResults>();

    pub(crate) fn downgrade(&self) -> WeakResultMap {
        WeakResultMap(Arc::downgrade(&self.0))
    }

    pub(crate) fn results(&self) -> &[Named] {
        &self.0.results
    }
}

impl fmt::Debug for ResultMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for named in &self.0.results {
            let what: &dyn fmt::Debug = match &named.content {
                Content::Held(value) => &value.type_name(),
                Content::Elsewhere(_) => &"held by others",
                Content::Stored(_) => &"in the store",
                Content::Gone(why) => why,
            };
            map.entry(&named.name, what);
        }
        map.finish()
    }
}
