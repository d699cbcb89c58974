//! The app of a function: its code as Python tells it, and the globals that its calls are given as inputs.

use std::sync::{Arc, PoisonError};

use pyo3::prelude::*;
use sde::record::CodeId;
use sde::{AppInfo, Data, DynApp, Inputs, Instance, Prepared, ResultSpec};

use crate::function::Function;
use crate::shown::Shown;
use crate::store::Opened;
use crate::watch::Watched;
use crate::write::{self, Purpose};
use crate::{KeyingError, call, failed, warn};

/// What code a function has, as Python tells it: the digest of its own, that of each part by name, mutable globals by
/// name, and what to compare.
type Code = (
    [u8; 32],
    Vec<(String, [u8; 32])>,
    Vec<(String, Py<PyAny>)>,
    Py<Watched>,
);

/// The app of a function, and the objects that it was made from.
pub(crate) struct Identified {
    opened: u64,
    pub(crate) app: Prepared,
    globals: Vec<(String, Py<PyAny>)>,
    watched: Py<Watched>,
}

impl Function {
    /// The app, identified anew if an object that it was made from is another one now.
    pub(crate) fn identified(&self, py: Python<'_>, opened: &Opened) -> PyResult<Arc<Identified>> {
        let known = self
            .identified
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(known) = known
            && known.opened == opened.number
            && known.watched.get().is_unchanged(py)?
        {
            return Ok(known);
        }
        let anew = Arc::new(self.identify(py, opened)?);
        // What was known before is dropped without the lock: Python code may run then.
        let _before = self
            .identified
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(Arc::clone(&anew));
        Ok(anew)
    }

    fn identify(&self, py: Python<'_>, opened: &Opened) -> PyResult<Identified> {
        let (own, parts, globals, watched): Code = self.code.bind(py).call0()?.extract()?;
        let code = match &self.version {
            Some(version) => CodeId::Version(version.clone().into()),
            None => CodeId::Source(own.into()),
        };
        let mut result = ResultSpec::data("result").tagged(self.tags);
        if !self.is_compared {
            result = result.not_compared();
        }
        let mut info = AppInfo::with_code(self.name.clone(), code)
            .about(self.about.clone())
            .result(result);
        for (name, digest) in parts {
            info = info.helper(name, digest.into());
        }
        let app = Instance::new(DynApp::new(info, call::body));
        let app = opened.sde.prepare(&app).map_err(failed)?;
        Ok(Identified {
            opened: opened.number,
            app,
            globals,
            watched,
        })
    }
}

impl Identified {
    /// The inputs of a call of a function, with the values of the globals that its code reaches.
    pub(crate) fn with_globals(
        &self,
        py: Python<'_>,
        of: &str,
        mut inputs: Inputs,
    ) -> PyResult<Inputs> {
        for (name, value) in &self.globals {
            let value = value.bind(py);
            let data = match write::reached(value) {
                Err(error) if error.is_instance_of::<KeyingError>(py) => {
                    let why = error.value(py);
                    let text = format!("{of} counts {name} by its type only: {name}{why}");
                    warn(py, text)?;
                    let of = value.get_type().fully_qualified_name()?.to_string();
                    write::tagged("type", of.into())
                }
                data => data?,
            };
            inputs = inputs.with(format!("global {name}"), Shown(data));
        }
        Ok(inputs)
    }

    /// Warns of globals that a run of a function has changed: the next call is another one.
    pub(crate) fn warn_of_changes(
        &self,
        py: Python<'_>,
        of: &str,
        inputs: &Inputs,
    ) -> PyResult<()> {
        for (name, value) in &self.globals {
            let before = inputs.get::<Shown<Data>>(&format!("global {name}"));
            let after = write::data(value.bind(py), Purpose::Key);
            let (Ok(before), Ok(after)) = (before, after) else {
                continue;
            };
            if write::digest_of(&before.0)? != write::digest_of(&after)? {
                warn(
                    py,
                    format!(
                        "{name} was changed while {of} ran, and counts: the next call runs again. \
                         Return the value in place of changing a global"
                    ),
                )?;
            }
        }
        Ok(())
    }
}
