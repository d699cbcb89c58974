"""What is in the own digest of a function, and of an object that is made of functions."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from ._code_bytes import digest, read
from ._code_import import import_project, imported_name
from ._code_owner import OURSELVES, Owner, attributes, module_name
from ._code_watch import MISSING, is_empty
from ._uses import ATTRIBUTE

if TYPE_CHECKING:
    from ._code_walk import Walk

# Objects of Python's that are made of functions, and where they have them.
PARTS: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func",),
    functools.partialmethod: ("func",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    functools.cached_property: ("func",),
    functools.singledispatchmethod: ("dispatcher",),
    contextlib._GeneratorContextManagerBase: ("func", "args", "kwds"),
}
_CODE = (types.FunctionType, types.BuiltinFunctionType, type, *PARTS)


def is_code(value: object) -> bool:
    """Tells whether an object is a function or class, or is made of such.

    Objects may lie about their class to ``isinstance``, as proxies do.
    """
    return issubclass(type(value), _CODE)


def wrapped_of(value: object) -> object:
    """Gives the function that an object wraps, or None."""
    return next(iter(_wrapped(value).values()), None)


def _wrapped(value: object) -> dict[str, object]:
    """Finds what an object wraps, and by what. Attributes that it makes up are none."""
    own = getattr(value, "__dict__", None)
    found = {}
    for name in ("__wrapped__", "py_func", "_self_wrapper"):  # the others are Numba's and wrapt's
        if type(own) is dict and name in own:
            found[name] = own[name]
        elif any(name in vars(base) for base in type(value).__mro__):
            found[name] = getattr(value, name, None)
    return {name: inner for name, inner in found.items() if inner is not None}


def describe_function(walk: Walk, function: types.FunctionType, label: str) -> list[bytes]:
    """Describes a function: its code, and what each of its names stands for.

    Of a package's function only what it closes over counts: the rest is in the package's version.
    """
    code = function.__code__
    label = label or f"{module_name(function.__module__)}.{function.__qualname__}"
    found = read(code)
    owner = walk.owner(module_name(function.__globals__.get("__name__")))
    walk.watched.attribute(function, "__code__", code)
    fields = [found.digest, *_cells(walk, function, label, owner)]
    fields += _defaults(walk, function, label)
    own = function.__dict__
    if "__wrapped__" in own:
        walk.watched.item(own, "__wrapped__", own["__wrapped__"])
        fields.append(digest("wrapped", walk.refer(own["__wrapped__"], label)))
    if ATTRIBUTE in own:
        walk.watched.item(own, ATTRIBUTE, own[ATTRIBUTE])
        fields += [digest("use", walk.refer(use, f"{label}.<use {i}>")) for i, use in enumerate(own[ATTRIBUTE])]
    others = {name: value for name, value in own.items() if name not in ("__wrapped__", ATTRIBUTE)}
    # Empty ones too: what is added later counts.
    if owner.kind == "project":
        walk.watched.items(own)
        fields += [digest("attribute", name, walk.refer(value, f"{label}.{name}")) for name, value in others.items()]
    else:
        walk.watched.item(own, ATTRIBUTE, own.get(ATTRIBUTE, MISSING))
    if others and owner.kind != "project":  # a package's may be counts and caches, so those count that the code names
        fields.append(digest("attributes", walk.add_space(f"attributes of {label}", label, function)))
    if owner.kind == "project":
        fields += [_global(walk, function, name) for name in found.globals]
        for name, level, names in found.imports:
            fields.append(_import(walk, function, label, name, level, names))
        walk.add_names(found.attributes)
        for name in found.assigned:
            walk.warn(
                f"{label} assigns the global {name}: a remembered result "
                "does not assign it. Return the value instead."
            )
    return fields


def _cells(walk: Walk, function: types.FunctionType, label: str, owner: Owner) -> Iterable[bytes]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if is_empty(cell):
            walk.watched.empty(cell)
            yield digest("empty cell", name)
            continue
        value = cell.cell_contents
        walk.watched.attribute(cell, "cell_contents", value)
        place = f"{label}.<{name}>"
        if owner.kind == "python" and name == "cache_token":
            continue  # singledispatch's, which counts what the process registered
        if owner.kind == "python" and type(value) in (dict, set, list):
            yield digest("cell", name, *walk.codes_in(value, place, callable))  # mostly a cache
        else:
            yield digest("cell", name, walk.refer(value, place))


def _defaults(walk: Walk, function: types.FunctionType, label: str) -> Iterable[bytes]:
    defaults, named = function.__defaults__, function.__kwdefaults__
    if defaults:  # most functions have none, and a hit compares all that is watched
        walk.watched.attribute(function, "__defaults__", defaults)
    if named:
        walk.watched.attribute(function, "__kwdefaults__", named)
        walk.watched.items(named)
    place = f"{label}.<default"
    for i, value in enumerate(defaults or ()):
        yield digest("default", str(i), walk.refer(value, f"{place} {i}>"))
    for name, value in (named or {}).items():
        yield digest("default", name, walk.refer(value, f"{place} {name}>"))


def _global(walk: Walk, function: types.FunctionType, name: str) -> bytes:
    space = function.__globals__
    value = space.get(name, MISSING)
    walk.watched.item(space, name, value)
    place = f"{module_name(space.get('__name__'))}.{name}"
    if value is not MISSING:
        return digest("global", name, walk.named(space, name, place, value))
    if name in function.__builtins__:  # type: ignore[attr-defined,unused-ignore]
        return digest("builtin", name)
    return digest("undefined", name, walk.undefined(space, name, place))


def _import(
    walk: Walk, function: types.FunctionType, label: str, name: str, level: int, names: tuple[str, ...]
) -> bytes:
    full = imported_name(name, level, function.__globals__)
    if full is None or walk.owner(full).kind != "project":
        return digest("import", full or name)
    parts = full.split(".")
    modules = [".".join(parts[: i + 1]) for i in range(len(parts))]
    edges = [_imported(walk, module, label) for module in modules]
    own = attributes(sys.modules.get(full))
    for attribute in names:
        if "__path__" in own and attribute not in own:
            # It becomes an attribute of the package, and is found there.
            _imported(walk, f"{full}.{attribute}", label)
    return digest("import", full, *edges)


def _imported(walk: Walk, name: str, by: str) -> bytes:
    module, failure = import_project(name)
    loaded = cast(dict[str, object], sys.modules)
    walk.watched.item(loaded, name, MISSING if module is None else module)
    if failure is not None:
        walk.warn(f"{by} imports {name}, which fails: {failure}. It does not count while it does.")
    return digest("not found") if module is None else walk.refer(module, name)


def describe_parts(walk: Walk, value: Any, label: str) -> list[bytes]:
    """Describes an object of Python's that is made of functions."""
    kind = next(kind for kind in PARTS if issubclass(type(value), kind))
    fields = [digest("type", walk.refer(type(value), ""))]
    for part in PARTS[kind]:
        inner = getattr(value, part)
        fields.append(digest(part, walk.refer(inner, f"{label}.{part}")))
    if kind in (functools.partial, functools.partialmethod):
        walk.watched.items(value.keywords)
        for name, argument in [*enumerate(value.args), *value.keywords.items()]:
            place = f"{label}.<argument {name}>"
            fields.append(digest("argument", str(name), walk.refer(argument, place)))
    return fields


def describe_wrapper(walk: Walk, value: object, label: str) -> list[bytes]:
    """Describes an object that wraps a function.

    Of a package's object only functions and classes count: what else it has is mostly a cache.
    """
    is_ours = type(value).__module__.partition(".")[0] == OURSELVES
    # Of ours all types are one: a callback that looks at hits, or a message, changes no result.
    fields = [digest("type", OURSELVES if is_ours else walk.refer(type(value), ""))]
    for name, inner in _wrapped(value).items():
        walk.watched.attribute(value, name, inner)
        fields.append(digest("wrapped", name, walk.refer(inner, label)))
    own = getattr(value, "__dict__", None)
    if walk.owner(type(value).__module__).kind == "project":
        fields.append(walk.refer_to_value(value, label))
    elif type(own) is dict:
        fields += walk.codes_in(dict(own), label)
        options = own.get("_options")
        if is_ours and type(options) is dict:
            # What a cached function's user said of its code is true of those who call it, too.
            fields.append(digest("version", walk.refer(options.get("version"), label)))
            for use in options.get("uses", ()):
                fields.append(digest("use", walk.refer(use, f"{label}.<use>")))
    return fields
