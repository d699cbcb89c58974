"""Objects that the native part does not know: how they are taken apart for keys and results, and made again.

`reduce` gives a kind and a value of built-in types, in which the native part finds the next objects. What it gives for
a key must tell apart any two objects that a function can tell apart; what it gives for a result must be enough to make
an equal object of the same type.
"""

from __future__ import annotations

import copyreg
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import pickle
import sys
import types
import uuid
from collections.abc import Callable
from typing import Any

from . import _code, _sde

_Reduced = tuple[str, Any]

_registered: dict[type, Callable[[Any], Any]] = {}


def register(type_: type, to_state: Callable[[Any], Any]) -> None:
    """Says what makes two objects of a type the same argument.

    Args:
        type_: The type. It counts for its own objects, not for those of subclasses.
        to_state: Gives, for an object, a value that can be keyed: anything but the object itself. Two objects are
            the same argument if their states are.

    Example:
        >>> class Mesh:
        ...     def __init__(self, path): self.path, self.handle = path, object()
        >>> sde.register(Mesh, lambda mesh: sde.InputFile(mesh.path))
    """
    if not isinstance(type_, type):
        raise TypeError(f"{type_!r} is no type")
    _registered[type_] = to_state


class InputFile:
    """A file whose content is the argument, wherever it lies and whatever its name.

    Args:
        path: The file. It is read when a key is made, and its content is in the key.

    The function gets this object; `open(file.path)` or `os.fspath(file)` read the file.
    """

    __slots__ = ("path",)

    def __init__(self, path: str | pathlib.Path) -> None:
        self.path = pathlib.Path(path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"InputFile({str(self.path)!r})"


def reduce(value: Any, is_result: bool) -> _Reduced:
    """The kind of an object, and the built-in value that it is made of."""
    if is_result:
        return _result(value)
    type_ = type(value)
    to_state = _registered.get(type_)
    if to_state is not None:
        return _name(type_), to_state(value)
    by_type = _BY_TYPE.get(type_)
    if by_type is not None:
        return by_type(value)
    for known, reduced in _by_base():
        if isinstance(value, known):
            return reduced(value)
    return _instance(value)


def build(kind: str, parts: Any) -> Any:
    """The object that `reduce` took apart as a result."""
    if kind == "numpy.ndarray":
        return parts
    if kind == "numpy":
        import numpy

        dtype, payload = parts
        return numpy.frombuffer(payload, dtype)[0]
    if kind == "pickle":
        payload, buffers = parts
        return pickle.loads(payload, buffers=buffers)
    if kind in _BUILD:
        return _BUILD[kind](parts)
    raise ValueError(f"a stored value is of the kind {kind!r}, which this version of sde does not know")


_BUILD: dict[str, Callable[[Any], Any]] = {
    "bytearray": bytearray,
    "datetime.date": datetime.date.fromisoformat,
    "datetime.timedelta": lambda parts: datetime.timedelta(*parts),
    "decimal.Decimal": decimal.Decimal,
    "fractions.Fraction": lambda parts: fractions.Fraction(*parts),
    "pathlib.PosixPath": pathlib.Path,
}

_RESULTS: dict[type, Callable[[Any], _Reduced]] = {
    bytearray: lambda value: ("bytearray", bytes(value)),
    datetime.date: lambda value: ("datetime.date", value.isoformat()),
    datetime.timedelta: lambda value: (
        "datetime.timedelta",
        (value.days, value.seconds, value.microseconds),
    ),
    decimal.Decimal: lambda value: ("decimal.Decimal", str(value)),
    fractions.Fraction: lambda value: ("fractions.Fraction", (value.numerator, value.denominator)),
    pathlib.PosixPath: lambda value: ("pathlib.PosixPath", str(value)),
}


def _result(value: Any) -> _Reduced:
    reduced = _RESULTS.get(type(value))
    if reduced is not None:
        return reduced(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind in "biufc":
        return "numpy", (value.dtype.str, value.tobytes())
    buffers: list[pickle.PickleBuffer] = []
    payload = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return "pickle", (payload, [bytes(buffer.raw()) for buffer in buffers])


def _name(type_: type) -> str:
    return f"{type_.__module__}.{type_.__qualname__}"


def _state(kind: str, state: Callable[[Any], Any]) -> Callable[[Any], _Reduced]:
    return lambda value: (kind, state(value))


def _file(value: InputFile) -> _Reduced:
    return "sde.InputFile", _sde.file_digest(str(value.path))


_BY_TYPE: dict[type, Callable[[Any], _Reduced]] = {
    **_RESULTS,
    InputFile: _file,
    datetime.datetime: lambda value: (
        "datetime.datetime",
        (value.isoformat(), value.fold, None if value.tzinfo is None else str(value.tzinfo)),
    ),
    datetime.time: lambda value: ("datetime.time", (value.isoformat(), value.fold, str(value.tzinfo))),
    uuid.UUID: _state("uuid.UUID", lambda value: value.bytes),
    range: _state("range", lambda value: (value.start, value.stop, value.step)),
    slice: _state("slice", lambda value: (value.start, value.stop, value.step)),
    type(Ellipsis): _state("ellipsis", lambda _: None),
    type(NotImplemented): _state("NotImplemented", lambda _: None),
}


def _by_base() -> list[tuple[Any, Callable[[Any], _Reduced]]]:
    """Kinds that are known by their base, the nearest first."""
    bases: list[tuple[Any, Callable[[Any], _Reduced]]] = [
        (enum.Enum, _enum),
        (type, _class),
        ((types.FunctionType, types.MethodType), _function),
        (pathlib.PurePath, lambda value: (_name(type(value)), str(value))),
    ]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        bases.append((numpy.ndarray, _array))
        bases.append((numpy.generic, lambda value: ("numpy." + type(value).__name__, _scalar(value))))
        bases.append((numpy.dtype, lambda value: ("numpy.dtype", _descr(value))))
    return bases


def _enum(value: enum.Enum) -> _Reduced:
    return "enum", (type(value), value.name, value.value)


def _class(value: type) -> _Reduced:
    return "class", _digest_of_class(value)


def _function(value: Any) -> _Reduced:
    if isinstance(value, types.MethodType):
        return "method", (value.__func__, value.__self__)
    code = _code.code_of(value)
    return "function", (code.name, code.own, sorted(code.helpers.items()), code.values)


def _digest_of_class(value: type) -> Any:
    code = _code.class_code(value)
    return (code.name, code.own, sorted(code.helpers.items()), code.values)


def _descr(dtype: Any) -> Any:
    return dtype.descr if dtype.names is not None else dtype.str


def _scalar(value: Any) -> Any:
    if value.dtype.hasobject:
        raise _sde.KeyingError(f": a {type(value).__name__} that holds objects can't be keyed")
    return (_descr(value.dtype), value.tobytes())


def _array(value: Any) -> _Reduced:
    if value.dtype.hasobject:
        raise _sde.KeyingError(
            ": an array of objects can't be keyed; make it a list, or an array of numbers"
        )
    kind = "numpy.array"
    order = "F" if value.flags.fnc else "C"
    content = (_descr(value.dtype), value.shape, order, value.tobytes(order))
    if type(value).__module__.partition(".")[0] == "numpy":
        mask = getattr(value, "mask", None)
        if mask is not None:
            return "numpy.ma", (content, mask.tobytes() if mask.shape else bool(mask), value.fill_value)
        return kind, (type(value).__name__, content)
    return kind, (type(value), content, getattr(value, "__dict__", None))


_REFUSED = (
    types.GeneratorType,
    types.CoroutineType,
    types.FrameType,
    types.TracebackType,
    types.ModuleType,
)


def _instance(value: Any) -> _Reduced:
    """An object by its class, and by what pickle would write of it, each part keyed."""
    type_ = type(value)
    if isinstance(value, _REFUSED):
        raise _sde.KeyingError(f": a {type_.__name__} can't be keyed")
    if dataclasses.is_dataclass(value) and type_.__reduce_ex__ is object.__reduce_ex__:
        fields = getattr(value, "__dict__", None)
        if fields is None:
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return "object", (type_, fields)
    try:
        reduced = value.__reduce_ex__(4)
    except Exception as error:
        raise _sde.KeyingError(
            f": an object of the type {_name(type_)} can't be keyed ({error}); "
            f"sde.register({type_.__qualname__}, to_state) says what it consists of"
        ) from error
    if isinstance(reduced, str):
        return "global", (type_, reduced)
    made, arguments, *rest = reduced
    state, items, pairs, *_ = [*rest, None, None, None]
    if made is copyreg.__newobj__:  # type: ignore[attr-defined]
        arguments = arguments[1:]
        made = None
    parts = (type_, made, arguments, state)
    content = (list(items) if items is not None else None, list(pairs) if pairs is not None else None)
    return "object", (parts, content)


_sde.set_reduce(reduce)
_sde.set_build(build)
