"""Functions of a `Memory` without a location."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _joblib, _pickling

if TYPE_CHECKING:
    from ._memory import Memory


class UncachedFunction:
    """A function of `Memory(None)`: it has the methods of a cached one but `key`, and remembers nothing.

    Attributes:
        func: The function itself.
    """

    def __init__(self, memory: Memory, func: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, func)
        self.func = func
        self._options = options
        self._memory = memory

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function."""
        return self.func(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Runs the function; gives its result, and no metadata."""
        return self.func(*args, **kwargs), {}

    def call_and_shelve(self, *args: Any, **kwargs: Any) -> _joblib.Reference:
        """Runs the function; gives an object that holds the result."""
        return _joblib.HeldReference(_joblib.name_of(self.func), (self.func(*args, **kwargs),))

    def is_cached(self, *args: Any, **kwargs: Any) -> bool:
        """False: nothing is remembered."""
        return False

    check_call_in_cache = is_cached

    def why(self, *args: Any, **kwargs: Any) -> str:
        """What a call would do, and why."""
        return "would be computed: its Memory has no location"

    def invalidate(self, *args: Any, **kwargs: Any) -> bool:
        """False: there is no result."""
        return False

    def clear(self, warn: bool = True) -> None:
        """Does nothing."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        return _pickling.reduce(self)

    def __repr__(self) -> str:
        return f"<function {self.__module__}.{_joblib.name_of(self.func)}, which is not cached>"


class UncachedCoroutineFunction(UncachedFunction):
    """A coroutine function of `Memory(None)`."""

    def __init__(self, memory: Memory, func: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(memory, func, options)
        _joblib.mark_coroutine(self)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function."""
        return await self.func(*args, **kwargs)

    async def call(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Runs the function; gives its result, and no metadata."""
        return await self.func(*args, **kwargs), {}

    async def call_and_shelve(self, *args: Any, **kwargs: Any) -> _joblib.Reference:  # type: ignore[override]
        """Runs the function; gives an object that holds the result."""
        return _joblib.HeldReference(_joblib.name_of(self.func), (await self.func(*args, **kwargs),))


KINDS: tuple[type[UncachedFunction], ...] = (UncachedFunction, UncachedCoroutineFunction)
