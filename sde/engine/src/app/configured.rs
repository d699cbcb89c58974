//! Apps whose settings are the fields of a struct.

use std::marker::PhantomData;

use super::definition::App;
use super::info::{AppInfo, Cost};
use super::{Handle, Instance};
use crate::error::{AppError, Error};
use crate::inputs::Inputs;
use crate::key::{Encoder, Fingerprint, FingerprintError, Short, TypeWriter};
use crate::result_map::ResultMap;

/// A struct whose fields are the parameters and slots of a [`ConfiguredApp`], by `#[derive(sde::Settings)]`.
///
/// The derive gives the struct `T` a function `T::app()`: the app with its defaults, of a type named as the struct and
/// `App`. That type has a method for each field, and goes wherever an app goes:
/// `sde.run(&T::app().scale(2.0).term(cube), &inputs)`.
/// Values are checked when the app is run, prepared or called.
///
/// A field is a setting of its name, with its documentation as the description. One without a default has to be set. A
/// slot's field has the type [`Prepared`](crate::Prepared).
///
/// | in `#[setting(..)]` | meaning |
/// |---|---|
/// | `default = value` | the value if none is set |
/// | `check = function`, `check_with = function` | as [`Parameter::check`](crate::Parameter::check) and [`Parameter::check_with`](crate::Parameter::check_with) |
/// | `transparent` | as [`Parameter::transparent`](crate::Parameter::transparent) |
/// | `name = ".."`, `about = ".."` | in place of the field's name and documentation |
///
/// | in `#[slot(..)]` | meaning |
/// |---|---|
/// | `default = app` | the app if none is put there |
/// | `name = ".."`, `about = ".."` | in place of the field's name and documentation |
///
/// There is an example at [`ConfiguredApp`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no settings: it does not derive `sde::Settings`",
    note = "write `#[derive(sde::Settings)]` on the struct"
)]
pub trait Settings: Send + Sync + Sized + 'static {
    /// The name of the struct.
    const NAME: &'static str;

    /// Adds the parameters and slots to a description, and the struct's documentation where it has none.
    fn declare(info: AppInfo) -> AppInfo;

    /// The values for the run of this handle.
    ///
    /// # Errors
    /// If the handle belongs to no run, or to one of another app.
    fn read(sde: &Handle) -> Result<Self, Error>;
}

/// An app whose parameters and slots are the fields of a struct that derives [`Settings`](trait@crate::Settings).
///
/// `run` finds the values in `self`. `T::app()`, which the derive makes, gives the app with its defaults, and has a
/// method for each field. By a name at run time [`Instance::set`] sets one: `Instance::from(T::app()).set(..)`.
///
/// The fields are no part of the key by themselves: what is set is, by name. For a value whose own fields are in the key
/// write an [`App`].
///
/// ```
/// use sde::{AppError, AppInfo, ConfiguredApp, Handle, Inputs, Prepared, ResultMap, ResultSpec, Sde, inputs};
///
/// #[sde::app]
/// fn square(x: f64) -> f64 { x * x }
/// #[sde::app]
/// fn cube(x: f64) -> f64 { x * x * x }
///
/// /// A sum of what the app in its slot makes of some numbers.
/// #[derive(sde::Settings)]
/// struct Total {
///     /// Multiplies the sum.
///     #[setting(default = 1.0)]
///     scale: f64,
///     /// x -> result
///     #[slot(default = square)]
///     term: Prepared,
/// }
///
/// #[sde::app]
/// impl ConfiguredApp for Total {
///     fn info() -> AppInfo {
///         AppInfo::named("Total").result(ResultSpec::new::<f64>("total"))
///     }
///
///     fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
///         let mut total = 0.0;
///         for x in inputs.get::<Vec<f64>>("numbers")? {
///             total += *sde.run(&self.term, &inputs! { x: *x })?.get::<f64>("result")?;
///         }
///         Ok(ResultMap::new().with("total", self.scale * total))
///     }
/// }
///
/// let (sde, numbers) = (Sde::new(), inputs! { numbers: vec![1.0, 2.0] });
/// let total = |app| sde.run(&app, &numbers)?.get::<f64>("total");
/// assert_eq!(*total(Total::app())?, 5.0);
/// assert_eq!(*total(Total::app().scale(2.0).term(cube))?, 18.0);
/// # Ok::<(), sde::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has settings, and is no app",
    note = "write `#[sde::app] impl sde::ConfiguredApp for {Self}`"
)]
pub trait ConfiguredApp: Settings {
    /// The description of the app, without parameters and slots. It must be the same on every call.
    fn info() -> AppInfo;

    /// Computes the results, as [`App::run`] does.
    ///
    /// # Errors
    /// Whatever goes wrong.
    ///
    /// # Panics
    /// A panic reaches the caller on whose thread it happened.
    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError>;

    /// The expected cost of a run with these inputs, as [`App::cost`].
    fn cost(inputs: &Inputs) -> Option<Cost> {
        let _ = inputs;
        None
    }

    /// Lists what the app still lacks before it can run, as [`App::not_ready`] does.
    fn not_ready() -> Vec<String> {
        Vec::new()
    }
}

/// The app of a type with its defaults.
pub fn app_of<T: ConfiguredApp>() -> Instance {
    Instance::new(AppOf::<T>(PhantomData))
}

/// The app of a type, whose settings the engine holds.
struct AppOf<T>(PhantomData<fn() -> T>);

impl<T: ConfiguredApp> App for AppOf<T> {
    fn info(&self) -> AppInfo {
        T::declare(T::info())
    }

    fn run(&self, sde: &Handle, inputs: &Inputs) -> Result<ResultMap, AppError> {
        T::read(sde)?.run(sde, inputs)
    }

    fn cost(&self, inputs: &Inputs) -> Option<Cost> {
        T::cost(inputs)
    }

    fn not_ready(&self) -> Vec<String> {
        T::not_ready()
    }
}

/// A structure of this name without fields.
impl<T: Settings> Fingerprint for AppOf<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure(T::NAME, |_| Ok(()))
    }

    fn describe(&self, out: &mut Short) {
        out.structure(T::NAME, &[]);
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.declared(T::NAME, 0);
    }
}

impl<A: App> From<A> for Instance {
    fn from(app: A) -> Self {
        Self::new(app)
    }
}
