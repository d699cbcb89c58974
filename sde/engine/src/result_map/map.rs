//! The table of a run's results.

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::data::Data;
use super::named::Content;
use super::spec::ResultSpec;
use super::tag::Tags;
use super::value::{ErasedValue, Value};
use crate::entry::Entry;
use crate::error::{Error, ErrorKind, printable};
use crate::event::RunId;
use crate::key::Key;

/// The error of a look-up of a result that is not there. `origin` is an `app [short key]`.
pub(crate) fn no_result(origin: &str, name: &str, there: &[String]) -> Error {
    Error::unknown_name(origin, "result", name, there)
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
/// assert!(error.to_string().contains("did you mean: energy"));
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone)]
pub struct ResultMap(Contents);

#[derive(Clone)]
enum Contents {
    Returned(Arc<SmallVec<[Returned; 1]>>),
    Published(Arc<Entry>),
}

/// A result of a map that is not published.
#[derive(Clone)]
struct Returned {
    name: Cow<'static, str>,
    /// `None` for the declared ones.
    tags: Option<Tags>,
    content: Content,
}

/// A result of any map.
pub(crate) struct Found<'a> {
    name: &'a str,
    /// `None` for the declared ones.
    pub(crate) tags: Option<Tags>,
    pub(crate) content: &'a Content,
}

/// The computation that a published map comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
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

impl ResultMap {
    /// An empty map, to be filled by [`with`](Self::with).
    #[must_use]
    pub fn new() -> Self {
        Self(Contents::Returned(Arc::default()))
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

    fn with_erased(self, name: Cow<'static, str>, value: ErasedValue, tags: Option<Tags>) -> Self {
        let mut results = self.into_returned();
        let returned = Returned {
            name,
            tags,
            content: Content::Held(value),
        };
        let list = Arc::make_mut(&mut results);
        match list.iter_mut().find(|one| one.name == returned.name) {
            Some(earlier) => *earlier = returned,
            None => list.push(returned),
        }
        Self(Contents::Returned(results))
    }

    fn into_returned(self) -> Arc<SmallVec<[Returned; 1]>> {
        match self.0 {
            Contents::Returned(results) => results,
            Contents::Published(_) => Arc::new(self.found().map(Returned::of).collect()),
        }
    }

    /// The map with these tags in place of those of the named results.
    pub(crate) fn retagged(self, tags: &[(String, Tags)]) -> Self {
        if tags.is_empty() {
            return self;
        }
        let mut results = self.into_returned();
        for one in Arc::make_mut(&mut results) {
            let said = tags.iter().rfind(|(name, _)| *name == one.name);
            one.tags = said.map_or(one.tags, |(_, tags)| Some(*tags));
        }
        Self(Contents::Returned(results))
    }

    /// The map with each result of the declared type, where either that or the returned one is without a Rust type.
    /// Results of other types stay, to be refused when they are published.
    pub(crate) fn with_declared_types(mut self, declared: &[Arc<ResultSpec>]) -> Self {
        for spec in declared {
            let wanted = spec.codec.map(|codec| codec.type_id());
            let (Some(wanted), Ok(value)) = (wanted, self.get_erased(&spec.name)) else {
                continue;
            };
            if value.any().type_id() == wanted {
                continue;
            }
            if let Some(value) = as_type(&value, wanted) {
                let tags = self.find(&spec.name).and_then(|found| found.tags);
                self = self.with_erased(spec.name.clone(), value, tags);
            }
        }
        self
    }

    /// The result of that name. One without a Rust type is given as a `T` if it [is one](Data::get), and one of a Rust
    /// type as a [`Data`] if it [can be](Data::of).
    ///
    /// A result that is still in the store is read here, once, which takes as long as its store needs.
    ///
    /// # Errors
    /// If there is no such result, it has another type, it is gone (cleared, `no_cache`, not in an archive), or its
    /// stored bytes are damaged. The message names the results there are, or says why the value is gone and how to get
    /// it.
    pub fn get<T: Send + Sync + 'static>(&self, name: &str) -> Result<Value<T>, Error> {
        let value = self.get_erased(name)?;
        let other = || as_type(&value, TypeId::of::<T>())?.into_value();
        let found = value.downcast().or_else(other);
        found.ok_or_else(|| {
            let what = format!("result \"{}\" of {}", printable(name), self.origin_text());
            Error::type_mismatch(what, value.type_name(), std::any::type_name::<T>())
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
        named
            .content
            .get(named.tags.unwrap_or_default())
            .map_err(gone)
    }

    /// Whether the result of that name can be given, as far as is known without reading it from a store.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|named| named.content.is_there())
    }

    /// Whether the result of that name can be given. Reads it if it is in a store.
    pub(crate) fn can_give(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|named| named.content.can_give())
    }

