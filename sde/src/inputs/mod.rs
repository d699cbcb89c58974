//! What is given to a run: ordered, named, typed values.

mod call;

pub(crate) use call::ErasedCall;
pub use call::{Argument, Call, InputSummary};

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, ErrorKind};
use crate::key::{Encoder, Fingerprint, FingerprintError, describe, with_encoder};
use crate::result_map::Value;

/// The inputs of one run.
///
/// Names, types, values and their order are all in the key. Made by
/// [`inputs!`](crate::inputs); cloning shares them. The encoding is made once and
/// kept, so running again with the same `Inputs` is cheaper than with new ones.
///
/// ```
/// use sde::inputs;
///
/// let inputs = inputs! { basis: "6-31G*".to_owned(), charge: -1_i32 };
/// assert_eq!(inputs.get::<String>("basis")?, "6-31G*");
/// assert!(inputs.get::<i32>("spin").unwrap_err().to_string().contains("given are: basis, charge"));
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Inputs(Arc<Inner>);

#[derive(Default)]
struct Inner {
    items: Vec<Input>,
    encoded: OnceLock<Box<[u8]>>,
}

#[derive(Clone)]
struct Input {
    name: Cow<'static, str>,
    value: Arc<dyn InputValue>,
}

/// What an input has to be: fingerprinted, shared between threads, and found
/// again by its type.
trait InputValue: Any + Send + Sync {
    fn encode(&self, name: &str, to: &mut Encoder<'_>) -> Result<(), FingerprintError>;
    fn digest(&self) -> [u8; 32];
    fn short(&self) -> String;
    fn type_name(&self) -> &'static str;
}

impl<T: Fingerprint + Send + Sync + 'static> InputValue for T {
    fn encode(&self, name: &str, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.named(name, self)
    }

    fn digest(&self) -> [u8; 32] {
        call::digest(self)
    }

    fn short(&self) -> String {
        describe(self)
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
}

impl Inputs {
    /// No inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The inputs with one more. A name given twice keeps its place and has the
    /// later value.
    ///
    /// A [`Value`] that is held already is shared, and makes the same key as the
    /// bare value.
    #[must_use]
    pub fn with<T: Fingerprint + Send + Sync + 'static>(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: T,
    ) -> Self {
        let name = name.into();
        let value: Arc<dyn InputValue> = Arc::new(value);
        let mut items = match Arc::get_mut(&mut self.0) {
            Some(inner) => std::mem::take(&mut inner.items),
            None => self.0.items.clone(),
        };
        match items.iter_mut().find(|input| input.name == name) {
            Some(input) => input.value = value,
            None => items.push(Input { name, value }),
        }
        Self(Arc::new(Inner {
            items,
            encoded: OnceLock::new(),
        }))
    }

    /// The input of that name.
    ///
    /// Finds a `T` however it was given: bare or as a [`Value<T>`].
    ///
    /// # Errors
    /// If there is no such input, or it has another type.
    pub fn get<T: Send + Sync + 'static>(&self, name: &str) -> Result<&T, Error> {
        let input = self.find(name)?;
        let any: &dyn Any = &*input.value;
        any.downcast_ref::<T>()
            .or_else(|| any.downcast_ref::<Value<T>>().map(|value| &**value))
            .ok_or_else(|| mismatch::<T>(input))
    }

    /// The input of that name as a shared value. One that was given bare is
    /// cloned.
    ///
    /// # Errors
    /// If there is no such input, or it has another type.
    pub fn value<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Result<Value<T>, Error> {
        let input = self.find(name)?;
        let any: &dyn Any = &*input.value;
        any.downcast_ref::<Value<T>>()
            .cloned()
            .or_else(|| any.downcast_ref::<T>().cloned().map(Value::new))
            .ok_or_else(|| mismatch::<T>(input))
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.items.iter().map(|input| &*input.name)
    }

    /// How many inputs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.items.is_empty()
    }

    fn find(&self, name: &str) -> Result<&Input, Error> {
        let found = self.0.items.iter().find(|input| input.name == name);
        found.ok_or_else(|| {
            ErrorKind::NoInput {
                name: name.to_owned(),
                given: self.names().map(str::to_owned).collect(),
            }
            .into()
        })
    }

    /// The encoding that is hashed; made once.
    pub(crate) fn encoded(&self) -> Result<&[u8], FingerprintError> {
        if let Some(kept) = self.0.encoded.get() {
            return Ok(kept);
        }
        let made: Box<[u8]> = with_encoder(|to| {
            self.write(to)?;
            Ok::<_, FingerprintError>(to.finish()?.into())
        })?;
        Ok(self.0.encoded.get_or_init(|| made))
    }

    fn write(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        let mut items = self.0.items.iter();
        items.try_for_each(|input| input.value.encode(&input.name, to))
    }

    pub(crate) fn summaries(&self) -> Vec<InputSummary> {
        self.0
            .items
            .iter()
            .map(|input| InputSummary {
                name: input.name.to_string(),
                short: input.value.short(),
                digest: input.value.digest(),
            })
            .collect()
    }
}

fn mismatch<T>(input: &Input) -> Error {
    ErrorKind::InputType {
        name: input.name.to_string(),
        wanted: std::any::type_name::<T>(),
        found: input.value.type_name(),
    }
    .into()
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for input in &self.0.items {
            map.entry(&input.name, &format_args!("{}", input.value.short()));
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
    ($($name:ident : $value:expr),* $(,)?) => {
        $crate::Inputs::new()$(.with(stringify!($name), $value))*
    };
}
