"""What sweeps begin while their time runs out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from . import _sde

if TYPE_CHECKING:
    from ._memory import Memory

_FEWEST, _LATEST, _SHARE = 3, 50, 20


class OutOfTime(_sde.Error):
    """A sweep ended because its time is up, or somebody told the program to stop; what is done is remembered.

    Run the program again, which takes up the rest. In a batch job, `sys.exit(error.exit_code)` tells the script to
    queue it again.

    Attributes:
        done: The number of points that have their result.
        left: The number of all others.
        exit_code: 75, "queue me again".
    """

    exit_code: ClassVar[int] = 75

    def __init__(self, text: str, done: int = 0, left: int = 0) -> None:
        super().__init__(text)
        self.done, self.left = done, left


class NotStarted(_sde.Error):
    """A point of a sweep was not begun, because its time is up or too short for it."""


class Gate:
    """Tells whether a point may begin, as the sweeps of Rust programs do.

    It may if it is expected to end in time. Expected are 1.2 times the 90th percentile of the function's last 50 runs.
    While fewer than three are known, a point may begin while more than 5 % of the time are left.
    """

    def __init__(self, memory: Memory, recorded: Callable[[], list[float]], time_limit: float | None) -> None:
        if time_limit is not None and not time_limit >= 0:
            raise ValueError(f"time_limit is {time_limit!r}; it can be None or a number of seconds")
        self._memory = memory
        self._recorded = recorded
        self._begun = time.monotonic()
        self._limit = time_limit
        self._costs: list[float] | None = None
        self._is_closed = False

    def is_limited(self) -> bool:
        """Whether there is a limit, now."""
        return self._is_closed or bool(self._spans())

    def is_open(self) -> bool:
        """Whether a point may begin now."""
        spans = self._spans()
        if self._is_closed or any(left <= 0 for left, _ in spans):
            return False
        if not spans:
            return True
        needed = self._needed()
        return all(left > (whole / _SHARE if needed is None else needed) for left, whole in spans)

    def note(self, seconds: float) -> None:
        """Notes how long a run took."""
        if self._costs is not None:
            self._costs.append(seconds)

    def close(self) -> None:
        """Begins nothing more: a worker was told to stop."""
        self._is_closed = True

    def _spans(self) -> list[tuple[float, float]]:
        """What is left of the job's time and of the sweep's, each with the whole, in seconds."""
        spans = []
        left = self._memory.time_left()
        if left is not None:
            spans.append((left, self._memory._time_at_open or 0.0))
        if self._limit is not None:
            spans.append((self._limit - (time.monotonic() - self._begun), self._limit))
        return spans

    def _needed(self) -> float | None:
        if self._costs is None:
            self._costs = self._recorded()
        latest = sorted(self._costs[-_LATEST:])
        if len(latest) < _FEWEST:
            return None
        return 1.2 * latest[-(-9 * len(latest) // 10) - 1]


def not_started() -> NotStarted:
    """The error of a point that may not begin."""
    return NotStarted("the point was not begun: too little time is left; run the program again, which takes up the rest")


def out_of_time(done: int, left: int) -> OutOfTime:
    """The error of a sweep that ended early."""
    text = f"the time is up after {done} points, with {left} left; run the program again, which takes up the rest"
    return OutOfTime(text, done, left)
