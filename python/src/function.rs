//! A function whose results are remembered.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use sde::record::CodeId;
use sde::{
    AppInfo, CancelToken, DynApp, Handle, Inputs, Instance, Outcome, Peek, Policy, Prepared,
    ResultSpec, Tags,
};

use crate::bind::{self, Parameter, Told};
use crate::call::{self, Call, Cancel, Stay};
use crate::store::{Opened, Store};
use crate::write::{self, Purpose};
use crate::{Error, KeyingError, Unkept, Unreadable, current, failed, read, warn};

/// A function of Python, and how its calls are keyed. Its subclass in Python has the rest of the interface.
#[pyclass(frozen, subclass, dict, weakref, module = "sde._sde")]
pub(crate) struct Function {
    store: Py<Store>,
    function: Py<PyAny>,
    name: String,
    about: String,
    parameters: Vec<Parameter>,
    tags: Tags,
    version: Option<String>,
    /// Whether arrays that come back are copies, which may be written to.
    is_writable: bool,
    /// Tells what the function's code is: `code() -> Told`.
    code: Py<PyAny>,
    /// The app as it was identified last.
    identified: Mutex<Option<Arc<Identified>>>,
}

/// What code a function has, as Python tells it: the digest of its own, that of each part by name, mutable globals by
/// name, and what to compare.
type Code = (
    [u8; 32],
    Vec<(String, [u8; 32])>,
    Vec<(String, Py<PyAny>)>,
    Vec<(u8, Py<PyAny>, Py<PyString>, Option<Py<PyAny>>)>,
);

/// The app of a function, and the objects that it was made from.
struct Identified {
    opened: u64,
    app: Prepared,
    values: Vec<(String, Py<PyAny>)>,
    watched: Vec<Watched>,
}

/// A place in which an object was found: an item of a dict, or an attribute.
struct Watched {
    is_attribute: bool,
    container: Py<PyAny>,
    name: Py<PyString>,
    /// `None` if nothing was there.
    object: Option<Py<PyAny>>,
}

