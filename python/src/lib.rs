//! The native part of SDE's Python package: arguments become inputs, a function's body an app, results Python objects.
//!
//! What counts as the code of a function is found in Python (`_code.py`); the rest of the interface is there too.

mod array;
mod bind;
mod call;
mod command;
mod current;
mod function;
mod identified;
mod read;
mod reduce;
mod shown;
mod signals;
mod stack;
mod store;
mod table;
mod upkeep;
mod watch;
mod write;

use pyo3::prelude::*;

pyo3::create_exception!(
    sde,
    Error,
    pyo3::exceptions::PyRuntimeError,
    "A call, a store or a request that failed in SDE. What the function itself raised comes out as it is."
);
pyo3::create_exception!(
    sde,
    KeyingError,
    pyo3::exceptions::PyTypeError,
    "A value that no key can be made of. The message names its place, and what to do."
);

pyo3::create_exception!(
    sde,
    Unreadable,
    pyo3::exceptions::PyException,
    "A stored result that no object is made of: the function is run again."
);

pyo3::create_exception!(
    sde,
    Unkept,
    pyo3::exceptions::PyException,
    "A result that can't be stored: the object and the reason. Its caller gets the object."
);

/// Warns the code that called into this package.
fn warn(py: Python<'_>, text: String) -> PyResult<()> {
    let category = py.get_type::<pyo3::exceptions::PyRuntimeWarning>();
    let warnings = py.import("warnings")?;
    warnings.call_method1("warn", (text, category)).map(|_| ())
}

/// The Python error for one of the engine.
fn failed(error: sde::Error) -> PyErr {
    Error::new_err(text_of(&error))
}

/// The text of an error with those of its causes.
fn text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[pymodule]
fn _sde(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("KeyingError", py.get_type::<KeyingError>())?;
    module.add("Unreadable", py.get_type::<Unreadable>())?;
    // To make a type at its first use could fail, where the limit of recursion is reached.
    _ = (py.get_type::<Unkept>(), py.get_type::<current::Current>());
    module.add_class::<store::Store>()?;
    module.add_class::<function::Function>()?;
    module.add_class::<array::Buffer>()?;
    module.add_class::<watch::Watched>()?;
    module.add_class::<call::Cancel>()?;
    module.add_class::<command::Command>()?;
    module.add_class::<command::Ran>()?;
    module.add_function(wrap_pyfunction!(reduce::set_reduce, module)?)?;
    module.add_function(wrap_pyfunction!(read::set_build, module)?)?;
    module.add_function(wrap_pyfunction!(store::forked, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::clear, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::reduce_size, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::load, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::made_by, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::forget, module)?)?;
    module.add_function(wrap_pyfunction!(store::file_digest, module)?)?;
    module.add_function(wrap_pyfunction!(write::digest, module)?)
}
