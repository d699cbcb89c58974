//! Binding of arguments to parameters, as Python does it, and the inputs that they become.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use sde::{Data, Inputs};

use crate::reduce::is_bare;
use crate::shown::Shown;
use crate::write::{self, Purpose};

/// How a parameter takes its argument, as the numbers of `inspect.Parameter.kind`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    PositionalOnly,
    Either,
    Rest,
    NamedOnly,
    NamedRest,
}

/// A parameter of a cached function.
pub(crate) struct Parameter {
    name: String,
    python_name: Py<PyString>,
    kind: Kind,
    default: Option<Py<PyAny>>,
    /// Whether it is in no key.
    is_ignored: bool,
    /// The value with which it is in no key: what calls meant before the function had the parameter.
    since: Option<Py<PyAny>>,
}

/// How `Function` is told of a parameter: name, kind, `(default,)` or none, whether it is ignored, `(since,)` or none.
pub(crate) type Told = (String, u8, Option<(Py<PyAny>,)>, bool, Option<(Py<PyAny>,)>);

impl Parameter {
    pub(crate) fn new(py: Python<'_>, told: Told) -> Self {
        let (name, kind, default, is_ignored, since) = told;
        let kinds = [
            Kind::PositionalOnly,
            Kind::Either,
            Kind::Rest,
            Kind::NamedOnly,
        ];
        Self {
            python_name: PyString::intern(py, &name).unbind(),
            name,
            kind: kinds
                .get(usize::from(kind))
                .copied()
                .unwrap_or(Kind::NamedRest),
            default: default.map(|(value,)| value),
            is_ignored,
            since: since.map(|(value,)| value),
        }
    }
}

/// The inputs of a call. `None` if the arguments do not fit, for which Python has the words.
pub(crate) fn inputs(
    parameters: &[Parameter],
    arguments: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<Inputs>> {
    let py = arguments.py();
    let mut inputs = Inputs::new();
    let (mut next, mut used) = (0, 0);
    let mut rest_of_named = None;
    for parameter in parameters {
        let value = match parameter.kind {
            Kind::Rest => {
                let rest = arguments.get_slice(next, arguments.len());
                next = arguments.len();
                Some(rest.into_any())
            }
            Kind::NamedRest => {
                rest_of_named = Some(parameter);
                continue;
            }
            kind => {
                let by_place = kind != Kind::NamedOnly && next < arguments.len();
                let by_name = match named {
                    Some(named) if kind != Kind::PositionalOnly => {
                        named.get_item(parameter.python_name.bind(py))?
                    }
                    _ => None,
                };
                match (by_place, by_name) {
                    (true, Some(_)) => return Ok(None),
                    (true, None) => {
                        next += 1;
                        Some(arguments.get_item(next - 1)?)
                    }
                    (false, Some(value)) => {
                        used += 1;
                        Some(value)
                    }
                    (false, None) => parameter
                        .default
                        .as_ref()
                        .map(|value| value.bind(py).clone()),
                }
            }
        };
        let Some(value) = value else { return Ok(None) };
        inputs = with(inputs, parameter, &value)?;
    }
    let left_over = named.map_or(0, |named| named.len()) - used;
    if let Some(parameter) = rest_of_named {
        inputs = with(inputs, parameter, rest(parameters, named, py)?.as_any())?;
    } else if left_over > 0 {
        return Ok(None);
    }
    Ok((next == arguments.len()).then_some(inputs))
}

/// What `**kwargs` takes.
fn rest<'py>(
    parameters: &[Parameter],
    named: Option<&Bound<'py, PyDict>>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let Some(named) = named else {
        return Ok(PyDict::new(py));
    };
    let rest = named.copy()?;
    for parameter in parameters {
        let name = parameter.python_name.bind(py);
        if matches!(parameter.kind, Kind::Either | Kind::NamedOnly) && rest.contains(name)? {
            rest.del_item(name)?;
        }
    }
    Ok(rest)
}

fn with(inputs: Inputs, parameter: &Parameter, value: &Bound<'_, PyAny>) -> PyResult<Inputs> {
    if parameter.is_ignored {
        return Ok(inputs);
    }
    // The default is part of the function, whose code says which object it is.
    let is_default = |default: &Py<PyAny>| default.bind(value.py()).is(value);
    let data = match is_bare(value) && parameter.default.as_ref().is_some_and(is_default) {
        true => write::tagged("default", Data::None),
        false => write::data(value, Purpose::Key)
            .map_err(|error| write::inside(value.py(), error, &parameter.name))?,
    };
    if let Some(since) = &parameter.since {
        let since = write::data(since.bind(value.py()), Purpose::Key).map_err(|error| {
            write::inside(value.py(), error, &format!("since {}", parameter.name))
        })?;
        // As values 0.0 and -0.0 are equal, and as keys not.
        if write::digest_of(&since)? == write::digest_of(&data)? {
            return Ok(inputs);
        }
    }
    Ok(inputs.with(parameter.name.clone(), Shown(data)))
}
