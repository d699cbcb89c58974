"""Calls from asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from . import _sde

if TYPE_CHECKING:
    from ._memory import Memory


_P = ParamSpec("_P")
_R = TypeVar("_R")


@overload
async def run(
    self: Memory, func: Callable[_P, Coroutine[Any, Any, _R]], /, *args: _P.args, **kwargs: _P.kwargs
) -> _R: ...


@overload
async def run(self: Memory, func: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


async def run(self: Memory, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls a cached function on a thread, so that other tasks go on meanwhile.

    A task that is cancelled gives its call up: a call that waits for another thread or process ends at once. A function
    that is running can't be stopped by Python. It runs on, and its result is remembered. A coroutine function runs in
    this event loop, and is cancelled.

    Args:
        func: A function of this store, or one that `memory.cache(func)` makes so.

    Raises:
        sde.Error: If the store fails. What the function raises comes out as it is.

    Example:
        >>> import asyncio, sde
        >>> memory = sde.open("scan.sde")
        >>> @memory.cache
        ... def energy(r):
        ...     return (r - 1.4) ** 2
        >>> asyncio.run(memory.run(energy, 1.4))
        0.0
    """
    cached = self.cache(func) if not isinstance(func, _sde.Function) else func
    if inspect.iscoroutinefunction(getattr(cached, "func", cached)):
        return await cached(*args, **kwargs)
    if not isinstance(cached, _sde.Function):
        return await asyncio.to_thread(cached, *args, **kwargs)
    cancel = _sde.Cancel()
    try:
        return await asyncio.to_thread(cached.call_until, cancel, args, kwargs)
    except asyncio.CancelledError:
        with contextlib.suppress(RuntimeError):
            cancel.cancel()
        raise
