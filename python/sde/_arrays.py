"""Arrays of NumPy, and frames of pandas, for keys. Neither is imported here."""

from __future__ import annotations

import copyreg
import sys
from typing import Any

from . import _sde

_Reduced = tuple[str, Any, list[str] | None]


def reduce(value: Any) -> _Reduced | None:
    """The kind of an array or frame and what it is made of; none for other objects."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "generic"):
        return None
    type_ = type(value)
    if issubclass(type_, numpy.ndarray):
        return _array(numpy, value)
    if issubclass(type_, numpy.generic) and type_.__module__ == "numpy":
        content = numpy.ndarray.__getitem__(numpy.asarray(value), ())
        return "numpy.scalar", (type_.__name__, *_content(numpy, numpy.asarray(content))), None
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "DataFrame"):
        return None
    if type_ is pandas.DataFrame:
        return _frame(value)
    if type_ is pandas.Series:
        parts = (value.index, value.name, value.array, value.attrs, value.flags.allows_duplicate_labels)
        return "pandas.Series", parts, [".index", ".name", "", ".attrs", ""]
    if issubclass(type_, pandas.api.extensions.ExtensionArray) and type_.__module__.startswith("pandas."):
        return _extension(pandas, value)
    return None


def _array(numpy: Any, value: Any) -> _Reduced:
    type_ = type(value)
    plain = numpy.ndarray.view(value, numpy.ndarray)
    if type_ is numpy.ndarray:
        return "numpy.array", _content(numpy, plain), ["", "", ""]
    if type_ is numpy.ma.MaskedArray:
        mask = numpy.ma.getmaskarray(value)
        return "numpy.ma", (plain, mask, value.fill_value, value.hardmask), ["", ".mask", ".fill_value", ""]
    if type_.__module__.partition(".")[0] == "numpy":
        return "numpy.subclass", (type_.__name__, plain), ["", ""]
    made = None
    if type_.__reduce__ is not numpy.ndarray.__reduce__ or type_.__reduce_ex__ is not numpy.ndarray.__reduce_ex__:
        made = value.__reduce_ex__(2)[1:]
    attributes = dict(getattr(value, "__dict__", None) or {})
    for name in copyreg._slotnames(type_):  # type: ignore[attr-defined]
        attributes[name] = getattr(value, name, None)
    return "array subclass", (type_, plain, made, attributes), ["", "", "", ".__dict__"]


def _content(numpy: Any, value: Any) -> tuple[Any, ...]:
    """Type, lengths and elements of an array. In which order these lie in memory is no part of the value."""
    dtype = value.dtype
    if dtype.names is not None:
        # The bytes between fields are anything.
        fields = [value[name] for name in dtype.names]
        return _type(numpy, dtype), value.shape, fields
    if dtype.hasobject:
        return _type(numpy, dtype), value.shape, value.ravel().tolist()
    if dtype.kind not in "biufcmMSUV":
        raise _sde.KeyingError(f": an array of the type {dtype} can't be keyed; make it one of numbers or texts")
    if dtype.char in "gG" and numpy.finfo(dtype).nmant == 63:
        # Ten bytes of sixteen are the number.
        flat = numpy.frombuffer(value.tobytes(), "u1").reshape(-1, 16)
        return _type(numpy, dtype), value.shape, flat[:, :10].tobytes()
    return _type(numpy, dtype), value.shape, value.tobytes()


def _type(numpy: Any, dtype: Any) -> Any:
    if dtype.names is None and dtype.subdtype is None and not dtype.metadata:
        kind = f"{dtype.type.__module__}.{dtype.type.__qualname__}"
        more = repr(dtype) if dtype.char == "T" else None
        return dtype.str, kind, type(dtype).__qualname__, more
    if dtype.subdtype is not None:
        base, lengths = dtype.subdtype
        return "subarray", _type(numpy, base), lengths, dict(dtype.metadata or {})
    fields = [(name, _type(numpy, dtype.fields[name][0]), *dtype.fields[name][1:]) for name in dtype.names or ()]
    kind = f"{dtype.type.__module__}.{dtype.type.__qualname__}"
    return dtype.str, kind, fields, dtype.itemsize, dtype.isalignedstruct, dict(dtype.metadata or {})


def _frame(value: Any) -> _Reduced:
    columns = [value.iloc[:, at].array for at in range(value.shape[1])]
    names = [str(name) for name in value.columns]
    parts = (value.index, value.columns, value.attrs, value.flags.allows_duplicate_labels)
    places = [".index", ".columns", ".attrs", "", *(f"[{name!r}]" for name in names)]
    return "pandas.DataFrame", (*parts, *columns), places


def _extension(pandas: Any, value: Any) -> _Reduced:
    dtype = value.dtype
    kind = (type(value).__name__, type(dtype).__name__, str(dtype), repr(dtype))
    if issubclass(type(value), pandas.Categorical):
        parts: tuple[Any, ...] = (kind, dtype.categories, dtype.ordered, value.codes)
    elif hasattr(dtype, "numpy_dtype") and type(value).__name__ == "NumpyExtensionArray":
        parts = (kind, value.to_numpy())
    else:
        parts = (kind, str(getattr(value, "freq", None)), value.to_numpy(dtype=object).tolist())
    return "pandas.array", parts, None
