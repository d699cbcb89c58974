"""What joblib's users know: references to results, results that expire, messages, arguments that are refused."""

from __future__ import annotations

import contextlib
import datetime
import functools
import inspect
import reprlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _sde

if TYPE_CHECKING:
    from ._function import CachedFunction
    from ._memory import Memory

_FILES = "results lie in a store of SDE, not in files of joblib"
_MOVED = "give it to memory.reduce_size()"
_REFUSED = {
    "backend": _FILES,
    "backend_options": _FILES,
    "store_backend": _FILES,
    "compress": "arrays are mapped from the store as they are",
    "bytes_limit": _MOVED,
    "items_limit": _MOVED,
    "age_limit": _MOVED,
    "cachedir": "it is called location",
    "timestamp": "the store knows when a result was made",
}

# The names that joblib gives to arguments that have no parameter of their own.
_RESTS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def refuse(name: str, arguments: Iterable[str]) -> None:
    """Refuses arguments that joblib has, and that mean nothing here.

    Raises:
        TypeError: It names the first argument, and says why, if joblib has it.
    """
    for argument in arguments:
        if argument in _REFUSED:
            raise TypeError(f"{name}() takes no {argument}: {_REFUSED[argument]}")
        raise TypeError(f"{name}() got an unexpected keyword argument {argument!r}")


def is_writable(mmap_mode: str | None) -> bool:
    """Whether arrays that come back may be written to.

    Raises:
        ValueError: If it is no mode, or one in which what is written changes the stored result.
    """
    if mmap_mode in ("r+", "w+"):
        raise ValueError(
            f"mmap_mode {mmap_mode!r} would change the stored result when an array is written to: use 'c' or None, "
            "which give a copy of one's own, or 'r'"
        )
    if mmap_mode not in (None, "r", "c"):
        raise ValueError(f"mmap_mode is {mmap_mode!r}; it can be None, 'r' or 'c'")
    return mmap_mode != "r"


def expires_after(
    days: float = 0,
    seconds: float = 0,
    microseconds: float = 0,
    milliseconds: float = 0,
    minutes: float = 0,
    hours: float = 0,
    weeks: float = 0,
) -> Callable[[Mapping[str, Any]], bool]:
    """Makes a `cache_validation_callback` by which a result is computed again once it is older than this.

    Args:
        days, seconds, microseconds, milliseconds, minutes, hours, weeks: The age, which is their sum.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> @memory.cache(cache_validation_callback=sde.expires_after(hours=1))
        ... def exchange_rate(currency):
        ...     return {"EUR": 1.0}[currency]
        >>> exchange_rate("EUR")
        1.0
    """
    age = datetime.timedelta(days, seconds, microseconds, milliseconds, minutes, hours, weeks).total_seconds()

    def is_young(metadata: Mapping[str, Any]) -> bool:
        return bool(time.time() - metadata["time"] < age)

    return is_young


def metadata_of(
    function: CachedFunction[..., Any], made: tuple[float, float], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """What a validation callback is told of a result: when it was made, the seconds it took, the arguments as text."""
    bound = inspect.signature(function.func).bind(*args, **kwargs)
    bound.apply_defaults()
    given = {}
    for name, value in bound.arguments.items():
        if name not in function._options["ignore"]:
            kind = bound.signature.parameters[name].kind
            given[_RESTS.get(kind, name)] = repr(value)
    return {"time": made[0], "duration": made[1], "input_args": given}


def announced(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that prints a line when it is run, and one with its time."""

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        print(f"[sde] {called(func, args, kwargs)} is run", flush=True)
        began = time.perf_counter()
        result = func(*args, **kwargs)
        print(f"[sde] {name_of(func)} took {time.perf_counter() - began:.3g} s", flush=True)
        return result

    return run


def called(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A call as text, cut off where it is long."""
    given = [reprlib.repr(value) for value in args]
    given += [f"{name}={reprlib.repr(value)}" for name, value in kwargs.items()]
    return f"{name_of(func)}({', '.join(given)})"


def name_of(func: Callable[..., Any]) -> str:
    return getattr(func, "__qualname__", None) or repr(func)


def mark_coroutine(function: Any) -> None:
    """Marks a callable for `inspect.iscoroutinefunction`; Python 3.11 can't."""
    with contextlib.suppress(AttributeError):
        inspect.markcoroutinefunction(function)  # type: ignore[attr-defined]


class Reference:
    """A result that stays in the store until it is asked for. `f.call_and_shelve(..)` makes it.

    It is small to pickle, whatever the result, and gives the result in any process that can open the store.

    Attributes:
        func: The name of the function.
        key: The key of the call, as the program `sde` takes it.

    Example:
        >>> import pickle, sde
        >>> memory = sde.open("scan.sde")
        >>> @memory.cache
        ... def grid(n):
        ...     return list(range(n))
        >>> shelved = grid.call_and_shelve(1000)
        >>> len(pickle.dumps(shelved)) < 500
        True
        >>> len(shelved.get())
        1000
        >>> shelved.clear()
        >>> shelved.get()
        Traceback (most recent call last):
        KeyError: ...
    """

    def __init__(self, memory: Memory, mmap_mode: str | None, func: str, key: str) -> None:
        self._memory = memory
        self._mmap_mode = mmap_mode
        self.func = func
        self.key = key

    def get(self) -> Any:
        """Reads the result. What this process has not saved yet is saved first.

        Raises:
            KeyError: If it was cleared or removed, or can't be made again.
            sde.Error: If the store fails.
        """
        try:
            found = _sde.load(self._memory._store, bytes.fromhex(self.key), is_writable(self._mmap_mode))
        except _sde.Unreadable as error:
            raise KeyError(f"the result of {self.func} {error}") from error
        if found is None:
            raise KeyError(f"{self!r} is no longer there: call the function again")
        return found[0]

    def clear(self) -> None:
        """Has the result no longer given, to anybody: a call computes it again. It may be cleared already.

        Raises:
            sde.Error: If the store fails.
        """
        _sde.forget(self._memory._store, bytes.fromhex(self.key))

    def _state(self) -> Any:
        """What makes two references the same argument: the result that `get` would give."""
        return self.key, _sde.made_by(self._memory._store, bytes.fromhex(self.key))

    def __repr__(self) -> str:
        return f"<result of {self.func}, key {self.key[:12]}, in {self._memory.location!r}>"

    def __reduce__(self) -> Any:
        # Another process reads it from the disk.
        self._memory.checkpoint()
        return Reference, (self._memory, self._mmap_mode, self.func, self.key)


class HeldReference(Reference):
    """A result that no store has: of a function without a store, or one that is tagged so, or can't be stored."""

    def __init__(self, func: str, held: tuple[Any, ...]) -> None:
        self.func = func
        self.key = ""
        self._held = held

    def get(self) -> Any:
        """Gives the result.

        Raises:
            KeyError: If it was cleared.
        """
        if not self._held:
            raise KeyError(f"the result of {self.func} was cleared")
        return self._held[0]

    def clear(self) -> None:
        """Lets go of the result. It may be cleared already."""
        self._held = ()

    def _state(self) -> Any:
        return list(self._held)

    def __repr__(self) -> str:
        return f"<result of {self.func}, held by this object>"

    def __reduce__(self) -> Any:
        return HeldReference, (self.func, self._held)
