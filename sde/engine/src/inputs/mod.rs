//! Inputs of runs: ordered, named, typed values.

mod call;
mod declared;
mod value;

pub(crate) use call::BLOCK;
pub use call::{Call, ValueSummary};
pub use declared::{DeclaredInputs, FunctionInputs, InputSpec};

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::error::{Error, printable};
use crate::key::{EncodedCursor, Encoder, Fingerprint, FingerprintError, describe, with_encoder};
use crate::result_map::{Data, ErasedValue, Value};
pub(crate) use value::AnyInput;
use value::InputValue;
pub use value::summary;

/// The inputs of one run.
///
/// Names, types and values are in the key. An app that [declares](crate::AppInfo::input) its inputs, as each
/// `#[sde::app]` function does, takes them in any order: a run is keyed in the declared one. For other apps the order is
/// in the key too.
///
/// Made by [`inputs!`](crate::inputs); clones share them. The encoding is made once and kept, so running again with the
/// same `Inputs` is cheaper than with new ones. An encoding that may change is not kept: an
/// [`InputFile`](crate::InputFile) is read each time.
///
/// ```
/// use sde::inputs;
///
/// let inputs = inputs! { basis: "6-31G*".to_owned(), charge: -1_i32 };
/// assert_eq!(inputs.get::<String>("basis")?, "6-31G*");
/// assert!(inputs.get::<i32>("spin").unwrap_err().to_string().contains("has: basis, charge"));
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Inputs(Arc<InputBlock>);

/// A single block for most inputs, since allocations dominate the cost of a call with new ones.
#[doc(hidden)]
#[derive(Default)]
pub struct InputBlock {
    items: SmallVec<[Input; 8]>,
    encoded: OnceLock<SmallVec<[u8; 128]>>,
    /// The inputs in the order that an app declares, and the number of its [`DeclaredInputs`].
    ordered: OnceLock<(u64, Inputs)>,
}

/// A clone is made to be changed, so it has only the inputs.
impl Clone for InputBlock {
    fn clone(&self) -> Self {
        let items = self.items.clone();
        Self {
            items,
            ..Self::default()
        }
    }
}

impl InputBlock {
    /// Adds an input, as [`Inputs::with`] does.
    pub fn add<T: Fingerprint + Send + Sync + 'static>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: T,
    ) {
        let input = Input {
            name: name.into(),
            value: InputValue::new(value),
        };
        match self.items.iter_mut().find(|old| old.name == input.name) {
            Some(old) => *old = input,
            None => self.items.push(input),
        }
    }
}

#[derive(Clone)]
struct Input {
    name: Cow<'static, str>,
    value: InputValue,
}

