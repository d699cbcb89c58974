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
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Never, ParamSpec, Protocol, TypeVar, overload

from . import _async, _command, _joblib, _limits, _processes, _sde, _table
from ._function import CachedFunction as CachedFunction

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Living(weakref.WeakSet[Any]):
    """Objects that live, which one thread may go through while another adds some."""

    def __iter__(self) -> Any:
        return iter([one for one in (reference() for reference in [*vars(self)["data"]]) if one is not None])


_stores: weakref.WeakSet[Memory] = _Living()


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

    Example:
        >>> import sde
        >>> memory = sde.Memory("scan.sde")
        >>> def square(x):
        ...     return x * x
        >>> square = memory.cache(square)
        >>> square(3), square(3), memory.eval(square, 3), memory.stats()["computed"]
        (9, 9, 9, 1)
        >>> memory.time_left() is None
        True
        >>> memory.table(square)["result"], memory.load(square.key(3))
        ([9], {'result': 9})
        >>> memory.checkpoint()
        >>> memory.reduce_size("1M")
        >>> memory.clear()
        >>> square.is_cached(3)
        False
        >>> memory.finish()
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
        self._time_at_open = self.time_left()
        self._functions: weakref.WeakSet[CachedFunction[..., Any]] = _Living()
        self._declaring = threading.local()
        if self._store is not None:
            _stores.add(self)

    @overload
    def cache(
        self,
        func: Callable[_P, _R],
        ignore: Iterable[str] | None = None,
        verbose: int | None = None,
        mmap_mode: str | Literal[False] | None = False,
        cache_validation_callback: Callable[[dict[str, Any]], Any] | None = None,
        *,
        tags: str | Iterable[str] = (),
        version: str | None = None,
        since: Mapping[str, Any] | None = None,
        uses: Iterable[Any] = (),
    ) -> CachedFunction[_P, _R]: ...

    @overload
    def cache(
        self,
        func: None = None,
        ignore: Iterable[str] | None = None,
        verbose: int | None = None,
        mmap_mode: str | Literal[False] | None = False,
        cache_validation_callback: Callable[[dict[str, Any]], Any] | None = None,
        *,
        tags: str | Iterable[str] = (),
        version: str | None = None,
        since: Mapping[str, Any] | None = None,
        uses: Iterable[Any] = (),
    ) -> _Cache: ...

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

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> @memory.cache(ignore=["verbose"])
            ... def energy(r, verbose=False):
            ...     return (r - 1.5) ** 2
            >>> energy(2.5), energy(2.5, verbose=True), memory.stats()["computed"]
            (1.0, 1.0, 1)
        """
        _joblib.refuse("cache", others)
        if not isinstance(mmap_mode, bool):
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
            return _uncached.KINDS[inspect.iscoroutinefunction(func)](self, func, options)
        looks = cache_validation_callback is not None or self._level(options) > 10
        kinds = _coroutine.KINDS if inspect.iscoroutinefunction(func) else _KINDS
        return kinds[looks]._made(self, func, options)

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

    def eval(self, func: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Calls a function, as `memory.cache(func)(*args, **kwargs)` does."""
        return self.cache(func)(*args, **kwargs)

    def table(
        self, function: CachedFunction[..., Any] | str | None = None, *, all_code: bool = False, code: str | None = None
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

        Numbers, texts, lists, maps and arrays become Python's; a struct of Rust becomes a dict, a file its description.
        No pickle is loaded: call the function for such a result.

        Args:
            key: The key, or its beginning, as `sde ls` and `memory.table` show it.

        Raises:
            sde.Error: If there is no such run, it failed, or a result can't be read.
        """
        if self._store is None:
            raise _sde.Error("nothing is remembered without a store: give Memory a location")
        self._store.checkpoint()
        try:
            return self._store.load(key, _joblib.is_writable(self.mmap_mode))
        except _sde.Unreadable as error:
            raise _sde.Error(f"a result of {key} is not loaded by key: it {error}") from error

    def command(self, program: _command._Path, *args: _command._Path, **options: Any) -> _command.Command:
        """A run of another program, remembered in this store; `run()` makes it. The options are those of `sde.command`.

        Example:
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
        return _pickling.memory_at, (self.location, self.mmap_mode, self.verbose)

    clear = _limits.clear
    reduce_size = _limits.reduce_size
    map = _processes.map
    try_map = _processes.try_map
    run = _async.run


def open(location: str | os.PathLike[str]) -> Memory:
    """Opens a store, or makes it. Arrays that come back are read-only.

    Raises:
        sde.Error: If the directory holds something else, or can't be made, read or written.

    Example:
        >>> import sde
        >>> sde.open("scan.sde").cache(lambda x: x * x)(3)
        9
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
    _pickling.forked()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        if signal.getsignal(number) is signal.SIG_DFL:
            with contextlib.suppress(ValueError, OSError):
                signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_forked)
# A child of multiprocessing runs no `atexit`: a signal ends it, or `os._exit`. So it saves each result at once.
# While its main module is imported it does not know its parent yet.
if multiprocessing.parent_process() is not None or getattr(multiprocessing.current_process(), "_inheriting", False):
    _sde.forked()

if TYPE_CHECKING:

    class _Cache(Protocol):
        """A decorator that keeps the function's signature."""

        def __call__(self, func: Callable[_P, _R], /) -> CachedFunction[_P, _R]: ...


from . import _checked, _coroutine, _pickling, _uncached, _values  # noqa: E402  (they need the classes above)

_KINDS: tuple[type[CachedFunction[..., Any]], ...] = (CachedFunction, _checked.CheckedFunction)
for _type in (*_KINDS, *_coroutine.KINDS, *_uncached.KINDS):
    _values.register(_type, lambda function: function.func)
for _reference in (_joblib.Reference, _joblib.HeldReference):
    _values.register(_reference, lambda reference: reference._state())
_values.register(Memory, lambda memory: None)
