//! NumPy's arrays. NumPy itself is not needed to build this, nor to use the package without arrays.

#![allow(
    unsafe_code,
    reason = "the buffers of Python have no safe interface that reads any layout and type"
)]

use std::ffi::{c_int, c_void};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{ffi, intern};
use sde::bulk::{AxisOrder, NumberType};
use sde::{AnyArray, Data, KeyedArray};

use crate::write::{Purpose, tagged};
use crate::{Error, KeyingError};

/// The types of numbers, with the names that NumPy has for them where they lie in the machine's byte order.
const TYPES: [(&str, NumberType); 10] = [
    ("|i1", NumberType::I8),
    ("<i2", NumberType::I16),
    ("<i4", NumberType::I32),
    ("<i8", NumberType::I64),
    ("|u1", NumberType::U8),
    ("<u2", NumberType::U16),
    ("<u4", NumberType::U32),
    ("<u8", NumberType::U64),
    ("<f4", NumberType::F32),
    ("<f8", NumberType::F64),
];

/// The bytes from which on an argument's numbers are keyed where they lie. To copy fewer is as fast.
const LONG: usize = 4096;

/// NumPy, once a program has imported it.
fn numpy(py: Python<'_>) -> Option<&'static Numpy> {
    static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();
    if let Some(numpy) = NUMPY.get(py) {
        return Some(numpy);
    }
    let modules = py.import("sys").ok()?.getattr("modules").ok()?;
    let module = modules.cast::<PyDict>().ok()?.get_item("numpy").ok()??;
    let array = module.getattr("ndarray").ok()?.cast_into::<PyType>().ok()?;
    let found = Numpy {
        array: array.unbind(),
        frombuffer: module.getattr("frombuffer").ok()?.unbind(),
    };
    _ = NUMPY.set(py, found);
    NUMPY.get(py)
}

struct Numpy {
    array: Py<PyType>,
    frombuffer: Py<PyAny>,
}

/// Whether this is an array, and of no subclass.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let numpy = numpy(object.py());
    numpy.is_some_and(|numpy| object.get_type().is(numpy.array.bind(object.py())))
}

/// An array of plain numbers, by type, lengths and content; a result keeps the order of its axes too. `None` for one of
/// other elements, which Python takes apart.
///
/// In a result it is tagged only if it is of bytes, which a store gives back as `bytes`: so Rust reads the others as
/// they are. In a key it is tagged always, since a list of the numbers has the key of the array.
pub(crate) fn write(array: &Bound<'_, PyAny>, purpose: Purpose) -> PyResult<Option<Data>> {
    let py = array.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "str"))?.extract()?;
    let Some((_, numbers)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        return Ok(None);
    };
    if !dtype.getattr(intern!(py, "metadata"))?.is_none() {
        return Ok(None);
    }
    let lengths: Vec<usize> = array.getattr(intern!(py, "shape"))?.extract()?;
    let flags = array.getattr(intern!(py, "flags"))?;
    let is_contiguous = |name| flags.getattr(name)?.is_truthy();
    let (array, order) = if is_contiguous(intern!(py, "c_contiguous"))? {
        (array.clone(), AxisOrder::Rows)
    } else if purpose == Purpose::Result && is_contiguous(intern!(py, "f_contiguous"))? {
        (array.clone(), AxisOrder::Columns)
    } else {
        // A key is of the elements in their logical order.
        (
            array.call_method1(intern!(py, "copy"), ("C",))?,
            AxisOrder::Rows,
        )
    };
    let values = with_bytes(&array, |bytes| {
        match purpose == Purpose::Key && bytes.len() >= LONG {
            true => KeyedArray::from_bytes(*numbers, bytes, lengths).map(Data::Keyed),
            false => AnyArray::from_bytes(*numbers, bytes, Some((lengths, order))).map(Data::from),
        }
    })?;
    match values {
        Ok(values) if purpose == Purpose::Result && *numbers != NumberType::U8 => Ok(Some(values)),
        Ok(values) => Ok(Some(tagged("numpy.ndarray", values))),
        Err(error) => Err(KeyingError::new_err(format!(": {error}"))),
    }
}

/// Gives the bytes of a contiguous array, as they lie.
fn with_bytes<R>(array: &Bound<'_, PyAny>, read: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    let mut view = ffi::Py_buffer::new();
    // SAFETY: the view is released below. Any contiguous order is asked for, so the bytes lie without gaps.
    let got = unsafe {
        ffi::PyObject_GetBuffer(array.as_ptr(), &raw mut view, ffi::PyBUF_ANY_CONTIGUOUS)
    };
    if got != 0 {
        return Err(PyErr::fetch(array.py()));
    }
    let bytes = match usize::try_from(view.len) {
        Ok(length) if length > 0 && !view.buf.is_null() => {
            // SAFETY: the buffer has `len` bytes while the view is held. Another thread could write to it only with the
            // interpreter's lock, which this one has, or in native code that runs without it; the
            // documentation says that an argument must not change during its call.
            unsafe { std::slice::from_raw_parts(view.buf.cast::<u8>(), length) }
        }
        _ => &[],
    };
    let read = read(bytes);
    // SAFETY: it was filled by the call above, and is released once.
    unsafe { ffi::PyBuffer_Release(&raw mut view) };
    Ok(read)
}

/// An array that reads the values where they lie, and can't be written to; or a copy that can.
pub(crate) fn read<'py>(
    py: Python<'py>,
    values: &AnyArray,
    writable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if py.import("numpy").is_err() {
        return Err(Error::new_err(
            "this result is an array, and NumPy is not installed: pip install numpy",
        ));
    }
    let Some(numpy) = numpy(py) else {
        return Err(Error::new_err("NumPy has no type ndarray"));
    };
    let kind = TYPES
        .iter()
        .find(|(_, numbers)| *numbers == values.numbers());
    let kind = kind.map_or("|u1", |(name, _)| name);
    let lengths = PyTuple::new(py, values.lengths())?;
    let order = match values.order() {
        Some(AxisOrder::Columns) => "F",
        _ => "C",
    };
    let options = PyDict::new(py);
    options.set_item("order", order)?;
    // `frombuffer` refuses a buffer without bytes.
    let flat = match values.bytes().is_empty() {
        true => py.import("numpy")?.call_method1("empty", (0, kind))?,
        false => {
            let buffer = Bound::new(py, Buffer(values.clone()))?;
            numpy.frombuffer.bind(py).call1((buffer, kind))?
        }
    };
    let array = flat.call_method("reshape", (lengths,), Some(&options))?;
    if writable {
        return array.call_method1("copy", (order,));
    }
    array.getattr("flags")?.setattr("writeable", false)?;
    Ok(array)
}

/// The bytes of a result, read-only, for as long as an array looks at them.
#[pyclass(frozen, module = "sde._sde")]
pub(crate) struct Buffer(AnyArray);

#[pymethods]
impl Buffer {
    /// # Safety
    /// Python's interpreter calls it, with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.get().0.bytes();
        let Ok(length) = ffi::Py_ssize_t::try_from(bytes.len()) else {
            return Err(PyBufferError::new_err("the array is too long for a buffer"));
        };
        let start = bytes.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: the view keeps `slf`, and that the bytes, until it is released; it is marked read-only.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