impl Inputs {
    /// No inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input. A name given twice keeps its place and has the later value.
    ///
    /// A [`Value`] is shared, and makes the same key as the bare value.
    #[must_use]
    pub fn with<T: Fingerprint + Send + Sync + 'static>(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: T,
    ) -> Self {
        self.inner().add(name, value);
        self
    }

    /// For adding several inputs: [`with`](Self::with) would check each time whether they are shared.
    #[doc(hidden)]
    #[inline]
    pub fn inner(&mut self) -> &mut InputBlock {
        let inner = Arc::make_mut(&mut self.0);
        inner.encoded = OnceLock::new();
        inner.ordered = OnceLock::new();
        inner
    }

    /// The input of that name.
    ///
    /// Finds a `T` that was given bare, as a [`Value<T>`], or as a [`Data`] that holds one. [`value`](Self::value) finds
    /// one that has to be converted, too.
    ///
    /// # Errors
    /// If there is no such input, or it has another type.
    pub fn get<T: Send + Sync + 'static>(&self, name: &str) -> Result<&T, Error> {
        let input = self.find(name)?;
        let shared = || input.value.downcast_ref::<Value<T>>().map(|value| &**value);
        let found = input.value.downcast_ref::<T>().or_else(shared);
        let found = found.or_else(|| input.value.data()?.view());
        found.ok_or_else(|| mismatch::<T>(input))
    }

    /// The input of that name as a shared value, however it was given. Numbers and literals that were given bare are
    /// copied; a literal is a `String` too, and a [`Data`] what it [is](Data::get).
    ///
    /// # Errors
    /// If there is no such input, or it has another type.
    pub fn value<T: Send + Sync + 'static>(&self, name: &str) -> Result<Value<T>, Error> {
        let input = self.find(name)?;
        let shared = input.value.downcast_ref::<Value<T>>().cloned();
        let found = shared.or_else(|| input.value.to_shared().into_value());
        let found = found.or_else(|| literal(&input.value).map(Value::new));
        let found = found.or_else(|| input.value.data()?.get());
        found.ok_or_else(|| mismatch::<T>(input))
    }

    /// The input of that name as a shared value, whatever its type and however it was given.
    ///
    /// ```
    /// use sde::{Value, inputs};
    ///
    /// let inputs = inputs! { x: Value::new(1.5_f64) };
    /// assert_eq!(*inputs.get_erased("x")?.downcast::<f64>().unwrap(), 1.5);
    /// # Ok::<(), sde::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such input.
    pub fn get_erased(&self, name: &str) -> Result<ErasedValue, Error> {
        Ok(self.find(name)?.value.erased())
    }

    /// A copy of the input of that name, however it was given. Used by the macros.
    #[doc(hidden)]
    pub fn owned<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Result<T, Error> {
        let text = || literal(&self.find(name).ok()?.value);
        let given = self.get::<T>(name).cloned();
        given.or_else(|error| text().ok_or(error))
    }

    /// The input of that name as text, given as a `String` or a `&'static str`.
    ///
    /// # Errors
    /// If there is no such input, or it is not text.
    pub fn text(&self, name: &str) -> Result<&str, Error> {
        let input = self.find(name)?;
        match input.value.downcast_ref::<&'static str>() {
            Some(text) => Ok(text),
            None => self.get::<String>(name).map(String::as_str),
        }
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.items.iter().map(|input| &*input.name)
    }

    /// The number of inputs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Whether there are no inputs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.items.is_empty()
    }

    fn find(&self, name: &str) -> Result<&Input, Error> {
        let found = self.0.items.iter().find(|input| input.name == name);
        found.ok_or_else(|| Error::unknown_name("the call", "input", name, self.names()))
    }

    /// Whether they were put in another order for an app, and keep that.
    #[inline]
    pub(crate) fn have_kept_order(&self) -> bool {
        self.0.ordered.get().is_some()
    }

    /// `x = 1.5, label = "run 1"`, each value cut short.
    pub(crate) fn short(&self) -> String {
        let one = |input: &Input| format!("{} = {}", input.name, describe(input.value.any()));
        self.0.items.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The encoding, if it was made before and is kept.
    #[inline]
    pub(crate) fn kept(&self) -> Option<&[u8]> {
        self.0.encoded.get().map(|kept| &**kept)
    }

    /// Makes the encoding, and keeps it if it can't change while the inputs are held.
    #[inline(never)]
    pub(crate) fn encode(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        let mut items = self.0.items.iter();
        items.try_for_each(|input| to.named(&input.name, input.value.any()))?;
        if !to.is_volatile() {
            let made = to.finish()?;
            self.0.encoded.get_or_init(|| SmallVec::from_slice(made));
        }
        Ok(())
    }

    pub(crate) fn with_encoded<R>(
        &self,
        then: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, FingerprintError> {
        match self.kept() {
            Some(kept) => Ok(then(kept)),
            None => with_encoder(|to| {
                self.encode(to)?;
                Ok(then(to.finish()?))
            }),
        }
    }

    /// The encoding, made if necessary; `None` if it must be made anew each time.
    pub(crate) fn to_keep(&self) -> Result<Option<&[u8]>, FingerprintError> {
        if self.kept().is_none() {
            self.with_encoded(|_| ())?;
        }
        Ok(self.kept())
    }

    /// The inputs without their Rust types, as far as [`Data`] has those: equal inputs, of one key, then are equal to
    /// the app too.
    pub(crate) fn without_types(&self) -> Self {
        let mut items = self.0.items.clone();
        for input in &mut items {
            let bare = match input.value.data() {
                Some(data) => data.shared().cloned().map(InputValue::new),
                None => Data::of(&input.value.erased()).map(InputValue::new),
            };
            if let Some(value) = bare {
                input.value = value;
            }
        }
        // Not the encoding: a body may pass them on, and then they are the key of what it calls.
        Self(Arc::new(InputBlock {
            items,
            ..InputBlock::default()
        }))
    }

    pub(crate) fn summaries(&self, cursor: &mut EncodedCursor<'_>) -> Vec<ValueSummary> {
        let one = |input: &Input| input.value.any().summary(input.name.clone(), cursor);
        self.0.items.iter().map(one).collect()
    }
}

/// The text of a literal, if a `T` is a `String`.
fn literal<T: 'static>(value: &InputValue) -> Option<T> {
    let text = value.downcast_ref::<&'static str>()?;
    let text: &mut dyn Any = &mut Some((*text).to_owned());
    text.downcast_mut::<Option<T>>()?.take()
}

