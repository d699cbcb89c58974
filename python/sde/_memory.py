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
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from . import _async, _code, _processes, _sde

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")

_stores: weakref.WeakSet[Memory] = weakref.WeakSet()


class Memory:
    """A store in a directory, whose functions remember what they returned.

    Args:
        location: The directory. It is made if it is missing. `None` remembers nothing.
        mmap_mode: With `"r"` arrays that come back are read-only, and not copied. With `None` they are copies.

    Raises:
        sde.Error: If the directory holds something else, or can't be made, read or written.

    Example:
        >>> import sde
        >>> memory = sde.Memory("scan.sde")
        >>> memory.cache(lambda x: x * x)(3)
        9
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
        self._time_at_open = self.time_left()
        self._functions: weakref.WeakSet[CachedFunction[..., Any]] = weakref.WeakSet()
        self._declaring = threading.local()
        if self._store is not None:
            _stores.add(self)

    @overload
    def cache(
        self,
        func: Callable[_P, _R],
        *,
        ignore: Iterable[str] = (),
        tags: str | Iterable[str] = (),
        version: str | None = None,
        since: Mapping[str, Any] | None = None,
        uses: Iterable[Any] = (),
    ) -> CachedFunction[_P, _R]: ...

    @overload
    def cache(
        self,
        func: None = None,
        *,
        ignore: Iterable[str] = (),
        tags: str | Iterable[str] = (),
        version: str | None = None,
        since: Mapping[str, Any] | None = None,
        uses: Iterable[Any] = (),
    ) -> _Cache: ...

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

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> @memory.cache(ignore=["verbose"])
            ... def energy(r, verbose=False):
            ...     return (r - 1.5) ** 2
            >>> energy(2.5), energy(2.5, verbose=True), memory.stats()["computed"]
            (1.0, 1.0, 1)
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

    def eval(self, func: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Calls a function, as `memory.cache(func)(*args, **kwargs)` does.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> memory.eval(lambda x: x * x, 3)
            9
        """
        return self.cache(func)(*args, **kwargs)

    def checkpoint(self) -> None:
        """Saves all that may be kept. It is on the disk when this returns.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> memory.checkpoint()
        """
        if self._store is not None:
            self._store.checkpoint()

    def finish(self) -> None:
        """Saves all, and reports what can't be saved. At the end of the program this happens by itself.

        Raises:
            sde.Error: If something can't be saved.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> memory.finish()
        """
        if self._store is not None:
            self._store.finish()

    def stats(self) -> dict[str, int]:
        """How often calls were computed, found in memory, loaded from the store, and waited for.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> def square(x):
            ...     return x * x
            >>> square = memory.cache(square)
            >>> square(3), square(3), memory.stats()["computed"]
            (9, 9, 1)
        """
        return {} if self._store is None else self._store.stats()

    def time_left(self) -> float | None:
        """The seconds that are left of the job's time; `None` without a limit.

        Example:
            >>> import sde
            >>> sde.Memory(None).time_left() is None
            True
        """
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


if TYPE_CHECKING:

    class _Cache(Protocol):
        """A decorator that keeps the function's signature."""

        def __call__(self, func: Callable[_P, _R], /) -> CachedFunction[_P, _R]: ...


class CachedFunction(_sde.Function, Generic[_P, _R]):
    """A function whose results are remembered. It is called as the function is.

    Attributes:
        func: The function itself.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> def square(x):
        ...     return x * x
        >>> square = memory.cache(square)
        >>> square(3), square.func(3), square.is_cached(3)
        (9, 9, True)
    """

    func: Callable[_P, _R]
    _options: dict[str, Any]
    _memory: Memory
    __name__: str
    __qualname__: str

    if TYPE_CHECKING:

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

    @classmethod
    def _made(
        cls,
        memory: Memory,
        func: Callable[..., Any],
        options: dict[str, Any],
        fixed: tuple[Any, ...] | None = None,
    ) -> CachedFunction[..., Any]:
        _refuse_generators(func)
        is_coroutine = inspect.iscoroutinefunction(func)
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
        made = (_coroutine.CachedCoroutineFunction if is_coroutine else cls)(
            memory._store,
            _coroutine.body_of(func) if is_coroutine else func,
            name,
            about,
            told,
            options["tags"],
            options["version"],
            memory.mmap_mode is None,
            code,
        )
        functools.update_wrapper(made, func)
        if is_coroutine:
            _coroutine.mark(made)
        made.func = func
        made._options = options
        made._memory = memory
        memory._functions.add(made)
        return made

    def is_cached(self, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Whether a call would compute nothing. It runs nothing.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> def square(x):
            ...     return x * x
            >>> square = memory.cache(square)
            >>> square.is_cached(3), square(3), square.is_cached(3)
            (False, 9, True)
        """
        return self.peek(*args, **kwargs)[0]

    check_call_in_cache = is_cached

    def why(self, *args: _P.args, **kwargs: _P.kwargs) -> str:
        """What a call would do, and why: which argument or code differs from the nearest call that is remembered.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> def square(x):
            ...     return x * x
            >>> square = memory.cache(square)
            >>> print(square.why(3))
            [...] would be computed: it was not run before
        """
        return self.peek(*args, **kwargs)[2]

    def key(self, *args: _P.args, **kwargs: _P.kwargs) -> str:
        """The key of a call, as the program `sde` takes it.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> def square(x):
            ...     return x * x
            >>> square = memory.cache(square)
            >>> square.key(3) == square.key(x=3)
            True
        """
        return self.peek(*args, **kwargs)[1]

    def call(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Runs the function in any case, and remembers what it returns.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> def square(x):
            ...     return x * x
            >>> square = memory.cache(square)
            >>> square(3), memory.stats()["computed"]
            (9, 1)
            >>> result = square.call(3)
            >>> memory.stats()["computed"]
            2
        """
        result: _R = self.refresh(*args, **kwargs)
        return result

    def invalidate(self, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Has the result of a call no longer given, in any program; says whether there was one.

        Example:
            >>> import sde
            >>> memory = sde.open("scan.sde")
            >>> def square(x):
            ...     return x * x
            >>> square = memory.cache(square)
            >>> square(3), square.invalidate(3), square.is_cached(3)
            (9, True, False)
        """
        return self.invalidate_call("invalidated from Python", args, kwargs)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> CachedFunction[_P, _R]: ...

    @overload
    def __get__(
        self: CachedFunction[Concatenate[Any, _Q], _R], instance: object, owner: type | None = None
    ) -> Callable[_Q, _R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        return _pickling.reduce(self)

    def __repr__(self) -> str:
        return f"<cached {self.__module__}.{self.__qualname__}>"


def _refuse_generators(func: Callable[..., Any]) -> None:
    kinds = {
        "an asynchronous generator": inspect.isasyncgenfunction(func),
        "a generator": inspect.isgeneratorfunction(func),
    }
    for kind, is_it in kinds.items():
        if is_it:
            name = getattr(func, "__qualname__", repr(func))
            raise TypeError(
                f"{name} can't be cached: it is {kind}, whose call returns before its code has run. Cache a function "
                "that returns a list"
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

from . import _coroutine, _pickling, _values  # noqa: E402  (they need the classes above)

for _type in (CachedFunction, _coroutine.CachedCoroutineFunction):
    _values.register(_type, lambda function: function.func)
_values.register(Memory, lambda memory: None)
