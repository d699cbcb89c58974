//! The inputs that an app declares. Given ones are checked against them, and put in their order, before a run is computed.
//!
//! A hit is not checked: its entry was made with inputs of that key, which were. So a value of another type that has the
//! key of the declared one is given a hit, and refused where it has to be computed. Inputs in another order miss at
//! first, and are looked up once more in the declared one; they keep it.

use std::any::{TypeId, type_name};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use smallvec::SmallVec;

use super::value::InputValue;
use super::{Input, InputBlock, Inputs};
use crate::error::{Error, ErrorKind, printable};
use crate::key::{Fingerprint, describe};
use crate::result_map::{Value, as_type};

/// An input that an app [declares](crate::AppInfo::input).
#[derive(Clone)]
pub struct InputSpec {
    name: Cow<'static, str>,
    type_name: &'static str,
    is_optional: bool,
    /// The types of values that a body which asks for it can take as they are.
    taken: [TypeId; 3],
    convert: fn(&InputValue) -> Option<InputValue>,
}

impl InputSpec {
    pub(crate) fn of<T: Fingerprint + Send + Sync + 'static>(
        name: impl Into<Cow<'static, str>>,
        is_optional: bool,
    ) -> Self {
        Self {
            name: name.into(),
            type_name: type_name::<T>(),
            is_optional,
            taken: taken::<T>(),
            convert: convert::<T>,
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The Rust name of the type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Whether a run may leave it out.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.is_optional
    }

    fn takes(&self, given: &Input) -> bool {
        self.name == given.name && self.taken.contains(&given.value.type_id())
    }

    /// The given value, as one that the app can take.
    fn fit(&self, given: &InputValue) -> Option<InputValue> {
        match self.taken.contains(&given.type_id()) {
            true => Some(given.clone()),
            false => (self.convert)(given),
        }
    }
}

impl fmt::Debug for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputSpec")
            .field("name", &self.name)
            .field("type_name", &self.type_name)
            .field("is_optional", &self.is_optional)
            .finish_non_exhaustive()
    }
}

/// The types of which a body can take a `T`. A literal has the key of the `String`, and stays one: another encoding
/// would hash all that is long again. `Inputs::text` and `Inputs::value` give both.
fn taken<T: 'static>() -> [TypeId; 3] {
    let bare = TypeId::of::<T>();
    let literal = match bare == TypeId::of::<String>() {
        true => TypeId::of::<&'static str>(),
        false => bare,
    };
    [bare, TypeId::of::<Value<T>>(), literal]
}

/// A value without a Rust type as a `T`, or as one without where the app declares that.
fn convert<T: Fingerprint + Send + Sync + 'static>(given: &InputValue) -> Option<InputValue> {
    let value = as_type(&given.erased(), TypeId::of::<T>())?;
    value.into_value::<T>().map(InputValue::new)
}

/// All inputs that an app declares, in their order.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct DeclaredInputs {
    specs: Vec<InputSpec>,
    /// Of this list alone in the process, by which inputs that were put in its order are known.
    number: u64,
}

/// The list of an `#[sde::app]` function, made once.
#[doc(hidden)]
pub type FunctionInputs = LazyLock<Arc<DeclaredInputs>>;

impl Default for DeclaredInputs {
    fn default() -> Self {
        Self {
            specs: Vec::new(),
            number: next_number(),
        }
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl DeclaredInputs {
    /// The list with an input that every run is given. Used by the macros.
    #[must_use]
    pub fn with<T: Fingerprint + Send + Sync + 'static>(self, name: &'static str) -> Self {
        self.and(InputSpec::of::<T>(name, false))
    }

    pub(crate) fn and(mut self, spec: InputSpec) -> Self {
        self.specs.push(spec);
        self.number = next_number();
        self
    }

    pub(crate) fn specs(&self) -> &[InputSpec] {
        &self.specs
    }

    /// The given inputs in the declared order, if they had another; `None` if they are as declared.
    pub(crate) fn check(&self, app: &str, given: &Inputs) -> Result<Option<Inputs>, Error> {
        if let Some(ordered) = self.kept(given) {
            return Ok(Some(ordered.clone()));
        }
        if self.are(given) {
            return Ok(None);
        }
        let ordered = self.ordered(app, given)?;
        // For the first of several apps with orders of their own.
        let _ = given.0.ordered.set((self.number, ordered.clone()));
        Ok(Some(ordered))
    }

    /// The given inputs in the declared order, if they had another and were checked before.
    #[inline]
    pub(crate) fn kept<'i>(&self, given: &'i Inputs) -> Option<&'i Inputs> {
        let (number, ordered) = given.0.ordered.get()?;
        (*number == self.number).then_some(ordered)
    }

    /// Whether the inputs are those declared, in the declared order.
    fn are(&self, given: &Inputs) -> bool {
        let mut given = given.0.items.iter().peekable();
        let are_given = self
            .specs
            .iter()
            .all(|spec| given.next_if(|input| spec.takes(input)).is_some() || spec.is_optional);
        are_given && given.next().is_none()
    }

    /// The inputs in the declared order.
    #[cold]
    fn ordered(&self, app: &str, given: &Inputs) -> Result<Inputs, Error> {
        let is_declared = |name: &str| self.specs.iter().any(|spec| spec.name == name);
        if let Some(name) = given.names().find(|name| !is_declared(name)) {
            return Err(Error::unknown_name(
                app,
                "input",
                name,
                self.specs.iter().map(InputSpec::name),
            ));
        }
        let mut items = SmallVec::new();
        for spec in &self.specs {
            let input = given.0.items.iter().find(|input| input.name == spec.name);
            match input {
                Some(input) => items.push(Input {
                    name: input.name.clone(),
                    value: spec
                        .fit(&input.value)
                        .ok_or_else(|| mismatch(app, spec, input))?,
                }),
                None if spec.is_optional => {}
                None => return Err(missing(app, spec, given)),
            }
        }
        Ok(Inputs(Arc::new(InputBlock {
            items,
            ..InputBlock::default()
        })))
    }
}

/// The error for an input that is not given.
#[cold]
fn missing(app: &str, spec: &InputSpec, given: &Inputs) -> Error {
    let (app, name) = (app.into(), spec.name.to_string());
    let given = given.names().map(str::to_owned).collect();
    ErrorKind::MissingInput { app, name, given }.into()
}

/// The error for an input of another type than the app declares.
#[cold]
fn mismatch(app: &str, spec: &InputSpec, given: &Input) -> Error {
    let what = format!("input \"{}\" of {app}", printable(&spec.name));
    let is = match given.value.data() {
        Some(data) => format!("`Data` ({})", describe(data)),
        None => given.value.to_shared().type_name().to_owned(),
    };
    Error::type_mismatch(what, &is, spec.type_name)
}
