//! A function whose results are remembered.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sde::record::CodeId;
use sde::{
    AppInfo, CancelToken, Data, DynApp, Handle, Inputs, Instance, Outcome, Policy, Prepared,
    ResultSpec, Source, Tags,
};

use crate::bind::{self, Parameter, Told};
use crate::call::{self, Call, Cancel, Stay};
use crate::shown::Shown;
use crate::store::{Opened, Store};
use crate::watch::Watched;
use crate::write::{self, Purpose};
use crate::{Error, KeyingError, Unkept, Unreadable, current, failed, read, stack, store, warn};

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
    /// Whether a computation that gives something else than an earlier one is warned of.
    is_compared: bool,
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
    Py<Watched>,
);

/// The key of a call, or its result if that can't be stored.
type Shelved = (Option<[u8; 32]>, Option<(Py<PyAny>,)>);

/// The app of a function, and the objects that it was made from.
struct Identified {
    opened: u64,
    app: Prepared,
    values: Vec<(String, Py<PyAny>)>,
    watched: Py<Watched>,
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
        let (own, parts, values, watched): Code = self.code.bind(py).call0()?.extract()?;
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
        let app = opened.sde.prepare(&app).map_err(|error| failed(&error))?;
        Ok(Identified {
            opened: opened.number,
            app,
            values,
            watched,
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
            let fits = signature.call_method("bind", arguments, named);
            fits.map_err(|error| {
                PyTypeError::new_err(format!("{}() {}", self.name, error.value(py)))
            })?;
            return Err(Error::new_err("these arguments do not fit the function"));
        };
        for (name, value) in &app.values {
            let value = value.bind(py);
            let data = match write::reached(value) {
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
            inputs = inputs.with(format!("global {name}"), Shown(data));
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
            Err(error) if error.is_instance_of::<Unkept>(py) => self.unkept(py, &error),
            Err(error) => Err(error),
        }
    }

    /// The result that could not be stored; its caller is warned.
    fn unkept<'py>(&self, py: Python<'py>, error: &PyErr) -> PyResult<Bound<'py, PyAny>> {
        let (object, why): (_, String) = error.value(py).getattr("args")?.extract()?;
        let name = &self.name;
        warn(py, format!("{name} is not remembered: the result{why}"))?;
        Ok(object)
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
        if stack::is_nearly_full() {
            return Err(stack::too_deep(&self.name));
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
                forks: store::forks(),
            })
        };
        let (of_run, given) = (Arc::clone(&app), inputs.clone());
        let run = move |call: &Arc<Call>| {
            let handle = handle.with_cancel(&call.token);
            let request = handle.request(&of_run.app, &given).policy(policy);
            call::with_call(Arc::clone(call), || request.run())
        };
        let (call, made) = if is_main_thread(py)? {
            call::on_main(py, |to_main| call(Some(to_main)), run)?
        } else {
            let call = call(None);
            let made = Stay::within(|| py.detach(|| run(&call)));
            (call, made)
        };
        let outcome = made.map_err(|error| call.taken().unwrap_or_else(|| failed(&error)))?;
        if outcome.source == Source::Computed {
            self.warn_of_changes(py, &app, &inputs)?;
        }
        Ok(outcome)
    }

    /// Warns of globals that a run has changed: the next call is another one.
    fn warn_of_changes(&self, py: Python<'_>, app: &Identified, inputs: &Inputs) -> PyResult<()> {
        for (name, value) in &app.values {
            let before = inputs.get::<Shown<Data>>(&format!("global {name}"));
            let after = write::data(value.bind(py), Purpose::Key);
            let (Ok(before), Ok(after)) = (before, after) else {
                continue;
            };
            if write::digest_of(&before.0)? != write::digest_of(&after)? {
                let of = &self.name;
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

pub(crate) fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let here = threading.call_method0("current_thread")?;
    Ok(here.is(&threading.call_method0("main_thread")?))
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (store, function, name, about, parameters, tags, version, is_writable, is_compared, code))]
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
        is_compared: bool,
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
            is_compared,
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
    #[pyo3(signature = (cancel, arguments, named, anew=false))]
    fn call_until<'py>(
        &self,
        cancel: &Cancel,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
        anew: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let token = cancel.token.clone();
        match anew {
            true => self.made(arguments, named, Policy::Refresh, token),
            false => self.called(arguments, named, token),
        }
    }

    /// Makes a call that another thread may give up; gives its key in place of its result, or the result in a tuple if
    /// that can't be stored.
    #[pyo3(signature = (cancel, arguments, named, anew))]
    fn shelve(
        &self,
        cancel: &Cancel,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
        anew: bool,
    ) -> PyResult<Shelved> {
        let py = arguments.py();
        let policy = if anew { Policy::Refresh } else { Policy::Use };
        match self.outcome(arguments, named, policy, cancel.token.clone()) {
            Ok(outcome) => Ok((Some(*outcome.key.as_bytes()), None)),
            Err(error) if error.is_instance_of::<Unkept>(py) => {
                let object = self.unkept(py, &error)?;
                Ok((None, Some((object.unbind(),))))
            }
            Err(error) => Err(error),
        }
    }

    /// When the result of a call was made, in seconds since 1970, and how many seconds that took; `None` if a call would
    /// compute.
    #[pyo3(signature = (arguments, named))]
    fn remembered(
        &self,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<(f64, f64)>> {
        let (opened, app, inputs, _) = self.asked(arguments, named)?;
        let record = arguments
            .py()
            .detach(|| opened.sde.record(&app.app, &inputs))
            .map_err(|error| failed(&error))?;
        Ok(record.map(|record| {
            let since = record.made_at.duration_since(UNIX_EPOCH);
            let made_at = since.unwrap_or_default().as_secs_f64();
            (made_at, record.took.as_secs_f64())
        }))
    }

    /// The object that a call gives whose function returned that one, in another process. That one has warned of an
    /// object that can't be stored.
    fn returned<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let data = match write::data(object, Purpose::Result) {
            Err(error) if error.is_instance_of::<KeyingError>(object.py()) => {
                return Ok(object.clone());
            }
            data => data?,
        };
        let how = read::How {
            is_writable: self.is_writable,
            is_of_others: false,
        };
        read::object(object.py(), &data, how)
    }

    /// The seconds that the latest runs in the store took, at most 50, by when they were begun. Those that went on from
    /// a state of another job are not among them.
    fn costs(&self, py: Python<'_>) -> PyResult<Vec<f64>> {
        let opened = self.store.get().opened(py)?;
        py.detach(|| opened.costs(&self.name))
            .map_err(|error| failed(&error))
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

    /// Whether the result of a call is remembered, and its key; it runs nothing.
    #[pyo3(signature = (*arguments, **named))]
    fn glance(
        &self,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(bool, String)> {
        let py = arguments.py();
        let (_, app, inputs, handle) = self.asked(arguments, named)?;
        let (key, is_remembered) = py
            .detach(|| handle.glance(&app.app, &inputs))
            .map_err(|error| failed(&error))?;
        Ok((is_remembered, key.to_string()))
    }

    /// What a call would do, and why. It runs nothing, and reads the records of all calls of the function.
    #[pyo3(signature = (*arguments, **named))]
    fn explained(
        &self,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let py = arguments.py();
        let (_, app, inputs, handle) = self.asked(arguments, named)?;
        let peek = py.detach(|| handle.peek(&app.app, &inputs));
        peek.map(|peek| peek.to_string())
            .map_err(|error| failed(&error))
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
            let (key, is_remembered) = handle.glance(&app.app, &inputs)?;
            if !is_remembered {
                return Ok(false);
            }
            opened.sde.invalidate(&key, reason).map(|_| true)
        })
        .map_err(|error| failed(&error))
    }
}
