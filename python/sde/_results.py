"""Results: how objects that the native part does not know are taken apart for the store, and made again.

What has a value of built-in types becomes that one, which Rust programs and `sde export` read. All else is pickled.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import pickle
import sys
from collections.abc import Callable
from io import BytesIO
from typing import Any

from . import _sde

# The kind, the parts, and the addresses of the objects that a pickle has: one that lies elsewhere in the result too
# has the whole result pickled.
_Reduced = tuple[str, Any, list[int]]

_TYPED: dict[int, tuple[type, Callable[[Any], tuple[str, Any]]]] = {
    id(type_): (type_, typed)
    for type_, typed in [
        (bytearray, lambda value: ("bytearray", bytes(value))),
        (datetime.date, lambda value: ("datetime.date", value.isoformat())),
        (datetime.timedelta, lambda value: ("datetime.timedelta", (value.days, value.seconds, value.microseconds))),
        (decimal.Decimal, lambda value: ("decimal.Decimal", str(value))),
        (fractions.Fraction, lambda value: ("fractions.Fraction", (value.numerator, value.denominator))),
        (pathlib.PosixPath, lambda value: ("pathlib.PosixPath", str(value))),
    ]
}
_MADE: dict[str, Callable[[Any], Any]] = {
    "bytearray": bytearray,
    "datetime.date": datetime.date.fromisoformat,
    "datetime.timedelta": lambda parts: datetime.timedelta(*parts),
    "decimal.Decimal": decimal.Decimal,
    "fractions.Fraction": lambda parts: fractions.Fraction(*parts),
    "pathlib.PosixPath": pathlib.Path,
}
_MUTABLE = frozenset(id(type_) for type_ in (bytearray,))


def reduce(value: Any) -> _Reduced:
    """The kind of an object, and the built-in value that it is made of."""
    type_ = type(value)
    typed = _TYPED.get(id(type_))
    if typed is not None:
        return *typed[1](value), [id(value)] if id(type_) in _MUTABLE else []
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "generic"):
        made = _of_array(numpy, value) if type_ is numpy.ndarray else _of_scalar(numpy, value)
        if made is not None:
            return *made, []
    return pickled(value)


def pickled(value: Any) -> _Reduced:
    """An object as a pickle, whose large buffers lie beside it.

    Raises:
        sde.KeyingError: If pickle can't write it.
    """
    buffers: list[pickle.PickleBuffer] = []
    to = BytesIO()
    pickler = pickle.Pickler(to, protocol=5, buffer_callback=buffers.append)
    try:
        pickler.dump(value)
    except Exception as error:
        raise _sde.KeyingError(
            f": an object of the type {type(value).__module__}.{type(value).__qualname__} can't be stored "
            f"({type(error).__name__}: {error}); return what it was made from, or give its class a __reduce__"
        ) from error
    within = [_as_bytes(buffer) for buffer in buffers]
    return "pickle", (to.getvalue(), within), [id(value), *_addresses(pickler, value)]


def _as_bytes(buffer: pickle.PickleBuffer) -> bytes:
    with buffer.raw() as raw:
        return bytes(raw)


def _addresses(pickler: Any, value: Any) -> list[int]:
    """The objects in a pickle that could be changed, as far as it notes them."""
    return [
        id(found)
        for _, found in pickler.memo.copy().values()
        if found is not value and type(found) not in _UNCHANGING and not issubclass(type(found), type)
    ]


_UNCHANGING = (str, bytes, int, float, complex, tuple, frozenset, type(pickle.dumps), type(pickled))


def _of_scalar(numpy: Any, value: Any) -> tuple[str, Any] | None:
    type_ = type(value)
    dtype: Any = getattr(value, "dtype", None)
    if not issubclass(type_, numpy.generic) or type_.__module__ != "numpy":
        return None
    if dtype.kind in "biu" or dtype.str == "<f8":
        return "numpy.scalar", (dtype.str, value.item())
    if dtype.kind in "fcmM":
        return "numpy.scalar", (dtype.str, value.tobytes())
    return None


def _of_array(numpy: Any, value: Any) -> tuple[str, Any] | None:
    """An array of elements that no number of Rust is, as numbers: those that lie in the elements."""
    dtype = value.dtype
    is_plain = dtype.kind in "biufcmMSU" and dtype.itemsize and not dtype.metadata
    if not is_plain or numpy.dtype(dtype.str) != dtype or type(numpy.dtype(dtype.str)) is not type(dtype):
        return None
    order = "F" if value.flags.fnc else "C"
    return "numpy.array", (dtype.str, value.shape, order, value.ravel(order).view(_lying_in(dtype)))


def _lying_in(dtype: Any) -> str:
    if dtype.byteorder == ">" or dtype.char in "gG":
        return "u1"
    return {"c": f"f{dtype.itemsize // 2}", "m": "i8", "M": "i8"}.get(dtype.kind, "u1")


def build(kind: str, parts: Any, is_writable: bool, is_of_others: bool) -> Any:
    """The object that `reduce` took apart.

    Raises:
        sde._sde.Unreadable: If it can't be made, or must not be.
    """
    if kind == "pickle" and is_of_others:
        raise _sde.Unreadable(
            "was stored by another user, and has a pickle, which could run anything; this user's own run replaces it"
        )
    try:
        return _build(kind, parts, is_writable)
    except Exception as error:
        raise _sde.Unreadable(f"can't be made again ({type(error).__name__}: {error})") from error


def _build(kind: str, parts: Any, is_writable: bool) -> Any:
    if kind == "numpy.ndarray":
        return parts
    if kind == "numpy.array":
        dtype, lengths, order, within = parts
        return within.view(dtype).reshape(lengths, order=order)
    if kind == "numpy.scalar":
        return _scalar(*parts)
    if kind == "pickle":
        payload, buffers = parts
        return pickle.loads(payload, buffers=[bytearray(buffer) for buffer in buffers] if is_writable else buffers)
    if kind in _MADE:
        return _MADE[kind](parts)
    raise ValueError(f"this version of sde does not know the kind {kind!r}")


def _scalar(dtype: str, content: Any) -> Any:
    import numpy

    if isinstance(content, bytes):
        return numpy.frombuffer(content, dtype)[0]
    return numpy.dtype(dtype).type(content)
