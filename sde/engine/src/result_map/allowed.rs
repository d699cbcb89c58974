//! What a function may take and return, so that the compiler tells the likeliest mistakes by name.
//!
//! The macro calls a function with a bound for each. A value that is itself a `Result`, or of which each field is a
//! result, is found by the order of method lookup: first [`OfAlias`] and [`OfFields`], then, one reference further,
//! [`OfValue`]. So is a value of which each rank has a part: first [`OfParts`], then [`OfWhole`].

use std::marker::PhantomData;

use super::codec::Storable;
use super::spec::ResultSpec;
use super::typed::Results;
use crate::key::Fingerprint;
use crate::ranks::distributed::Distributed;

/// Refuses the type of an argument that can't be in a key.
pub fn require_argument<T: Send + Sync + Fingerprint + ?Sized>() {}

/// The type of a value that a function returns outside `Result<..>`.
#[derive(Debug)]
pub struct ValueType<T>(PhantomData<T>);

impl<T> ValueType<T> {
    /// The type `T`.
    pub const NEW: Self = Self(PhantomData);
}

/// Finds an alias of `Result`.
pub trait OfAlias {
    /// What it is.
    fn kind(&self) -> Alias {
        Alias
    }
}

impl<T, E> OfAlias for ValueType<Result<T, E>> {}

/// Finds a struct of results.
pub trait OfFields {
    /// What it is.
    fn kind(&self) -> Fields {
        Fields
    }
}

impl<T: Results> OfFields for ValueType<T> {}

/// Finds any other type.
pub trait OfValue {
    /// What it is.
    fn kind(&self) -> PlainValue {
        PlainValue
    }
}

impl<T> OfValue for &ValueType<T> {}

/// An alias of `Result`.
#[derive(Debug)]
pub struct Alias;

/// A struct of which each field is a result.
#[derive(Debug)]
pub struct Fields;

/// A type that is neither.
#[derive(Debug)]
pub struct PlainValue;

/// A kind of value that can be remembered.
#[diagnostic::on_unimplemented(
    message = "an app can't return a `Result` under another name: its errors would be remembered as values",
    label = "this is a `Result`",
    note = "write `Result<T, E>` out, with the value's type first"
)]
pub trait Remembered {}

impl Remembered for PlainValue {}
impl Remembered for Fields {}

/// A kind of value that is one result.
#[diagnostic::on_unimplemented(
    message = "each field of what this app returns is a result, and the app does not say so",
    label = "this derives `sde::Results`",
    note = "write `#[sde::app(results)]`"
)]
pub trait OneResult {}

impl OneResult for PlainValue {}
impl OneResult for Alias {}

/// Refuses a struct of results.
pub fn refuse_fields(_: impl OneResult) {}

/// Refuses a value that is a `Result`.
pub fn refuse_alias(_: impl Remembered) {}

/// Finds a type of which each rank of a process set has a part.
pub trait OfParts {
    /// How it lies.
    fn lies(&self) -> InParts {
        InParts
    }
}

impl<T: Distributed> OfParts for ValueType<T> {}

/// Finds any other type.
pub trait OfWhole {
    /// How it lies.
    fn lies(&self) -> Whole {
        Whole
    }
}

impl<T> OfWhole for &ValueType<T> {}

/// A type of which each rank has a part.
#[derive(Debug)]
pub struct InParts;

impl InParts {
    /// Declares the result.
    pub fn saved<T: Distributed>(self, name: &'static str) -> ResultSpec {
        ResultSpec::distributed::<T>(name)
    }

    /// Declares the result. Tags say that it is not saved.
    pub fn unsaved<T: Distributed>(self, name: &'static str) -> ResultSpec {
        self.saved::<T>(name)
    }
}

/// A type that every rank has whole.
#[derive(Debug)]
pub struct Whole;

impl Whole {
    /// Declares the result.
    pub fn saved<T: Storable>(self, name: &'static str) -> ResultSpec {
        ResultSpec::new::<T>(name)
    }

    /// Declares the result, which need not be storable.
    pub fn unsaved<T: Send + Sync + 'static>(self, name: &'static str) -> ResultSpec {
        ResultSpec::unsaved::<T>(name)
    }
}
