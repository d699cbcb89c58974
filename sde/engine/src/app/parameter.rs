//! Parameters, which a user sets on an app by name.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::inputs::AnyInput;
use crate::key::{Fingerprint, describe};

/// A parameter that an app declares: its name, its default or type, its checks.
///
/// ```
/// use sde::Parameter;
///
/// let threshold = Parameter::new("threshold", 1e-9_f64)
///     .about("converged when the energy changes by less, in hartree")
///     .check(|value: &f64| match *value > 0.0 {
///         true => Ok(()),
///         false => Err("must be positive".into()),
///     });
/// let threads = Parameter::new("threads", 1_usize).transparent();
/// let basis = Parameter::required::<String>("basis");
/// # let _ = (threshold, threads, basis);
/// ```
#[derive(Clone)]
pub struct Parameter {
    pub(crate) name: Cow<'static, str>,
    pub(crate) about: Cow<'static, str>,
    pub(crate) default: Option<Setting>,
    pub(crate) type_name: &'static str,
    pub(crate) transparent: bool,
    checks: Vec<Check>,
}

type Check = Arc<dyn Fn(&dyn Any, &ParameterValues<'_>) -> Result<(), String> + Send + Sync>;

impl Parameter {
    /// A parameter with a default, whose type is the parameter's.
    #[must_use]
    pub fn new<T: Fingerprint + Send + Sync + 'static>(
        name: impl Into<Cow<'static, str>>,
        default: T,
    ) -> Self {
        Self {
            default: Some(Setting::new(default)),
            ..Self::required::<T>(name)
        }
    }

    /// A parameter that has to be set before the app can run.
    #[must_use]
    pub fn required<T: Fingerprint + Send + Sync + 'static>(
        name: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            name: name.into(),
            about: Cow::Borrowed(""),
            default: None,
            type_name: std::any::type_name::<T>(),
            transparent: false,
            checks: Vec::new(),
        }
    }

    /// Describes what the parameter does, with its unit.
    #[must_use]
    pub fn about(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.about = text.into();
        self
    }

    /// Leaves the parameter out of the key, since it can't change a result (a number of threads, verbosity).
    #[must_use]
    pub fn transparent(mut self) -> Self {
        self.transparent = true;
        self
    }

    /// Adds a check of the value alone; its error says which values are right.
    #[must_use]
    pub fn check<T: 'static>(
        self,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check_with(move |value: &T, _| check(value))
    }

    /// Adds a check that looks at other parameters too.
    #[must_use]
    pub fn check_with<T: 'static>(
        mut self,
        check: impl Fn(&T, &ParameterValues<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let check = move |value: &dyn Any, others: &ParameterValues<'_>| {
            let expected = std::any::type_name::<T>();
            let wrong = || format!("its check expects a {expected}: the app declares it wrongly");
            check(value.downcast_ref().ok_or_else(wrong)?, others)
        };
        self.checks.push(Arc::new(check));
        self
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

    /// Whether it is left out of the key.
    #[must_use]
    pub fn is_transparent(&self) -> bool {
        self.transparent
    }

    pub(crate) fn verify(&self, value: &Setting, all: &ParameterValues<'_>) -> Result<(), String> {
        let mut checks = self.checks.iter();
        checks.try_for_each(|check| check(value.any(), all))
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameter")
            .field("name", &self.name)
            .field("type", &self.type_name)
            .field("default", &self.default)
            .field("transparent", &self.transparent)
            .finish_non_exhaustive()
    }
}

/// The values of all parameters of one app, as its checks see them.
pub struct ParameterValues<'a>(pub(crate) &'a dyn Fn(&str) -> Option<&'a Setting>);

impl ParameterValues<'_> {
    /// The value of another parameter; `None` if it is not set, or not a `T`.
    #[must_use]
    pub fn get<T: 'static>(&self, name: &str) -> Option<&T> {
        (self.0)(name)?.any().downcast_ref()
    }
}

impl fmt::Debug for ParameterValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParameterValues")
    }
}

/// A type-erased value of a parameter.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) value: Arc<dyn AnyInput>,
    pub(crate) type_name: &'static str,
}

impl Setting {
    pub(crate) fn new<T: Fingerprint + Send + Sync + 'static>(value: T) -> Self {
        Self {
            value: Arc::new(value),
            type_name: std::any::type_name::<T>(),
        }
    }

    pub(crate) fn any(&self) -> &dyn Any {
        &*self.value
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(&*self.value))
    }
}
