//! Shared values, which are never copied and are keyed once.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use crate::key::{
    Commitment, Encoder, Fingerprint, FingerprintError, Short, same_as, write_shared,
};
#[cfg(debug_assertions)]
use crate::sync::user_code;

/// A shared, read-only value that remembers its own digest.
///
/// It dereferences to `T`; cloning it shares the value. Given to a run as an
/// input it makes the same key as the bare `T` would, and the digest is computed
/// at most once: passing a 10 GB tensor from one app to the next hashes 32 bytes.
///
/// That holds for values that can't change while they are shared. A value with an [`InputFile`](crate::InputFile) or a
/// [`BySerde`](crate::key::BySerde) in it is keyed anew each time.
///
/// ```
/// use sde::Value;
///
/// let tensor = Value::new(vec![1.0_f64; 1_000_000]);
/// let same = tensor.clone();
/// assert!(Value::ptr_eq(&tensor, &same));
/// assert_eq!(tensor[17], 1.0);
/// ```
pub struct Value<T: ?Sized>(Arc<ValueBlock<T>>);

struct ValueBlock<T: ?Sized> {
    /// The part of a parent's encoding that stands for this value; made at first use.
    commitment: OnceLock<Box<Commitment>>,
    _at_drop: AtDrop,
    value: T,
}

/// Marks the value's destructor as code of users, which must not run with a lock held.
struct AtDrop;

#[cfg(debug_assertions)]
impl Drop for AtDrop {
    fn drop(&mut self) {
        user_code("a destructor");
    }
}

impl<T> Value<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(ValueBlock {
            commitment: OnceLock::new(),
            _at_drop: AtDrop,
            value,
        }))
    }

    /// The value itself, if nobody else holds it.
    ///
    /// # Errors
    /// Gives the shared value back if others (the cache, for one) hold it too.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        Arc::try_unwrap(this.0)
            .map(|shared| shared.value)
            .map_err(Self)
    }

    /// Whether two handles share one value.
    #[must_use]
    pub fn ptr_eq(a: &Self, b: &Self) -> bool {
        Arc::ptr_eq(&a.0, &b.0)
    }
}

/// A shared value makes the same key as the bare value, also inside lists, options and fields.
impl<T: Fingerprint + Send + Sync + 'static> Fingerprint for Value<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.item(|parts| parts.part(self))
    }

    fn write_node(&self, to: &mut Encoder<'_>, at: usize) -> Result<usize, FingerprintError> {
        write_shared(&**self, &self.0.commitment, to, at)
    }

    fn describe(&self, out: &mut Short) {
        self.0.value.describe(out);
    }

    fn to_shared_value(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(ErasedValue::from(self.clone())))
    }

    same_as!(T);
}

impl<T: ?Sized> Clone for Value<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Value<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: ?Sized> AsRef<T> for Value<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T> From<T> for Value<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Value<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl<T: fmt::Display + ?Sized> fmt::Display for Value<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl<T: PartialEq + ?Sized> PartialEq for Value<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.value == other.0.value
    }
}

impl<T: PartialEq> PartialEq<T> for Value<T> {
    fn eq(&self, other: &T) -> bool {
        self.0.value == *other
    }
}

impl<T: serde::Serialize> serde::Serialize for Value<T> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.value.serialize(to)
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Value<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        T::deserialize(from).map(Self::new)
    }
}

/// The operations on a shared value of any type.
trait AnyShared: Any + Send + Sync {
    fn type_name(&self) -> &'static str;
    fn value(&self) -> &dyn Any;
}

impl<T: Send + Sync + 'static> AnyShared for ValueBlock<T> {
    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn value(&self) -> &dyn Any {
        &self.value
    }
}

/// A [`Value`] whose type is known only at run time.
#[derive(Clone)]
pub struct ErasedValue(Arc<dyn AnyShared>);

impl ErasedValue {
    /// Shares a value and forgets its type.
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self::from(Value::new(value))
    }

    /// The value as a `T`, if it is one.
    #[must_use]
    pub fn downcast<T: Send + Sync + 'static>(&self) -> Option<Value<T>> {
        self.clone().into_value()
    }

    /// Turns the handle into a `T`, if the value is one. Unlike with [`downcast`](Self::downcast), the value never has
    /// one more holder meanwhile.
    #[must_use]
    pub fn into_value<T: Send + Sync + 'static>(self) -> Option<Value<T>> {
        let any: Arc<dyn Any + Send + Sync> = self.0;
        any.downcast().ok().map(Value)
    }

    /// The value as a `T`, without sharing it, if it is one.
    #[must_use]
    pub fn downcast_ref<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        Some(&any.downcast_ref::<ValueBlock<T>>()?.value)
    }

    /// The value itself.
    pub(super) fn any(&self) -> &dyn Any {
        self.0.value()
    }

    /// The name of the type it has, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.0.type_name()
    }

    /// Whether two handles share one value.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How many bytes the value's own fields take, without what they own.
    pub(crate) fn block_size(&self) -> usize {
        size_of_val(&*self.0)
    }

    pub(crate) fn downgrade(&self) -> WeakValue {
        WeakValue(Arc::downgrade(&self.0))
    }
}

impl<T: Send + Sync + 'static> From<Value<T>> for ErasedValue {
    fn from(value: Value<T>) -> Self {
        Self(value.0)
    }
}

impl fmt::Debug for ErasedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErasedValue<{}>", self.type_name())
    }
}

/// A weak reference to a value.
#[derive(Clone)]
pub(crate) struct WeakValue(Weak<dyn AnyShared>);

impl WeakValue {
    /// Needs no strong reference, so it may be called with a map locked: the last reference must not be dropped there.
    pub(crate) fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    #[inline]
    pub(crate) fn upgrade(&self) -> Option<ErasedValue> {
        self.0.upgrade().map(ErasedValue)
    }
}
