"""Pickles of stores and cached functions: what another process needs to have them again.

A function that its module gives under its name goes by that name. Others, as those of scripts, notebooks and lambdas,
go by `cloudpickle`, with the store's path. In one process all pickles of a store open it once.
"""

from __future__ import annotations

import copyreg
import dataclasses
import importlib
import io
import itertools
import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import cloudpickle

from . import _memory

if TYPE_CHECKING:
    from ._uncached import UncachedFunction

    Cached: TypeAlias = _memory.CachedFunction[..., Any] | UncachedFunction

_MAIN = ("__main__", "__mp_main__")

# Dataclasses compare these by identity. Without a name in the pickle, a class of a script is another one in a worker.
_MARKS = ("MISSING", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "_HAS_DEFAULT_FACTORY", "KW_ONLY")
_marks = {id(getattr(dataclasses, name, None)): name for name in _MARKS}
for _type in {type(getattr(dataclasses, name)) for name in _MARKS if hasattr(dataclasses, name)}:
    copyreg.pickle(_type, lambda mark: _marks[id(mark)])

_reopened: dict[tuple[str | None, str | None, int], _memory.Memory] = {}
_opening = threading.RLock()
_tokens = itertools.count()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Keeps the order of a class's attributes, which counts. `cloudpickle` sorts them by name."""

    def reducer_override(self, obj: Any) -> Any:
        made = super().reducer_override(obj)
        if issubclass(type(obj), type) and type(made) is tuple and len(made) == 6:
            attributes, slots = made[2]
            ordered = {name: attributes[name] for name in vars(obj) if name in attributes}
            return *made[:2], (ordered | attributes, slots), *made[3:]
        return made


def dumps(value: Any) -> bytes:
    """A pickle of a value, with the functions and classes of scripts and notebooks in it."""
    to = io.BytesIO()
    _Pickler(to).dump(value)
    return to.getvalue()


class _Here(threading.local):
    """The functions that this thread is at: those that it pickles by their number, those that it makes by token."""

    def __init__(self) -> None:
        self.pickled: dict[int, str] = {}
        self.made: dict[str, _Later] = {}


_here = _Here()


def forked() -> None:
    """Gives up a lock that a thread of the parent may have held."""
    global _opening
    _opening = threading.RLock()


def memory_at(location: str | None, mmap_mode: str | None, verbose: int) -> _memory.Memory:
    """Gives the store of a path, which this process may have open.

    Raises:
        sde.Error: If the store can't be opened.
    """
    with _opening:
        known = _reopened.get((location, mmap_mode, verbose))
        if known is None:
            known = _memory.Memory(location, mmap_mode=mmap_mode, verbose=verbose, _shared=_store_at(location))
            _reopened[location, mmap_mode, verbose] = known
        return known


def _store_at(location: str | None) -> Any:
    for memory in list(_memory._stores):
        if memory.location == location:
            return memory._store
    return None


def reduce(function: Cached) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What a pickle has of a cached function."""
    module, name = function.func.__module__, function.func.__qualname__
    if module not in _MAIN and _named(module, name) is function:
        return by_name, (module, name)
    token = _here.pickled.get(id(function))
    if token is not None:
        return _pending, (token,)
    token = _here.pickled[id(function)] = f"{os.getpid()} {next(_tokens)}"
    try:
        payload = dumps((function.func, function._options))
    finally:
        del _here.pickled[id(function)]
    memory = function._memory
    return _rebuilt, (token, memory.location, memory.mmap_mode, memory.verbose, payload)


def by_name(module: str, name: str) -> Any:
    """The object that a module has under a qualified name.

    Raises:
        AttributeError, ImportError: If it has none, or can't be imported.
    """
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _named(module: str, name: str) -> Any:
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


class _Later:
    """Stands for a cached function in its own pickle: a function that calls itself has its own name."""

    function: Any  # a cached function

    @property
    def __wrapped__(self) -> Any:
        return self.function.func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return reduce(self.function)


def _pending(token: str) -> _Later:
    return _here.made[token]


def _rebuilt(token: str, location: str | None, mmap_mode: str | None, verbose: int, payload: bytes) -> Cached:
    later = _here.made[token] = _Later()
    try:
        func, options = pickle.loads(payload)
    finally:
        del _here.made[token]
    function: Cached = memory_at(location, mmap_mode, verbose).cache(func, **options)
    later.function = function
    names = getattr(func, "__globals__", {})
    for name in [name for name, value in names.items() if value is later]:
        names[name] = function
    return function
