//! An app with its settings.

use std::fmt;
use std::sync::Arc;

use super::definition::App;
use super::info::AppInfo;
use super::parameter::Setting;
use super::setup::Setup;
use super::slot::SubApp;
use crate::error::Error;
use crate::key::Fingerprint;

/// An app with its parameters and sub-apps set.
///
/// ```
/// # use sde::*;
/// # #[derive(Fingerprint)]
/// # struct Solver;
/// # impl App for Solver {
/// #     fn info(&self) -> AppInfo {
/// #         AppInfo::new("doc.Solver", "1")
/// #             .parameter(Parameter::new("tolerance", 1e-6_f64))
/// #             .result(ResultSpec::new::<f64>("tolerance"))
/// #     }
/// #     fn run(&self, sde: &Handle, _: &Inputs) -> Result<ResultMap, AppError> {
/// #         Ok(ResultMap::new().with("tolerance", *sde.parameter::<f64>("tolerance")?))
/// #     }
/// # }
/// let sde = Sde::new();
/// let loose = Instance::new(Solver).set("tolerance", 1e-3)?;
/// let tight = Instance::new(Solver).set("tolerance", 1e-9)?;
/// assert_eq!(*sde.run(&loose, &inputs! {})?.get::<f64>("tolerance")?, 1e-3);
/// assert_eq!(*sde.run(&tight, &inputs! {})?.get::<f64>("tolerance")?, 1e-9);
///
/// let error = Instance::new(Solver).set("tolerence", 1e-9).unwrap_err();
/// assert!(error.to_string().contains("did you mean: tolerance"));
/// # Ok::<(), sde::Error>(())
/// ```
#[derive(Clone)]
pub struct Instance {
    pub(crate) app: Arc<dyn App>,
    pub(crate) setup: Setup,
}

impl Instance {
    /// The app with all its defaults.
    #[must_use]
    pub fn new(app: impl App) -> Self {
        Self {
            setup: Setup::defaults(&app),
            app: Arc::new(app),
        }
    }

    /// The instance with a parameter set.
    ///
    /// # Errors
    /// If the app has no such parameter, the value is of another type than the
    /// parameter's, or a check refuses it.
    pub fn set<T: Fingerprint + Send + Sync + 'static>(
        self,
        name: &str,
        value: T,
    ) -> Result<Self, Error> {
        self.with_setting(name, Setting::new(value))
    }

    pub(crate) fn with_setting(mut self, name: &str, setting: Setting) -> Result<Self, Error> {
        self.setup.set(name, setting)?;
        Ok(self)
    }

    /// The instance with an app, or the name of a registered one, in a sub-app
    /// slot.
    ///
    /// # Errors
    /// If the app has no such slot. A name that leads nowhere is an error when the instance is prepared or run.
    pub fn fill(mut self, slot: &str, app: impl Into<SubApp>) -> Result<Self, Error> {
        self.setup.fill(slot, app.into())?;
        Ok(self)
    }

    /// The instance with a parameter of its app's own struct set. It is checked when the app is identified.
    #[doc(hidden)]
    #[must_use]
    pub fn with<T: Fingerprint + Send + Sync + 'static>(
        mut self,
        name: &'static str,
        value: T,
    ) -> Self {
        let setting = Setting::new(value);
        self.setup.settings.insert(name.into(), setting);
        self
    }

    /// The instance with an app in a slot of its app's own struct.
    #[doc(hidden)]
    #[must_use]
    pub fn filled(mut self, slot: &'static str, app: SubApp) -> Self {
        self.setup.slots.insert(slot.into(), app);
        self
    }

    /// The description of the app.
    #[must_use]
    pub fn info(&self) -> &AppInfo {
        &self.setup.info
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("app", &self.setup.info.name)
            .field("settings", &self.setup.settings)
            .field("slots", &self.setup.slots)
            .finish()
    }
}
