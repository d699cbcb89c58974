"""Stores and cached functions, under the names that joblib has for them."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import functools
import inspect
import multiprocessing
import os
import signal
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _async, _code, _command, _processes, _sde, _table

_stores: weakref.WeakSet[Memory] = weakref.WeakSet()


class Memory:
    """A store in a directory, whose functions remember what they returned.

    Args:
        location: The directory. It is made if it is missing. `None` remembers nothing.
        mmap_mode: With `"r"` arrays that come back are read-only, and not copied. With `None` they are copies.

    Raises:
        sde.Error: If the directory holds something else, or can't be made, read or written.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] | None = None,
        mmap_mode: str | None = None,
        *,
        _shared: Any = None,
    ) -> None:
        if mmap_mode not in (None, "r"):
            raise ValueError(f"mmap_mode is {mmap_mode!r}; it can be None or 'r'")
        # The whole path: a process that was forked off, or has this by pickle, may work in another directory.
        self.location = None if location is None else os.path.abspath(os.path.expanduser(location))
        self.mmap_mode = mmap_mode
        self._store = _shared if self.location is None or _shared else _sde.Store(self.location)
        self._functions: weakref.WeakSet[CachedFunction] = weakref.WeakSet()
        self._declaring = threading.local()
        if self._store is not None:
            _stores.add(self)

    def cache(
        self,
        func: Callable[..., Any] | None = None,
        *,
        ignore: Iterable[str] = (),
        tags: str | Iterable[str] = (),
        version: str | None = None,
        since: Mapping[str, Any] | None = None,
        uses: Iterable[Any] = (),
    ) -> Any:
        """Makes a function one that remembers what it returned; a decorator, with or without arguments.

        Args:
            func: The function. One that is cached already is cached anew.
            ignore: Names of parameters that can't change the result.
            tags: `"intermediate"`, `"expendable"` or `"no_cache"`.
            version: Takes the place of the code, with all that the function reaches: raise it by hand with each edit.
            since: For parameters that were added: the value that earlier calls meant. Calls with it keep their keys.
            uses: Objects that the function reaches in ways that can't be seen, as `getattr`.

        Raises:
            ValueError: If a name is no parameter of the function, or a tag is none.
        """
        options: dict[str, Any] = {
            "ignore": frozenset(ignore),
            "tags": [tags] if isinstance(tags, str) else list(tags),
            "version": version,
            "since": dict(since or {}),
            "uses": tuple(uses),
        }
        if func is None:
            return functools.partial(self.cache, **options)
        if isinstance(func, CachedFunction):
            func = func.func
        if self._store is None:
            return func
        return CachedFunction._made(self, func, options)

    def _declare(self) -> None:
        """Shows the engine all functions of this store: what ran one that it does not know is no hit."""
        if getattr(self._declaring, "is_on", False):
            return
        self._declaring.is_on = True
        try:
            for function in builtins.list(self._functions):
                # One whose code can't be told raises at its own call.
                with contextlib.suppress(Exception):
                    function.declare()
        finally:
            self._declaring.is_on = False

    def eval(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a function, as `memory.cache(func)(*args, **kwargs)` does."""
        return self.cache(func)(*args, **kwargs)

    def table(
        self, function: CachedFunction | str | None = None, *, all_code: bool = False, code: str | None = None
    ) -> _table.Table:
        """The runs of a function, a row each, with what they were given and returned. It reads the whole store.

        All rows are of one code, the one that was used last: edits don't mix.

        Args:
            function: The function, or the name that `sde ls` shows; may be left out where the store has only one.
            all_code: Runs of all code, with a column `code`.
            code: Runs of this code, as that column shows it.

        Raises:
            sde.Error: If the store has several functions, or none of this name or code.
        """
        return _table.read(self, function, all_code, code)

    def load(self, key: str) -> dict[str, Any]:
        """The saved results of a run by name, whatever language its program was written in. It computes nothing.

        Numbers, texts, lists, maps and arrays become Python's; a struct of Rust becomes a dict, a file its description. No pickle is
        loaded: call the function for such a result.

        Args:
            key: The key, or its beginning, as `sde ls` and `memory.table` show it.

        Raises:
            sde.Error: If there is no such run, it failed, or a result can't be read.
        """
        if self._store is None:
            raise _sde.Error("nothing is remembered without a store")
        self._store.checkpoint()
        try:
            return self._store.load(key, self.mmap_mode is None)
        except _sde.Unreadable as error:
            raise _sde.Error(f"a result of {key} is not loaded by key: it {error}") from error

    def command(self, program: str | os.PathLike[str], *args: str | os.PathLike[str], **options: Any) -> _command.Command:
        """A run of another program, remembered in this store; `run()` makes it. The options are those of `sde.command`.

        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> memory.command("echo", "hello").run().stdout
        'hello\\n'
        """
        return _command.command(program, *args, _memory=self, **options)

    def checkpoint(self) -> None:
        """Saves all that may be kept. It is on the disk when this returns."""
        if self._store is not None:
            self._store.checkpoint()

    def finish(self) -> None:
        """Saves all, and reports what can't be saved. At the end of the program this happens by itself.

        Raises:
            sde.Error: If something can't be saved.
        """
        if self._store is not None:
            self._store.finish()

    def stats(self) -> dict[str, int]:
        """How often calls were computed, found in memory, loaded from the store, and waited for."""
        return {} if self._store is None else self._store.stats()

    def time_left(self) -> float | None:
        """The seconds that are left of the job's time; `None` without a limit."""
        return None if self._store is None else self._store.time_left()

    def __repr__(self) -> str:
        return f"Memory(location={self.location!r})"

    def __reduce__(self) -> Any:
        if self.location is None:
            return Memory, ()
        return _pickling.memory_at, (self.location, self.mmap_mode)

    map = _processes.map
    try_map = _processes.try_map
    run = _async.run


class CachedFunction(_sde.Function):
    """A function whose results are remembered. It is called as the function is.

    Attributes:
        func: The function itself.
    """

    func: Callable[..., Any]
    _options: dict[str, Any]
    _memory: Memory

    @classmethod
    def _made(
        cls,
        memory: Memory,
        func: Callable[..., Any],
        options: dict[str, Any],
        fixed: tuple[Any, ...] | None = None,
    ) -> CachedFunction:
        _refuse_asynchronous(func)
        parameters = inspect.signature(func).parameters
        for name in (*options["ignore"], *options["since"]):
            if name not in parameters:
                raise ValueError(f"{func.__qualname__} has no parameter {name!r}")
        told = [_told(parameter, options) for parameter in parameters.values()]
        about = (inspect.getdoc(func) or "").partition("\n\n")[0]

        def code() -> Any:
            memory._declare()
            if fixed is not None:
                return fixed
            if options["version"] is not None:
                return bytes(32), [], [], []
            found = _code.code_of(func, options["uses"])
            for text in found.warnings:
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            return found.own, sorted(found.helpers.items()), sorted(found.values.items()), found.watched

        name = _code.name_of(func)
        made = cls(
            memory._store,
            func,
            name,
            about,
            told,
            options["tags"],
            options["version"],
            memory.mmap_mode is None,
            code,
        )
        functools.update_wrapper(made, func)
        made.func = func
        made._options = options
        made._memory = memory
        memory._functions.add(made)
        return made

    def is_cached(self, *args: Any, **kwargs: Any) -> bool:
        """Whether a call would compute nothing. It runs nothing."""
        return self.peek(*args, **kwargs)[0]

    check_call_in_cache = is_cached

    def why(self, *args: Any, **kwargs: Any) -> str:
        """What a call would do, and why: which argument or code differs from the nearest call that is remembered."""
        return self.peek(*args, **kwargs)[2]

    def key(self, *args: Any, **kwargs: Any) -> str:
        """The key of a call, as the program `sde` takes it."""
        return self.peek(*args, **kwargs)[1]

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function in any case, and remembers what it returns."""
        return self.refresh(*args, **kwargs)

    def invalidate(self, *args: Any, **kwargs: Any) -> bool:
        """Has the result of a call no longer given, in any program; says whether there was one."""
        return self.invalidate_call("invalidated from Python", args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        return _pickling.reduce(self)

    def __repr__(self) -> str:
        return f"<cached {self.__module__}.{self.__qualname__}>"


def _refuse_asynchronous(func: Callable[..., Any]) -> None:
    kinds = {
        "a coroutine function": inspect.iscoroutinefunction(func),
        "an asynchronous generator": inspect.isasyncgenfunction(func),
        "a generator": inspect.isgeneratorfunction(func),
    }
    for kind, is_it in kinds.items():
        if is_it:
            name = getattr(func, "__qualname__", repr(func))
            raise TypeError(
                f"{name} can't be cached: it is {kind}, whose call returns before its code has run. Cache a plain "
                "function that returns the result; `await memory.run(f, ...)` calls that from asyncio"
            )


def _told(parameter: inspect.Parameter, options: dict[str, Any]) -> Any:
    name, since = parameter.name, options["since"]
    default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
    return (
        name,
        int(parameter.kind),
        default or None,
        name in options["ignore"],
        (since[name],) if name in since else None,
    )


def open(location: str | os.PathLike[str]) -> Memory:
    """Opens a store, or makes it. Arrays that come back are read-only.

    Raises:
        sde.Error: If the directory holds something else, or can't be made, read or written.
    """
    return Memory(location, mmap_mode="r")


@atexit.register
def _finish() -> None:
    """Saves all stores, also after one that fails."""
    with contextlib.ExitStack() as stack:
        for memory in builtins.list(_stores):
            stack.callback(memory.finish)


def _forked() -> None:
    """Has stores opened anew in a child, and signals end it: the thread that handled them is the parent's."""
    _sde.forked()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        if signal.getsignal(number) is signal.SIG_DFL:
            with contextlib.suppress(ValueError, OSError):
                signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_forked)
# Of a child of multiprocessing no exit is run: it is ended by a signal, or by `os._exit`. So it saves each result at once.
# While its main module is imported it does not know its parent yet.
if multiprocessing.parent_process() is not None or getattr(
    multiprocessing.current_process(), "_inheriting", False
):
    _sde.forked()

from . import _pickling, _values  # noqa: E402  (they need the classes above)

_values.register(CachedFunction, lambda function: function.func)
_values.register(Memory, lambda memory: None)
