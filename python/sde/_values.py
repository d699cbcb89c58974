"""Objects that the native part does not know: how they are taken apart for keys.

`reduce` gives a kind and a value of built-in types, in which the native part finds the next objects. It tells apart any
two objects whose values a function can tell apart. Types are asked, and never the objects themselves: those may lie
about their class, about what they equal, and about what they hold.
"""

from __future__ import annotations

import array
import copyreg
import datetime
import decimal
import enum
import fractions
import io
import pathlib
import sys
import types
import uuid
import weakref
import zoneinfo
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from . import _arrays, _code, _code_class, _code_owner, _results, _sde

Reduced = tuple[str, Any, list[str] | None]

# By address, with the type, which so lives on: to compare types runs code of their metaclasses.
_registered: dict[int, tuple[type, Callable[[Any], Any]]] = {}


def register(type_: type, to_state: Callable[[Any], Any]) -> None:
    """Says what makes two objects of a type the same argument.

    Args:
        type_: The type. It counts for its own objects, not for those of subclasses.
        to_state: Gives, for an object, a value that can be keyed: anything but the object itself. Two objects are
            the same argument if their states are, and the code of the type is.

    Raises:
        TypeError: If the first is no type.

    Example:
        >>> import sde
        >>> class Mesh:
        ...     def __init__(self, path): self.path, self.handle = path, object()
        >>> sde.register(Mesh, lambda mesh: sde.InputFile(mesh.path))
    """
    if not issubclass(type(type_), type):
        raise TypeError(f"{type_!r} is no type")
    _registered[id(type_)] = type_, to_state


