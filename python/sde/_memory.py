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
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Never

from . import _async, _code, _joblib, _limits, _processes, _sde

_stores: weakref.WeakSet[Memory] = weakref.WeakSet()


class Memory:
    """A store in a directory, whose functions remember what they returned.

    Args:
        location: The directory. It is made if it is missing. `None` remembers nothing: functions run as they are.
        mmap_mode: With `"r"` arrays that come back are read-only, and not copied. With `None` or `"c"` they are copies
            of one's own. Modes in which a write would change the stored result are refused.
        verbose: Above 0 a line is printed when a function is run, and one with its time; above 10 one at each hit, too.

    Raises:
        TypeError: For arguments that joblib has for its files: `backend`, `compress` and the like.
        ValueError: If `mmap_mode` is none of these.
        sde.Error: If the directory holds something else, or can't be made, read or written.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] | None = None,
        *,
        mmap_mode: str | None = None,
        verbose: int = 0,
        _shared: Any = None,
        **others: Never,
    ) -> None:
        _joblib.refuse("Memory", others)
        _joblib.is_writable(mmap_mode)
        # The whole path: a process that was forked off, or has this by pickle, may work in another directory.
        self.location = None if location is None else os.path.abspath(os.path.expanduser(location))
        self.mmap_mode = mmap_mode
        self.verbose = verbose
        self._store = _shared if self.location is None or _shared else _sde.Store(self.location)
        self._functions: weakref.WeakSet[CachedFunction] = weakref.WeakSet()
        self._declaring = threading.local()
        if self._store is not None:
            _stores.add(self)

    def cache(
        self,
        func: Callable[..., Any] | None = None,
        ignore: Iterable[str] | None = None,
        verbose: int | None = None,
        mmap_mode: str | Literal[False] | None = False,
        cache_validation_callback: Callable[[dict[str, Any]], Any] | None = None,
        *,
        tags: str | Iterable[str] = (),
        version: str | None = None,
        since: Mapping[str, Any] | None = None,
        uses: Iterable[Any] = (),
        **others: Never,
    ) -> Any:
        """Makes a function one that remembers what it returned; a decorator, with or without arguments.

        Args:
            func: The function. One that is cached already is cached anew.
            ignore: Names of parameters that can't change the result.
            verbose: As for `Memory`; `None` is what that has.
            mmap_mode: As for `Memory`; `False` is what that has.
            cache_validation_callback: Called where there is a result, with its metadata: `time`, when it was made, in
                seconds since 1970; `duration`, in seconds; `input_args`, the arguments as text. If it gives a false
                value, the function runs again. It is not asked for results that another function was computed from.
            tags: `"intermediate"`, `"expendable"` or `"no_cache"`.
            version: Takes the place of the code, with all that the function reaches: raise it by hand with each edit.
            since: For parameters that were added: the value that earlier calls meant. Calls with it keep their keys.
            uses: Objects that the function reaches in ways that can't be seen, as `getattr`.

        Raises:
            ValueError: If a name is no parameter of the function, a tag is none, or the callback can't be called.
            TypeError: For arguments that joblib has for its files.
        """
        _joblib.refuse("cache", others)
        if mmap_mode is not False:
            _joblib.is_writable(mmap_mode)
        if cache_validation_callback is not None and not callable(cache_validation_callback):
            raise ValueError(f"cache_validation_callback can't be called: it is {cache_validation_callback!r}")
        options: dict[str, Any] = {
            "ignore": frozenset(ignore or ()),
            "verbose": verbose,
            "mmap_mode": mmap_mode,
            "cache_validation_callback": cache_validation_callback,
            "tags": [tags] if isinstance(tags, str) else list(tags),
            "version": version,
            "since": dict(since or {}),
            "uses": tuple(uses),
        }
        if func is None:
            return functools.partial(self.cache, **options)
        if isinstance(func, (CachedFunction, _uncached.UncachedFunction)):
            func = func.func
        if self._store is None:
            return _uncached.UncachedFunction(self, func, options)
        looks = cache_validation_callback is not None or self._level(options) > 10
        kind = _checked.CheckedFunction if looks else CachedFunction
        return kind._made(self, func, options)

    def _level(self, options: dict[str, Any]) -> int:
        """How much is printed of a function."""
        return self.verbose if options["verbose"] is None else options["verbose"]

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
        return _pickling.memory_at, (self.location, self.mmap_mode, self.verbose)

    clear = _limits.clear
    reduce_size = _limits.reduce_size
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
    _verbose: int

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

        mode, verbose = options["mmap_mode"], memory._level(options)
        made = cls(
            memory._store,
            _joblib.announced(func) if verbose > 0 else func,
            _code.name_of(func),
            about,
            told,
            options["tags"],
            options["version"],
            _joblib.is_writable(memory.mmap_mode if mode is False else mode),
            options["cache_validation_callback"] is None,
            code,
        )
        functools.update_wrapper(made, func)
        made.func = func
        made._options = options
        made._memory = memory
        made._verbose = verbose
        memory._functions.add(made)
        return made

    def is_cached(self, *args: Any, **kwargs: Any) -> bool:
        """Whether a call would compute nothing. It runs nothing but the validation callback, and changes nothing."""
        return self.peek(*args, **kwargs)[0]

    check_call_in_cache = is_cached

    def why(self, *args: Any, **kwargs: Any) -> str:
        """What a call would do, and why: which argument or code differs from the nearest call that is remembered."""
        return self.peek(*args, **kwargs)[2]

    def key(self, *args: Any, **kwargs: Any) -> str:
        """The key of a call, as the program `sde` takes it."""
        return self.peek(*args, **kwargs)[1]

    def call(self, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Runs the function in any case, and remembers what it returns.

        Returns:
            The result, and its metadata, as a validation callback gets it.
        """
        began, clock = time.time(), time.perf_counter()
        result = self.refresh(*args, **kwargs)
        made = began, time.perf_counter() - clock
        return result, _joblib.metadata_of(self.func, self._options["ignore"], made, args, kwargs)

    def call_and_shelve(self, *args: Any, **kwargs: Any) -> _joblib.Reference:
        """Calls the function, and leaves the result in the store.

        Returns:
            A small object whose `get()` gives the result, in this process or in one that it is sent to. It holds the
            result itself if the store does not: because of a tag, or because it can't be stored.
        """
        name, mode = _joblib.name_of(self.func), self._options["mmap_mode"]
        if _processes._UNSAVED & set(self._options["tags"]):
            return _joblib.HeldReference(name, (self(*args, **kwargs),))
        key, held = self.shelve(args, kwargs, False)
        if held is not None:
            return _joblib.HeldReference(name, held)
        return _joblib.Reference(self._memory, self._memory.mmap_mode if mode is False else mode, name, key.hex())

    def clear(self, warn: bool = True) -> None:
        """Has all results of functions of this name no longer given, whatever their code, and takes them out.

        It does what `memory.clear` does, for this name: module and qualified name. All lambdas of a module that lie in
        one place have one name.

        Args:
            warn: Whether to print a line, if `verbose` is above 0.

        Raises:
            sde.Error: If the store can't be read or written.
        """
        name = _code.name_of(self.func)
        if warn and self._verbose > 0:
            print(f"[sde] {name} is cleared", flush=True)
        _sde.clear(self._memory._store, name)

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

from . import _checked, _pickling, _uncached, _values  # noqa: E402  (they need the classes above)

for _type in (CachedFunction, _checked.CheckedFunction, _uncached.UncachedFunction):
    _values.register(_type, lambda function: function.func)
for _reference in (_joblib.Reference, _joblib.HeldReference):
    _values.register(_reference, lambda reference: reference._state())
_values.register(Memory, lambda memory: None)