impl Watched {
    fn is_unchanged(&self, py: Python<'_>) -> bool {
        let (container, name) = (self.container.bind(py), self.name.bind(py));
        let found = match container.cast_exact::<PyDict>() {
            Ok(dict) if !self.is_attribute => dict.get_item(name).ok().flatten(),
            _ => container.getattr_opt(name).ok().flatten(),
        };
        match (&self.object, found) {
            (Some(object), Some(found)) => found.is(object.bind(py)),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Function {
    /// The app, identified anew if an object that it was made from is another one now.
    fn identified(&self, py: Python<'_>, opened: &Opened) -> PyResult<Arc<Identified>> {
        let known = self
            .identified
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(known) = known
            && known.opened == opened.number
            && known.watched.iter().all(|watched| watched.is_unchanged(py))
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
        let (own, parts, values, watched): Code = self.code.bind(py).call0()?.extract()?;
        let code = match &self.version {
            Some(version) => CodeId::Version(version.clone().into()),
            None => CodeId::Source(own.into()),
        };
        let result = ResultSpec::data("result").tagged(self.tags);
        let mut info = AppInfo::with_code(self.name.clone(), code)
            .about(self.about.clone())
            .result(result);
        for (name, digest) in parts {
            info = info.helper(name, digest.into());
        }
        let app = Instance::new(DynApp::new(info, call::body));
        let app = opened.sde.prepare(&app).map_err(|error| failed(&error))?;
        let watched = watched
            .into_iter()
            .map(|(kind, container, name, object)| Watched {
                is_attribute: kind == 1,
                container,
                name,
                object,
            });
        Ok(Identified {
            opened: opened.number,
            app,
            values,
            watched: watched.collect(),
        })
    }

    fn inputs(
        &self,
        app: &Identified,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Inputs> {
        let py = arguments.py();
        let Some(mut inputs) = bind::inputs(&self.parameters, arguments, named)? else {
            let inspect = py.import("inspect")?;
            let signature = inspect.call_method1("signature", (self.function.bind(py),))?;
            signature.call_method("bind", arguments, named)?;
            return Err(Error::new_err("these arguments do not fit the function"));
        };
        for (name, value) in &app.values {
            let value = value.bind(py);
            let data = match write::data(value, Purpose::Key) {
                Err(error) if error.is_instance_of::<KeyingError>(py) => {
                    let (of, why) = (&self.name, error.value(py));
                    warn(
                        py,
                        format!("{of} counts {name} by its type only: {name}{why}"),
                    )?;
                    let of = value.get_type().fully_qualified_name()?.to_string();
                    write::tagged("type", of.into())
                }
                data => data?,
            };
            inputs = inputs.with(format!("global {name}"), data);
        }
        Ok(inputs)
    }

    /// A call, ready to be made.
    fn asked(
        &self,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Arc<Opened>, Arc<Identified>, Inputs, Handle)> {
        let py = arguments.py();
        let opened = self.store.get().opened(py)?;
        let app = self.identified(py, &opened)?;
        let inputs = self.inputs(&app, arguments, named)?;
        let handle = current::handle(py, opened.number)?;
        let handle = handle.unwrap_or_else(|| (*opened.sde).clone());
        Ok((opened, app, inputs, handle))
    }

    fn result<'py>(&self, py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyAny>> {
        let result = outcome.results.get::<sde::Data>("result");
        let result = result.map_err(|error| failed(&error))?;
        let how = read::How {
            is_writable: self.is_writable,
            is_of_others: outcome.results.is_of_others(),
        };
        read::object(py, &result, how)
    }

    /// The result of a call. One that can't be made of what is stored is a miss, with a warning.
    fn called<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        token: CancelToken,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        let result = self.made(arguments, named, Policy::Use, token.clone());
        let why = match result {
            Err(error) if error.is_instance_of::<Unreadable>(py) => error,
            result => return result,
        };
        let name = &self.name;
        warn(
            py,
            format!("{name} is run again: its result {}", why.value(py)),
        )?;
        self.made(arguments, named, Policy::Refresh, token)
    }

    /// The result of a call. One that can't be stored goes to its caller, with a warning.
    fn made<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        policy: Policy,
        token: CancelToken,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = arguments.py();
        match self.outcome(arguments, named, policy, token) {
            Ok(outcome) => self.result(py, &outcome),
            Err(error) if error.is_instance_of::<Unkept>(py) => {
                let (object, why): (_, String) = error.value(py).getattr("args")?.extract()?;
                warn(
                    py,
                    format!("{} is not remembered: the result{why}", self.name),
                )?;
                Ok(object)
            }
            Err(error) => Err(error),
        }
    }

    fn outcome(
        &self,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
        policy: Policy,
        token: CancelToken,
    ) -> PyResult<Outcome> {
        let py = arguments.py();
        let (opened, app, inputs, handle) = self.asked(arguments, named)?;
        if policy == Policy::Use
            && let Some(outcome) = handle.request(&app.app, &inputs).ready()
        {
            return Ok(outcome);
        }
        let call = |to_main| {
            Arc::new(Call {
                function: self.function.clone_ref(py),
                arguments: arguments.clone().unbind(),
                named: named.map(|named| named.clone().unbind()),
                opened: opened.number,
                raised: Mutex::new(None),
                token,
                to_main,
            })
        };
        let run = |call: &Arc<Call>| {
            let handle = handle.with_cancel(&call.token);
            let request = handle.request(&app.app, &inputs).policy(policy);
            call::with_call(Arc::clone(call), || request.run())
        };
        let (call, made) = if is_main_thread(py)? {
            call::on_main(py, |to_main| call(Some(to_main)), run)?
        } else {
            let call = call(None);
            let made = Stay::within(|| py.detach(|| run(&call)));
            (call, made)
        };
        made.map_err(|error| {
            let raised = call
                .raised
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            raised.unwrap_or_else(|| failed(&error))
        })
    }
}

pub(crate) fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let here = threading.call_method0("current_thread")?;
    Ok(here.is(&threading.call_method0("main_thread")?))
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (store, function, name, about, parameters, tags, version, is_writable, code))]
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, from the package's own Python code"
    )]
    fn new(
        py: Python<'_>,
        store: Py<Store>,
        function: Py<PyAny>,
        name: String,
        about: String,
        parameters: Vec<Told>,
        tags: Vec<String>,
        version: Option<String>,
        is_writable: bool,
        code: Py<PyAny>,
    ) -> PyResult<Self> {
        let mut all = Tags::NONE;
        for name in tags {
            let tag = sde::Tag::ALL.into_iter().find(|tag| tag.name() == name);
            match tag {
                Some(tag) if tag != sde::Tag::Distributed => all = all.with(tag),
                _ => {
                    let why = "is no tag: \"intermediate\", \"expendable\" or \"no_cache\"";
                    return Err(PyValueError::new_err(format!("{name:?} {why}")));
                }
            }
        }
        Ok(Self {
            store,
            function,
            name,
            about,
            parameters: parameters
                .into_iter()
                .map(|told| Parameter::new(py, told))
                .collect(),
            tags: all,
            version,
            is_writable,
            code,
            identified: Mutex::new(None),
        })
    }

    #[pyo3(signature = (*arguments, **named))]
    fn __call__<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.called(arguments, named, CancelToken::new())
    }

    /// Runs the function in any case, and remembers what it returns.
    #[pyo3(signature = (*arguments, **named))]
    fn refresh<'py>(
        &self,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.made(arguments, named, Policy::Refresh, CancelToken::new())
    }

    /// Makes a call that another thread may give up.
    #[pyo3(signature = (cancel, arguments, named))]
    fn call_until<'py>(
        &self,
        cancel: &Cancel,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.called(arguments, named, cancel.token.clone())
    }

    /// The object that a call gives whose function returned that one, in another process.
    fn returned<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let data = write::data(object, Purpose::Result)?;
        let how = read::How {
            is_writable: self.is_writable,
            is_of_others: false,
        };
        read::object(object.py(), &data, how)
    }

    /// The name of its app, by which the program `sde` has it.
    fn app_name(&self) -> &str {
        &self.name
    }

    /// Has the engine know the function as it is now.
    fn declare(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.store.get().opened(py)?;
        self.identified(py, &opened).map(|_| ())
    }

    /// What a call would do, and why; it runs nothing. The first is whether a result is remembered.
    #[pyo3(signature = (*arguments, **named))]
    fn peek(
        &self,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(bool, String, String)> {
        let py = arguments.py();
        let (_, app, inputs, handle) = self.asked(arguments, named)?;
        let peek = py
            .detach(|| handle.peek(&app.app, &inputs))
            .map_err(|error| failed(&error))?;
        let is_remembered = matches!(peek, Peek::Hit { .. } | Peek::Load { .. });
        Ok((is_remembered, peek.key().to_string(), peek.to_string()))
    }

    /// Makes the result of a call one that is no longer given; says whether there was one.
    #[pyo3(signature = (reason, arguments, named))]
    fn invalidate_call(
        &self,
        reason: &str,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        let py = arguments.py();
        let (opened, app, inputs, handle) = self.asked(arguments, named)?;
        py.detach(|| {
            let peek = handle.peek(&app.app, &inputs)?;
            if !matches!(peek, Peek::Hit { .. } | Peek::Load { .. }) {
                return Ok(false);
            }
            opened.sde.invalidate(&peek.key(), reason).map(|_| true)
        })
        .map_err(|error| failed(&error))
    }
}