class InputFile:
    """A file whose content is the argument, wherever it lies and whatever its name.

    Args:
        path: The file. It is read when a key is made, and its content is in the key.

    The function gets this object; `open(file.path)` or `os.fspath(file)` read the file.

    Example:
        >>> import pathlib, sde
        >>> _ = pathlib.Path("mesh.txt").write_text("1 2 3")
        >>> memory = sde.open("scan.sde")
        >>> @memory.cache
        ... def length(file):
        ...     with open(file) as text:
        ...         return len(text.read())
        >>> length(sde.InputFile("mesh.txt"))
        5
    """

    __slots__ = ("path",)

    def __init__(self, path: str | pathlib.Path) -> None:
        self.path = pathlib.Path(path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"InputFile({str(self.path)!r})"


def reduce(value: Any) -> Reduced:
    """The kind of an object, the built-in value that it is made of, and the places of that one's parts.

    Raises:
        sde.KeyingError: If the object can't be taken apart soundly, or what it runs for it fails.
    """
    try:
        return _reduce(value)
    except _sde.KeyingError:
        raise
    except Exception as error:
        raise _refusal(value, f"{type(error).__name__}: {error}") from error


def _reduce(value: Any) -> Reduced:
    type_ = type(value)
    registered = _registered.get(id(type_))
    if registered is not None:
        state = registered[1](value)
        if state is value:
            raise _refusal(value, "its registered to_state gave the object itself")
        return "registered", (type_, state), ["", ""]
    known = _KNOWN.get(id(type_))
    if known is not None:
        return known[1](value)
    if issubclass(type_, type):
        made: Reduced = _class(value)
        return made
    if issubclass(type_, enum.Enum):
        return _enum(value)
    return _arrays.reduce(value) or _instance(value)


def _refusal(value: Any, why: str) -> Exception:
    name = _name(type(value))
    way = f"sde.register({type(value).__qualname__}, to_state) says what it consists of"
    return _sde.KeyingError(f": an object of the type {name} can't be keyed ({why}); {way}")


def _name(type_: type) -> str:
    return f"{type_.__module__}.{type_.__qualname__}"


# Code

_codes: dict[int, tuple[weakref.ref[Any], _code.Code, _sde.Watched]] = {}


def _code_of(value: Any, find: Callable[[Any], _code.Code]) -> _code.Code:
    """The code of a function or class, found anew only where something that it reaches is another object."""
    known = _codes.get(id(value))
    if known is not None and known[0]() is value and known[2].is_unchanged():
        return known[1]
    code, address = find(value), id(value)
    forget = weakref.ref(value, lambda _, pop=_codes.pop: pop(address, None))  # type: ignore[misc]
    _codes[address] = forget, code, _sde.Watched(code.watched)
    return code


def _class(value: type) -> Any:
    # The native part asks for classes by themselves: name, code, and values that are reached.
    code = _code_of(value, _code.class_code)
    return code.name, (code.own, sorted(code.helpers.items())), code.values


def _function(value: Any) -> Reduced:
    code = _code_of(value, _code.code_of)
    made = (code.own, sorted(code.helpers.items()))
    values = [(place, code.values[place]) for place in sorted(code.values)]
    attributes = {name: of for name, of in vars(value).items() if name != "__wrapped__"}
    places = ["", "", "", "", *(f".<{place}>" for place, _ in values)]
    return "function", (code.name, made, attributes, [place for place, _ in values], *(of for _, of in values)), places


def _builtin(value: Any) -> Reduced:
    bound = value.__self__
    if bound is None or issubclass(type(bound), types.ModuleType):
        return "builtin", (value.__module__, value.__qualname__), None
    return "builtin method", (value.__name__, bound), ["", ".__self__"]


def _module(value: types.ModuleType) -> Reduced:
    name = value.__name__
    owner = _code_owner.owner_of(name)
    if owner.kind == "project" or sys.modules.get(name) is not value:
        raise _sde.KeyingError(f": the module {name} can't be keyed; pass its name or what is needed of it")
    return "module", (name, owner.name, owner.version), None


# Values of Python's own types


def _file(value: InputFile) -> Reduced:
    return "sde.InputFile", _sde.file_digest(str(value.path)), None


def _datetime(value: datetime.datetime) -> Reduced:
    numbers = (value.year, value.month, value.day, value.hour, value.minute, value.second)
    parts = (*numbers, value.microsecond, value.fold, value.tzinfo)
    return "datetime.datetime", parts, [""] * 8 + [".tzinfo"]


def _time(value: datetime.time) -> Reduced:
    parts = (value.hour, value.minute, value.second, value.microsecond, value.fold, value.tzinfo)
    return "datetime.time", parts, [""] * 5 + [".tzinfo"]


def _zone(value: zoneinfo.ZoneInfo) -> Reduced:
    if value.key is None:
        raise _refusal(value, "it was read from a file, and has no name")
    return "zoneinfo.ZoneInfo", value.key, None


def _memoryview(value: memoryview) -> Reduced:
    if value.format not in tuple("cbB?hHiIlLqQnNefd"):
        raise _refusal(value, f"its format is {value.format!r}")
    return "memoryview", (value.format, value.shape, value.tobytes()), None


def _enum(value: enum.Enum) -> Reduced:
    more = {name: of for name, of in vars(value).items() if name not in _code_class.OF_MEMBERS}
    return "enum", (type(value), value._name_, value._value_, more), ["", "", ".value", ".__dict__"]


def _plain(kind: str, state: Callable[[Any], Any]) -> Callable[[Any], Reduced]:
    return lambda value: (kind, state(value), None)


_PATHS: list[type] = [pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path())]
_DESCRIPTORS = [
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
]
_KNOWN: dict[int, tuple[type, Callable[[Any], Reduced]]] = {
    id(type_): (type_, known)  # type: ignore[misc]
    for type_, known in [
        (InputFile, _file),
        (bytearray, _plain("bytearray", bytes)),
        (memoryview, _memoryview),
        (datetime.datetime, _datetime),
        (datetime.time, _time),
        (datetime.date, _plain("datetime.date", datetime.date.isoformat)),
        (datetime.timedelta, _plain("datetime.timedelta", lambda of: (of.days, of.seconds, of.microseconds))),
        (zoneinfo.ZoneInfo, _zone),
        # Whether the letters are capitals is a setting.
        (decimal.Decimal, _plain("decimal.Decimal", lambda of: str(of).upper())),
        (fractions.Fraction, _plain("fractions.Fraction", lambda of: (of.numerator, of.denominator))),
        (uuid.UUID, _plain("uuid.UUID", lambda of: (of.bytes, of.is_safe.name))),
        (range, _plain("range", lambda of: (of.start, of.stop, of.step))),
        (slice, _plain("slice", lambda of: (of.start, of.stop, of.step))),
        (array.array, _plain("array.array", lambda of: (of.typecode, of.itemsize, of.tobytes()))),
        (type(Ellipsis), _plain("ellipsis", lambda _: None)),
        (type(NotImplemented), _plain("NotImplemented", lambda _: None)),
        (types.FunctionType, _function),
        (types.MethodType, lambda of: ("method", (of.__func__, of.__self__), ["", ".__self__"])),
        (types.BuiltinFunctionType, _builtin),
        (types.MethodWrapperType, _builtin),
        (types.ModuleType, _module),
        (types.MappingProxyType, lambda of: ("mappingproxy", (dict(of),), [""])),
        *((path, _plain(_name(path), str)) for path in _PATHS),
        *((kind, _plain("descriptor", lambda of: (of.__objclass__, of.__name__))) for kind in _DESCRIPTORS),
    ]
}