fn mismatch<T>(input: &Input) -> Error {
    let what = format!("input \"{}\"", printable(&input.name));
    let is = input.value.to_shared().type_name();
    Error::type_mismatch(what, is, std::any::type_name::<T>())
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for InputBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for input in &self.items {
            map.entry(
                &input.name,
                &format_args!("{}", describe(input.value.any())),
            );
        }
        map.finish()
    }
}

/// Makes [`Inputs`] from `name: value` pairs.
///
/// ```
/// let inputs = sde::inputs! { x: 1.5_f64, label: "run 1".to_owned() };
/// assert_eq!(inputs.names().collect::<Vec<_>>(), ["x", "label"]);
/// ```
#[macro_export]
macro_rules! inputs {
    () => { $crate::Inputs::new() };
    ($($name:ident : $value:expr),+ $(,)?) => {{
        // A variable can't have the name of an app of the caller's.
        let mut __inputs = $crate::Inputs::new();
        let __inner = __inputs.inner();
        $(__inner.add($crate::__private::plain(stringify!($name)), $value);)+
        __inputs
    }};
}

/// The name without the `r#` that makes a keyword an identifier.
#[doc(hidden)]
#[inline]
pub fn plain(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(inputs: &Inputs) -> Vec<u8> {
        inputs.with_encoded(<[u8]>::to_vec).unwrap()
    }

    /// A stale encoding would be a hit on another result.
    #[test]
    fn an_encoding_that_was_kept_is_not_that_of_changed_inputs() {
        let one = inputs! { x: 1_u8 };
        encoded(&one);
        let two = one.with("y", 2_u8);
        assert_eq!(encoded(&two), encoded(&inputs! { x: 1_u8, y: 2_u8 }));
        let later = two.clone().with("x", "later".to_owned());
        assert_eq!(encoded(&later), encoded(&inputs! { x: "later", y: 2_u8 }));
        assert_eq!(two.get::<u8>("x").unwrap(), &1);
    }

    #[test]
    fn more_inputs_than_one_block_has_room_for_are_the_same_to_the_key() {
        let names: Vec<_> = (0..40_u32).map(|number| format!("x{number}")).collect();
        let add = |inputs: Inputs, name: &String| inputs.with(name.clone(), name.len());
        let inputs = names.iter().fold(Inputs::new(), add);
        let written = with_encoder(|to| {
            names
                .iter()
                .for_each(|name| to.named(name, &name.len()).unwrap());
            to.finish().unwrap().to_vec()
        });
        assert!(inputs.names().eq(&names));
        assert_eq!([encoded(&inputs), encoded(&inputs)], [&*written; 2]);
    }
}
