"""Pickles of stores and cached functions: what another process needs to have them again.

A function that its module gives under its name goes by that name. Others, as those of scripts, notebooks and lambdas,
go by `cloudpickle`, with the store's path. In one process all pickles of a store open it once.
"""

from __future__ import annotations

import importlib
import itertools
import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle

from . import _memory

_MAIN = ("__main__", "__mp_main__")

_reopened: dict[tuple[str, str | None], _memory.Memory] = {}
_opening = threading.RLock()
_tokens = itertools.count()


class _Here(threading.local):
    """The functions that this thread is at: those that it pickles by their number, those that it makes by token."""

    def __init__(self) -> None:
        self.pickled: dict[int, str] = {}
        self.made: dict[str, _Later] = {}


_here = _Here()


def memory_at(location: str, mmap_mode: str | None) -> _memory.Memory:
    """Gives the store of a path, which this process may have open.

    Raises:
        sde.Error: If the store can't be opened.
    """
    with _opening:
        known = _reopened.get((location, mmap_mode))
        if known is None:
            known = _memory.Memory(location, mmap_mode, _shared=_store_at(location))
            _reopened[location, mmap_mode] = known
        return known


def _store_at(location: str) -> Any:
    for memory in list(_memory._stores):
        if memory.location == location:
            return memory._store
    return None


def reduce(function: _memory.CachedFunction[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """What a pickle has of a cached function."""
    module, name = function.func.__module__, function.func.__qualname__
    if module not in _MAIN and _named(module, name) is function:
        return by_name, (module, name)
    token = _here.pickled.get(id(function))
    if token is not None:
        return _pending, (token,)
    token = _here.pickled[id(function)] = f"{os.getpid()} {next(_tokens)}"
    try:
        payload = cloudpickle.dumps((function.func, function._options))
    finally:
        del _here.pickled[id(function)]
    memory = function._memory
    return _rebuilt, (token, memory.location, memory.mmap_mode, payload)


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


def _rebuilt(token: str, location: str, mmap_mode: str | None, payload: bytes) -> _memory.CachedFunction[..., Any]:
    later = _here.made[token] = _Later()
    try:
        func, options = pickle.loads(payload)
    finally:
        del _here.made[token]
    memory = memory_at(location, mmap_mode)
    function = _memory.CachedFunction._made(memory, func, options)
    later.function = function
    names = getattr(func, "__globals__", {})
    for name in [name for name, value in names.items() if value is later]:
        names[name] = function
    return function
