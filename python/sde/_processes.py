"""Many points of one function, here or in worker processes."""

from __future__ import annotations

import inspect
import pickle
import random
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, TypeVar

from . import _sde
from ._time import Gate, NotStarted, not_started, out_of_time
from ._workers import Setup, Worker, close, exception_of

if TYPE_CHECKING:
    from ._function import CachedFunction
    from ._memory import Memory

_R = TypeVar("_R")

_MOST_TRIES = 3
_shuffle = random.SystemRandom().shuffle
"""Programs that share a store go through their points in different orders, or each would wait for the other's point."""
_UNSAVED = {"expendable", "no_cache"}
"""The tags of results that workers don't save."""


def map(
    self: Memory,
    func: Callable[..., _R],
    points: Iterable[Any],
    processes: int | None = None,
    time_limit: float | None = None,
) -> list[_R]:
    """Calls a function at many points, and gives the results in their order.

    What is remembered is given at once. The rest is computed here, one after another, or by worker processes: fresh
    Pythons that import what they need. They don't run the program's script again, so it needs no guard of `__main__`.
    Functions, lambdas and classes of a script or notebook go to them by `cloudpickle`.

    Args:
        func: A function of this store, or one that `memory.cache(func)` makes so.
        points: For each call a tuple of arguments, a dict of named ones, or the only argument.
        processes: The number of worker processes, at most one for each point. `None` or 1 computes in this process.
        time_limit: The seconds that the sweep may take. The job's time is a limit in any case (`memory.time_left()`).

    Raises:
        sde.OutOfTime: If a point was not begun, since it was not expected to end in time. Those that run go on to their
            end. Expected are 1.2 times the 90th percentile of the function's last 50 runs; while fewer than three are
            known, a point begins while more than 5 % of the time are left. What is remembered is given in any case.
        Exception: What the function raised at the first point that failed. No point is begun after a failure; what
            others have computed is remembered.
        sde.Error: If workers can't compute what this program would, or three in turn died at one point.

    A warning tells of a worker that dies, and another computes its point. Ctrl-C ends the workers, which save what they
    have. Results tagged `expendable` or `no_cache` are given, and no worker remembers them. A worker takes about 0.2 s
    to start. A point takes 0.2 ms on its way, and as long as its result needs to be pickled.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> def energy(r, grid):
        ...     return (r - 1.5) ** 2 / grid
        >>> memory.map(energy, [(1.0, 1), {"r": 2.5, "grid": 2}])
        [0.25, 0.5]
    """
    answers = _answers(self, func, points, processes, time_limit, stops=True)
    given = [answer for answer in answers if answer is not None]
    failures = [answer.raised for answer in given if answer.raised is not None]
    for failure in failures:
        if not isinstance(failure, NotStarted):
            raise failure
    if failures:
        done = len(given) - len(failures)
        raise out_of_time(done, len(answers) - done)
    return [answer.value for answer in given]


def try_map(
    self: Memory,
    func: Callable[..., _R],
    points: Iterable[Any],
    processes: int | None = None,
    time_limit: float | None = None,
) -> list[_R | BaseException]:
    """Calls a function at many points, and gives a result or an exception for each.

    It goes on after a failure, and is otherwise as `map`. Points that are not begun in time have an `sde.NotStarted`.

    Raises:
        sde.Error: If workers can't compute what this program would.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> memory.try_map(lambda x: 1 / x, [2, 0])
        [0.5, ZeroDivisionError('division by zero')]
    """
    answers = _answers(self, func, points, processes, time_limit, stops=False)
    return [answer.value if answer.raised is None else answer.raised for answer in answers if answer]


@dataclass(slots=True)
class _Answer:
    value: Any = None
    raised: BaseException | None = None


@dataclass(slots=True)
class _Task:
    """A call that is not remembered, and the points that ask for it."""

    key: str
    args: tuple[Any, ...]
    named: dict[str, Any]
    points: list[int] = field(default_factory=list)
    tries: int = 0
    begun: float = 0.0


