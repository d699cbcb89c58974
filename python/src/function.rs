//! A function whose results are remembered.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sde::{CancelToken, Handle, Inputs, Outcome, Policy, Source, Tag, Tags};

use crate::bind::{self, Parameter, Told};
use crate::call::{self, Call, Cancel, Stay};
use crate::identified::Identified;
use crate::store::{Opened, Store};
use crate::write::{self, Purpose};
use crate::{Error, KeyingError, Unkept, Unreadable, current, failed, read, stack, store, warn};

/// A function of Python, and how its calls are keyed. Its subclass in Python has the rest of the interface.
#[pyclass(frozen, subclass, dict, weakref, module = "sde._sde")]
pub(crate) struct Function {
    store: Py<Store>,
    function: Py<PyAny>,
    pub(crate) name: String,
    pub(crate) about: String,
    parameters: Vec<Parameter>,
    pub(crate) tags: Tags,
    pub(crate) version: Option<String>,
    /// Whether arrays that come back are copies, which may be written to.
    is_writable: bool,
    /// Whether a computation that gives something else than an earlier one is warned of.
    pub(crate) is_compared: bool,
    /// Tells what the function's code is: `code() -> Told`.
    pub(crate) code: Py<PyAny>,
    /// The app as it was identified last.
    pub(crate) identified: Mutex<Option<Arc<Identified>>>,
}

/// The key of a call, or its result if that can't be stored.
type Shelved = (Option<[u8; 32]>, Option<(Py<PyAny>,)>);

impl Function {
    fn inputs(
        &self,
        app: &Identified,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Inputs> {
        let py = arguments.py();
        let Some(inputs) = bind::inputs(&self.parameters, arguments, named)? else {
            let inspect = py.import("inspect")?;
            let signature = inspect.call_method1("signature", (self.function.bind(py),))?;
            let fits = signature.call_method("bind", arguments, named);
            fits.map_err(|error| {
                PyTypeError::new_err(format!("{}() {}", self.name, error.value(py)))
            })?;
            return Err(Error::new_err("these arguments do not fit the function"));
        };
        app.with_globals(py, &self.name, inputs)
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
        let result = result.map_err(failed)?;
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
        let bodies = call::is_main_thread(py)?.then(channel);
        let call = Arc::new(Call {
            function: self.function.clone_ref(py),
            arguments: arguments.clone().unbind(),
            named: named.map(|named| named.clone().unbind()),
            opened: opened.number,
            raised: Mutex::new(None),
            token,
            to_main: bodies.as_ref().map(|(to_main, _)| to_main.clone()),
            forks: store::forks(),
        });
        let (of_run, given, of_app) = (Arc::clone(&call), inputs.clone(), Arc::clone(&app));
        let run = move || {
            let handle = handle.with_cancel(&of_run.token);
            let request = handle.request(&of_app.app, &given).policy(policy);
            call::with_call(of_run, || request.run())
        };
        let made = match bodies {
            Some(bodies) => call::on_main(py, bodies, run, |_| call.token.cancel())?,
            None => Stay::within(|| py.detach(run)),
        };
        let outcome = made.map_err(|error| call.taken().unwrap_or_else(|| failed(error)))?;
        if outcome.source == Source::Computed {
            app.warn_of_changes(py, &self.name, &inputs)?;
        }
        Ok(outcome)
    }
}

/// The tags of these names.
fn tags_of(names: &[String]) -> PyResult<Tags> {
    names.iter().try_fold(Tags::NONE, |tags, name| {
        let mut known = Tag::ALL.into_iter().filter(|tag| *tag != Tag::Distributed);
        let tag = known.find(|tag| tag.name() == *name).ok_or_else(|| {
            let why = "is no tag: \"intermediate\", \"expendable\" or \"no_cache\"";
            PyValueError::new_err(format!("{name:?} {why}"))
        })?;
        Ok(tags.with(tag))
    })
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
        Ok(Self {
            store,
            function,
            name,
            about,
            parameters: parameters
                .into_iter()
                .map(|told| Parameter::new(py, told))
                .collect(),
            tags: tags_of(&tags)?,
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

    /// Makes a call that another thread may give up; with `anew` it runs the function in any case.
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
            .map_err(failed)?;
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
        py.detach(|| opened.costs(&self.name)).map_err(failed)
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
            .map_err(failed)?;
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
        peek.map(|peek| peek.to_string()).map_err(failed)
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
        .map_err(failed)
    }
}
