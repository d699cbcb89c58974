//! The settings of an app, checked against its declarations.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::definition::App;
use super::info::AppInfo;
use super::parameter::{Parameter, ParameterValues, Setting};
use super::slot::{Slot, SubApp};
use crate::error::{Error, printable};
use crate::inputs::InputSpec;
use crate::key::describe;
use crate::result_map::ResultSpec;

/// The settings of one app: what was set, over the declared defaults.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) info: Arc<AppInfo>,
    /// Only what was set; the defaults are in `info`.
    pub(super) settings: BTreeMap<Cow<'static, str>, Setting>,
    pub(super) slots: BTreeMap<Cow<'static, str>, SubApp>,
}

impl Setup {
    pub(crate) fn defaults(app: &dyn App) -> Self {
        Self::of(app.info())
    }

    /// The defaults of this description.
    pub(crate) fn of(info: AppInfo) -> Self {
        Self {
            info: Arc::new(info),
            settings: BTreeMap::new(),
            slots: BTreeMap::new(),
        }
    }

    pub(super) fn set(&mut self, name: &str, setting: Setting) -> Result<(), Error> {
        let parameter = self.declared(name)?.clone();
        if setting.type_name != parameter.type_name {
            return Err(self.other_type(name, parameter.type_name, setting.type_name));
        }
        self.settings.insert(parameter.name.clone(), setting);
        self.verify(&parameter)
    }

    pub(super) fn fill(&mut self, slot: &str, app: SubApp) -> Result<(), Error> {
        let Some(declared) = self.info.slots.iter().find(|s| s.name == slot) else {
            let names = self.info.slots.iter().map(|s| &s.name);
            return Err(Error::unknown_name(&self.info.name, "slot", slot, names));
        };
        self.slots.insert(declared.name.clone(), app);
        Ok(())
    }

    pub(crate) fn name(&self) -> Arc<str> {
        Arc::from(&*self.info.name)
    }

    /// The value of a parameter, or else its default.
    pub(crate) fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.get(name).or_else(|| {
            let declared = self.info.parameters.iter().find(|p| p.name == name)?;
            declared.default.as_ref()
        })
    }

    /// The sub-app in a slot, or else its default.
    pub(crate) fn sub_app(&self, slot: &str) -> Option<&SubApp> {
        self.slots.get(slot).or_else(|| {
            let declared = self.info.slots.iter().find(|s| s.name == slot)?;
            declared.default.as_ref()
        })
    }

    /// Checks that the app describes itself without contradiction.
    fn verify_names(&self) -> Result<(), Error> {
        let info = &self.info;
        let all: [(&str, Vec<&str>); 5] = [
            ("app name", vec![info.name()]),
            (
                "parameter",
                info.parameters.iter().map(Parameter::name).collect(),
            ),
            ("slot", info.slots.iter().map(Slot::name).collect()),
            ("input", info.inputs().iter().map(InputSpec::name).collect()),
            (
                "result",
                info.results.iter().map(|spec| spec.name()).collect(),
            ),
        ];
        for (what, names) in all {
            let mut seen = BTreeSet::new();
            let mut names = names.into_iter();
            if let Some(name) = names.find(|name| name.is_empty() || !seen.insert(*name)) {
                let name = printable(name);
                let why = format!("its {what} \"{name}\" is declared twice, or has no name");
                return Err(self.contradiction(why));
            }
        }
        let refused = info.results.iter().find_map(|spec| self.refused(spec));
        match refused.or_else(|| info.unknown_code().map(str::to_owned)) {
            None => Ok(()),
            Some(why) => Err(self.contradiction(why)),
        }
    }

    /// Why the app can't declare this result.
    fn refused(&self, spec: &ResultSpec) -> Option<String> {
        let is_ordinary = spec.parts.is_some() && !self.info.distributed;
        let ordinary = || {
            format!(
                "\"{}\" lies on several ranks, and the app is not `distributed`, so that they do not make it together",
                spec.name
            )
        };
        spec.refused(spec.tags)
            .or_else(|| is_ordinary.then(ordinary))
    }

    /// Runs the checks of every parameter that has a value.
    pub(crate) fn verify_all(&self) -> Result<(), Error> {
        self.verify_names()?;
        let info = Arc::clone(&self.info);
        info.parameters.iter().try_for_each(|p| self.verify(p))
    }

    fn verify(&self, parameter: &Parameter) -> Result<(), Error> {
        let Some(value) = self.setting(&parameter.name) else {
            return Ok(());
        };
        let look_up = |name: &str| self.setting(name);
        let verified = parameter.verify(value, &ParameterValues(&look_up));
        verified.map_err(|why| {
            let value = describe(&*value.value);
            Error::refused(
                format!("{value} as {}", self.parameter(&parameter.name)),
                why,
            )
        })
    }

    fn declared(&self, name: &str) -> Result<&Parameter, Error> {
        let mut all = self.info.parameters.iter();
        all.find(|p| p.name == name)
            .ok_or_else(|| self.no_parameter(name))
    }

    /// The error for the name of a parameter that the app does not have.
    pub(crate) fn no_parameter(&self, name: &str) -> Error {
        let names = self.info.parameters.iter().map(|p| &p.name);
        Error::unknown_name(&self.info.name, "parameter", name, names)
    }

    /// The error for a parameter that is given, or asked for, as another type.
    pub(crate) fn other_type(&self, name: &str, is: &str, wanted: &str) -> Error {
        Error::type_mismatch(self.parameter(name), is, wanted)
    }

    fn parameter(&self, name: &str) -> String {
        format!("parameter \"{}\" of {}", printable(name), self.info.name)
    }

    /// The error for a description that contradicts itself.
    fn contradiction(&self, why: String) -> Error {
        let app = printable(&self.info.name);
        Error::refused(format!("the `AppInfo` of {app}"), why)
    }
}