def _answers(
    memory: Memory,
    func: Callable[..., Any],
    points: Iterable[Any],
    processes: int | None,
    time_limit: float | None,
    stops: bool,
) -> list[_Answer | None]:
    if processes is not None and (not isinstance(processes, int) or processes < 1):
        raise ValueError(f"processes is {processes!r}; it can be None or a number from 1 on")
    called = [_arguments(point) for point in points]
    function = func if isinstance(func, _sde.Function) else memory.cache(func)
    if inspect.iscoroutinefunction(getattr(function, "func", function)):
        raise TypeError("map calls plain functions; for coroutines await asyncio.gather(*(f(point) for point in points))")
    gate = Gate(memory, function.costs if isinstance(function, _sde.Function) else list, time_limit)
    answers: list[_Answer | None] = [None] * len(called)
    if processes in (None, 1):
        _here(gate, function, called, answers, stops)
    elif not isinstance(function, _sde.Function):
        raise ValueError("worker processes need a store: give Memory a location, or use processes=1")
    else:
        _Sweep(gate, function, answers, stops, processes or 1).run(called)
    return answers


def _arguments(point: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if type(point) is tuple:
        return point, {}
    if type(point) is dict:
        return (), point
    return (point,), {}


def _here(gate: Gate, function: Any, called: list[Any], answers: list[_Answer | None], stops: bool) -> None:
    for index, (args, named) in enumerate(called):
        answer = answers[index] = _answer(lambda: _within_time(gate, function, args, named))
        if stops and answer.raised is not None:
            return


def _answer(compute: Callable[[], Any]) -> _Answer:
    try:
        return _Answer(compute())
    except Exception as raised:
        return _Answer(raised=raised)


def _within_time(gate: Gate, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A call, which is not begun if it is not expected to end in time."""
    if not gate.is_limited() or (isinstance(function, _sde.Function) and _is_given(function, args, named)):
        return function(*args, **named)
    if not gate.is_open():
        raise not_started()
    begun = time.monotonic()
    try:
        return function(*args, **named)
    finally:
        gate.note(time.monotonic() - begun)


def _is_given(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether a call gives what is remembered: there is a result, and a validation callback wants it."""
    return bool(function.glance(*args, **named)[0]) and not function._is_refused(args, named, tells=False)


class _Sweep:
    """Points that worker processes compute."""

    def __init__(
        self, gate: Gate, function: CachedFunction[..., Any], answers: list[_Answer | None], stops: bool, most: int
    ) -> None:
        self.gate = gate
        self.function = function
        self.answers = answers
        self.stops = stops
        self.most = most
        self.tasks: deque[_Task] = deque()
        self.workers: list[Worker] = []
        self.others: list[_Task] = []
        self.saved: list[_Task] = []
        self.deaths_at_start = 0
        self.has_failed = False

    def run(self, called: list[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        by_key: dict[str, _Task] = {}
        for index, (args, named) in enumerate(called):
            self._ask(by_key, index, args, named)
            if self.stops and self.has_failed:
                break
        tasks = list(by_key.values())
        _shuffle(tasks)
        self.tasks.extend(tasks)
        if self.has_failed and self.stops:
            return
        if self.tasks:
            self._compute()
            self._compute_here()
            self._catch_up()

    def _ask(self, by_key: dict[str, _Task], index: int, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Gives a point what is remembered, or makes it one of a task."""
        try:
            is_remembered, key = self.function.glance(*args, **named)
            if is_remembered:
                self._give([index], _Answer(_within_time(self.gate, self.function, args, named)))
            else:
                by_key.setdefault(key, _Task(key, args, named)).points.append(index)
        except Exception as raised:
            self._give([index], _Answer(raised=raised))

    def _give(self, points: list[int], answer: _Answer) -> None:
        for index in points:
            self.answers[index] = answer
        self.has_failed |= answer.raised is not None

    def _compute(self) -> None:
        setup = Setup(self.function)
        ended = False
        try:
            while self._goes_on():
                self._employ(setup)
                for ready in wait([source for worker in self.workers for source in worker.sources]):
                    self._hear(ready)
            ended = True
        finally:
            failures = close(self.workers, is_interrupted=not ended)
        if failures or _UNSAVED & set(self.function._options["tags"]):
            self.saved.clear()
        for failure in failures:
            warnings.warn(f"{failure}; what it computed may be computed again", RuntimeWarning, stacklevel=5)

    def _goes_on(self) -> bool:
        if self.stops and self.has_failed:
            self.tasks.clear()
        if self.tasks and not self.gate.is_open():
            for task in self.tasks:
                self._give(task.points, _Answer(raised=not_started()))
            self.tasks.clear()
        return bool(self.tasks) or any(worker.task is not None for worker in self.workers)

    def _employ(self, setup: Setup) -> None:
        """Starts workers, and gives those that wait a point each."""
        busy = sum(worker.task is not None for worker in self.workers)
        for _ in range(min(self.most, busy + len(self.tasks)) - len(self.workers)):
            self.workers.append(Worker(setup))
        for worker in self.workers:
            if worker.is_ready and worker.task is None and self.tasks:
                task = self.tasks.popleft()
                task.begun = time.monotonic()
                try:
                    worker.give(task, (task.key, task.args, task.named))
                except Exception as raised:
                    self._give(task.points, _Answer(raised=raised))

    def _hear(self, source: Any) -> None:
        worker = next((worker for worker in self.workers if source in worker.sources), None)
        if worker is None:
            return  # it was told of by another source of its
        message = worker.received()
        if message is None:
            self._lost(worker)
            return
        kind, *rest = message
        if kind == "ready":
            worker.is_ready = True
        elif kind == "broken":
            raise exception_of(worker, rest)
        else:
            task, worker.task = worker.task, None
            self._take(worker, task, kind, rest)

    def _take(self, worker: Worker, task: _Task, kind: str, rest: list[Any]) -> None:
        if kind == "raised":
            raised = exception_of(worker, rest)
            if not isinstance(raised, Exception):
                raise raised
            self._give(task.points, _Answer(raised=raised))
        elif kind == "other":
            self.others.append(task)
        elif kind == "late":
            self.gate.close()
            self._give(task.points, _Answer(raised=not_started()))
        else:
            self.gate.note(time.monotonic() - task.begun)
            self._give(task.points, _answer(lambda: self.function.returned(pickle.loads(rest[0]))))
            self.saved.append(task)

    def _lost(self, worker: Worker) -> None:
        """Puts the point of a worker that died to the front again."""
        self.workers.remove(worker)
        how, task = worker.ended(), worker.task
        if task is None:
            self.deaths_at_start += not worker.is_ready
            if self.deaths_at_start >= _MOST_TRIES:
                raise _sde.Error(f"{how} before it had begun, as {_MOST_TRIES - 1} before it; its output says why")
            return
        task.tries += 1
        place = f"{how} while it computed {self.function.__qualname__} at point {task.points[0]}"
        if task.tries < _MOST_TRIES:
            warnings.warn(f"{place}; another takes the point over", RuntimeWarning, stacklevel=6)
            self.tasks.appendleft(task)
        else:
            why = "its memory may not suffice, or the function ends the process"
            text = f"{place}, as {_MOST_TRIES - 1} before it; {why}"
            self._give(task.points, _Answer(raised=_sde.Error(text)))

    def _compute_here(self) -> None:
        """Computes points that are other calls in a worker, as when the class of an argument was edited since."""
        if self.others:
            text = (
                f"{len(self.others)} points of {self.function.__qualname__} are computed in this process: in a worker "
                "their arguments or a global are not the same. Is a file edited, or a global changed by the function?"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=5)
        for task in self.others:
            if self.stops and self.has_failed:
                break
            args, named = task.args, task.named
            self._give(task.points, _answer(lambda: _within_time(self.gate, self.function, args, named)))

    def _failed(self, task: _Task) -> bool:
        answer = self.answers[task.points[0]]
        return answer is None or answer.raised is not None

    def _catch_up(self) -> None:
        """Has this process know what workers have saved, and the run that this code is in depend on it."""
        store = self.function._memory._store
        store.refresh()
        for task in self.saved if store.is_in_run() else []:
            if not self._failed(task) and self.function.glance(*task.args, **task.named)[0]:
                self.function(*task.args, **task.named)
