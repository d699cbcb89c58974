"""Cached coroutine functions.

The engine waits on a thread of the call's own; the coroutine runs in its caller's event loop. So the engine has one run
for all that ask for a result, in any loop, thread or process, and the loop is never blocked.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

from . import _joblib, _sde
from ._checked import CheckedFunction
from ._function import CachedFunction

_P = ParamSpec("_P")
_T = TypeVar("_T")

_LOOK = 1.0
"""How often, in seconds, a thread looks whether the loop that it waits for is closed."""


class _Here(threading.local):
    """The call that this thread makes."""

    call: _Call | None = None


_here = _Here()


class _Call:
    """One call, as its event loop sees it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        self.cancel = _sde.Cancel()
        self.task: asyncio.Task[Any] | None = None
        self.is_given_up = False
        self.value: Any = None
        self.raised: BaseException | None = None

    async def make(self, run: Callable[[_sde.Cancel], Any]) -> Any:
        """Has a thread make the call, and waits for it. A cancellation goes to the coroutine, if it runs."""
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._on_thread, run), name="sde call", daemon=True).start()
        while not self.ended.is_set():
            try:
                await self.ended.wait()
            except asyncio.CancelledError:
                self._give_up()
        if self.is_given_up:
            raise asyncio.CancelledError
        if self.raised is not None:
            raise self.raised
        return self.value

    def _give_up(self) -> None:
        if self.task is None:
            self.is_given_up = True
            self.cancel.cancel()
        elif not self.task.cancel():  # it has ended, and its result is being remembered
            self.is_given_up = True

    def _on_thread(self, run: Callable[[_sde.Cancel], Any]) -> None:
        _here.call = self
        try:
            self.value = run(self.cancel)
        except BaseException as raised:
            self.raised = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            self.loop.call_soon_threadsafe(self.ended.set)

    def body(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Runs on the thread: has the loop run the coroutine, and gives what it returns."""
        context = contextvars.copy_context()  # the coroutine's calls belong to this run
        ended: queue.SimpleQueue[asyncio.Task[Any] | BaseException] = queue.SimpleQueue()

        def begin() -> None:
            try:
                if self.is_given_up:
                    raise asyncio.CancelledError
                self.task = self.loop.create_task(start(), context=context)
                self.task.add_done_callback(ended.put)
            except BaseException as raised:
                ended.put(raised)

        self.loop.call_soon_threadsafe(begin)
        while True:
            with contextlib.suppress(queue.Empty):
                result = ended.get(timeout=_LOOK)
                break
            if self.loop.is_closed():
                raise RuntimeError("the event loop was closed before the coroutine had ended; run it again")
        if isinstance(result, BaseException):
            raise result
        return result.result()


class CachedCoroutineFunction(CachedFunction[_P, Coroutine[Any, Any, _T]], Generic[_P, _T]):
    """A coroutine function whose results are remembered: `await f(..)`.

    Calls for one result that come while it is computed wait for it. A task that is cancelled cancels the coroutine;
    others that wait for it run it then. Each call has a thread while it waits: where ten thousand could be at once,
    an `asyncio.Semaphore` bounds them.

    Example:
        >>> import asyncio, sde
        >>> memory = sde.open("scan.sde")
        >>> @memory.cache
        ... async def energy(r):
        ...     await asyncio.sleep(0.01)
        ...     return (r - 1.5) ** 2
        >>> async def scan():
        ...     return await asyncio.gather(energy(1.0), energy(2.5))
        >>> asyncio.run(scan())
        [0.25, 1.0]
    """

    async def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        result: _T = await _Call().make(lambda cancel: self.call_until(cancel, args, kwargs))
        return result

    async def call(self, *args: _P.args, **kwargs: _P.kwargs) -> tuple[_T, dict[str, Any]]:  # type: ignore[override]
        """Runs the function in any case, and remembers what it returns; gives the result and its metadata."""
        began, clock = time.time(), time.perf_counter()
        result: _T = await _Call().make(lambda cancel: self.call_until(cancel, args, kwargs, anew=True))
        made = began, time.perf_counter() - clock
        return result, _joblib.metadata_of(self, made, args, kwargs)

    async def call_and_shelve(  # type: ignore[override]
        self, *args: _P.args, **kwargs: _P.kwargs
    ) -> _joblib.Reference:
        """Calls the function, and leaves the result in the store; gives a small object whose `get()` gives the result."""
        if self._is_unsaved():
            return _joblib.HeldReference(_joblib.name_of(self.func), (await self(*args, **kwargs),))
        made: _joblib.Reference = await _Call().make(lambda cancel: self._shelved(args, kwargs, cancel))
        return made

    @classmethod
    def _body(cls, func: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        @functools.wraps(func)
        def body(*args: Any, **kwargs: Any) -> Any:
            call = _here.call
            if call is None:  # nobody awaits it
                return asyncio.run(func(*args, **kwargs))
            return call.body(lambda: func(*args, **kwargs))

        return body

    @classmethod
    def _made(cls, *told: Any) -> CachedFunction[..., Any]:
        made = super()._made(*told)
        _joblib.mark_coroutine(made)
        return made


class CheckedCoroutineFunction(CachedCoroutineFunction[_P, _T], CheckedFunction):
    """A cached coroutine function with a validation callback, or with messages of hits."""


KINDS: tuple[type[CachedFunction[..., Any]], ...] = (CachedCoroutineFunction, CheckedCoroutineFunction)
