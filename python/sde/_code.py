"""What the code of a Python function is, for the key of its calls.

Code is compared by what runs, not by the text on disk: see ``docs/decisions/0036-python-code.md``.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field

from ._code_bytes import digest
from ._code_describe import wrapped_of
from ._code_owner import module_name
from ._code_walk import Walk
from ._code_watch import Watch

__all__ = ["Code", "CodeError", "class_code", "code_of", "name_of"]


class CodeError(TypeError):
    """A function can't be cached, because it has no Python code. The text says what to do."""


@dataclass(slots=True)
class Code:
    """The code of a function or class with all that it reaches in the project.

    Attributes:
        name: The module and qualified name, which stay when the file moves.
        own: The digest of the function itself, with its defaults, cells and Python's minor version.
        helpers: The digest of each function, class, constant, module and package reached, by name.
        values: Mutable objects reached, by name. Their content counts at each call.
        watched: Where the reached objects were found. While all are the same objects, the digests
            hold.
        warnings: What a user should know about this function, a sentence each.
    """

    name: str
    own: bytes
    helpers: dict[str, bytes] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    watched: list[Watch] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def code_of(function: object, uses: Iterable[object] = ()) -> Code:
    """Gives the code of a function, with what it reaches in the user's project.

    It takes about 2 microseconds for each instruction at first, and 10 for each object reached
    later. Project modules that the function imports are imported.

    Args:
        function: A Python function, lambda, method or partial, or an object with ``__wrapped__``.
        uses: Objects that count too, though the function doesn't name them.

    Raises:
        CodeError: If the function is built in, a class, or another object without Python code.

    >>> code_of(lambda x: x + 1).own == code_of(lambda x: x + 2).own
    False
    """
    _refuse(function)
    walk = Walk()
    own = walk.run(function, tuple(uses))
    return _code(name_of(function), own, walk)


def class_code(cls: type) -> Code:
    """Gives the code of a class as a whole, with its bases in the project.

    A class of Python or of a package counts by name, and a package by its version too.

    >>> class_code(int).name
    'builtins.int'
    """
    walk = Walk()
    own = walk.run(cls, ())
    return _code(f"{module_name(cls.__module__)}.{cls.__qualname__}", own, walk)


def _code(name: str, own: bytes, walk: Walk) -> Code:
    version = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    own = digest("own", version, own)
    return Code(name, own, walk.helpers, walk.values, walk.watched, list(walk.warnings))


def name_of(function: object) -> str:
    """Gives the name of a function without looking at its code, so it may be asked at any time.

    Scripts and notebooks are ``__main__``, wherever they lie.

    Raises:
        CodeError: As ``code_of``.
    """
    _refuse(function)
    while not isinstance(function, types.FunctionType):
        function = _inner(function)
    return f"{module_name(function.__module__)}.{function.__qualname__}"


def _inner(function: object) -> object:
    if isinstance(function, types.MethodType):
        return function.__func__
    if isinstance(function, functools.partial):
        return function.func
    return wrapped_of(function)


def _refuse(function: object) -> None:
    inner, seen = function, 0
    while inner is not None and not isinstance(inner, (types.FunctionType, type)):
        inner, seen = _inner(inner), seen + 1
        if seen > 1000:
            break
    if isinstance(inner, types.FunctionType):
        return
    name = getattr(function, "__qualname__", None) or f"an object of {type(function).__qualname__}"
    kind = "a class" if isinstance(inner, type) else "not a function that is written in Python"
    raise CodeError(
        f"{name} can't be cached: it is {kind}, so its code can't be compared. "
        f"Write a function that calls it (def f(x): return ...), and cache that one."
    )