    /// The names of all results in the order of the app's returns, gone ones included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.found().map(|named| named.name)
    }

    /// The tags of the result of that name.
    #[must_use]
    pub fn tags(&self, name: &str) -> Option<Tags> {
        self.find(name).map(|named| named.tags.unwrap_or_default())
    }

    /// The computation that the map comes from; `None` before it is published.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        let record = &self.entry()?.record;
        Some(Origin {
            app: Arc::clone(&record.app),
            key: record.key,
            run: record.run,
        })
    }

    /// Whether another user saved the results. For bindings that load what can run code.
    #[doc(hidden)]
    #[must_use]
    pub fn is_of_others(&self) -> bool {
        self.entry().is_some_and(|entry| entry.is_of_others)
    }

    /// The entry that gives the results; `None` before they are published.
    pub(crate) fn entry(&self) -> Option<&Arc<Entry>> {
        match &self.0 {
            Contents::Returned(_) => None,
            Contents::Published(entry) => Some(entry),
        }
    }

    /// The map of an entry.
    #[inline]
    pub(crate) fn of(entry: Arc<Entry>) -> Self {
        Self(Contents::Published(entry))
    }

    pub(crate) fn find(&self, name: &str) -> Option<Found<'_>> {
        self.found().find(|named| named.name == name)
    }

    fn found(&self) -> impl Iterator<Item = Found<'_>> {
        let (returned, published) = match &self.0 {
            Contents::Returned(returned) => (&***returned, [].as_slice()),
            Contents::Published(entry) => ([].as_slice(), &*entry.results),
        };
        let returned = returned.iter().map(|one| Found {
            name: &one.name,
            tags: one.tags,
            content: &one.content,
        });
        returned.chain(published.iter().map(|named| Found {
            name: &named.name,
            tags: Some(named.tags),
            content: &named.content,
        }))
    }

    fn origin_text(&self) -> String {
        match self.origin() {
            Some(origin) => origin.to_string(),
            None => "this result map".to_owned(),
        }
    }
}

/// A value without a Rust type as one of this type, or the other way round.
#[cold]
pub(crate) fn as_type(value: &ErasedValue, wanted: TypeId) -> Option<ErasedValue> {
    match value.downcast_ref::<Data>() {
        Some(data) => data.to_type(wanted),
        None if wanted == TypeId::of::<Data>() => Data::of(value).map(ErasedValue::new),
        None => None,
    }
}

impl Default for ResultMap {
    fn default() -> Self {
        Self::new()
    }
}

impl Returned {
    fn of(found: Found<'_>) -> Self {
        Self {
            name: Cow::Owned(found.name.to_owned()),
            tags: found.tags,
            content: found.content.clone(),
        }
    }
}

impl fmt::Debug for ResultMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for named in self.found() {
            let what: &dyn fmt::Debug = match named.content {
                Content::Held(value) => &value.type_name(),
                Content::Weak(_) => &"held by others",
                Content::Stored(_) => &"in the store",
                Content::Gone(why) => why,
            };
            map.entry(&named.name, what);
        }
        map.finish()
    }
}