# Instances of any class

_BASES: list[tuple[type, Callable[[Any], Any]]] = [
    (int, int.__int__),
    (float, float.__float__),
    (complex, lambda value: (complex.real.__get__(value), complex.imag.__get__(value))),
    (str, str.__str__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (bytearray, lambda value: bytearray.__getitem__(value, slice(None))),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (list, lambda value: list.__getitem__(value, slice(None))),
    (dict, lambda value: dict(dict.items(value))),  # dict.copy asks the subclass for its keys
    (set, lambda value: set.__or__(set(), value)),
    (frozenset, lambda value: frozenset.__or__(frozenset(), value)),
]


def _instance(value: Any) -> Reduced:
    """An object by its class, and by what pickle would write of it, each part keyed."""
    type_ = type(value)
    if issubclass(type_, io.IOBase):
        raise _refusal(value, "the call reads it, from where it stands: pass sde.InputFile(path), or what it holds")
    if any("__next__" in vars(base) for base in type_.__mro__):
        raise _refusal(value, "an iterator is used up by the call: pass a list or a tuple")
    reduced = _reduced(value, type_)
    # What a built-in type is made of is asked of that type: methods of the subclass may tell something else.
    raw = next((of(value) for base, of in _BASES if issubclass(type_, base)), None)
    if type(reduced) is str:
        parts = [type_, _module_of(value, reduced), reduced, raw, _attributes(value, type_)]
        return "global", tuple(parts), ["", "", "", "", ".__dict__"]
    if type(reduced) is not tuple or not 2 <= len(reduced) <= 6:
        raise _refusal(value, "its __reduce_ex__ gives neither a text nor a tuple")
    made, arguments, state, items, pairs, setter, *_ = [*reduced, None, None, None, None]
    if made is copyreg.__newobj__ and arguments and arguments[0] is type_:  # type: ignore[attr-defined]
        made, arguments = None, arguments[1:]
    attributes, state = _named(state)
    if _forgets_attributes(type_):
        attributes = {**_attributes(value, type_), **attributes}
    of_items = None if items is None else list(items)
    # The order of an OrderedDict is its own.
    of_pairs = None if pairs is None else list(pairs)
    if type_ is not OrderedDict and issubclass(type_, dict):
        of_pairs = None
    parts = [type_, raw, made, arguments, state, of_items, of_pairs, setter, list(attributes)]
    places = [""] * len(parts) + [f".{name}" for name in attributes]
    return "object", (*parts, *attributes.values()), places


def _reduced(value: Any, type_: type) -> Any:
    reduce = copyreg.dispatch_table.get(type_)
    try:
        return value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception as error:
        raise _refusal(value, str(error)) from error


def _named(state: Any) -> tuple[dict[str, Any], Any]:
    """Attributes by name, as the state of most objects is; and the rest of the state."""
    if type(state) is dict and all(type(name) is str for name in state):
        return state, None
    if type(state) is tuple and len(state) == 2 and type(state[1]) is dict and type(state[0]) in (dict, types.NoneType):
        both = {**(state[0] or {}), **state[1]}
        if all(type(name) is str for name in both):
            return both, "slots"
    return {}, ("state", state)


def _forgets_attributes(type_: type) -> bool:
    """Whether what tells the state was written for a base that does not know of the attributes of this class."""
    for name in ("__reduce_ex__", "__reduce__"):
        base = next(base for base in type_.__mro__ if name in vars(base))
        if base is not object and base is not type_:
            return _code_owner.owner_of(base.__module__).kind == "python"
    return False


def _attributes(value: Any, type_: type) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", None) or {})
    for name in copyreg._slotnames(type_):  # type: ignore[attr-defined]
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return found


def _module_of(value: Any, name: str) -> str:
    """The module that has an object under this name."""
    told = getattr(value, "__module__", None)
    for module in [told] if isinstance(told, str) else sorted(sys.modules, key=lambda of: (len(of), of)):
        found = sys.modules.get(module)
        try:
            for part in name.split("."):
                found = getattr(found, part)
        except Exception:
            continue
        if found is value:
            return str(module)
    raise _refusal(value, f"no module has it as {name}")


_sde.set_reduce(reduce, _results.reduce, _results.pickled)
_sde.set_build(_results.build)
