"""What a hit does not do: it runs no Python code, and its work does not grow with what the store has."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy
import pytest
import sde

NOTHING = None
STEPS = [1, 2.5]
SCALE, OFFSET = 1.5, (1, 2)


class Model:
    """Reached by name: its namespace is compared at each hit."""

    depth = 3

    def run(self, x: float) -> float:
        return helper(x) * SCALE


def helper(x: float, *, power: int = 2) -> float:
    return x**power


def outer() -> Callable[[float], float]:
    late: Any = 1
    empty: Any
    if late == 2:
        empty = 0

    def inner(x: float) -> float:
        return x * late if late else empty

    return inner


CLOSURE = outer()
PARTIAL = functools.partial(helper, power=3)


def reaches_much(x: float, label: str, grid: Any, settings: Any) -> float:
    if NOTHING is None and STEPS:
        return Model().run(x) + CLOSURE(x) + PARTIAL(x) + OFFSET[0]
    return 0.0


def frames_of(call: Callable[[], Any]) -> list[str]:
    """The Python functions that a call runs on this thread, but for itself."""
    names: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names[1:]


@pytest.mark.parametrize("mode", [None, "r"])
def test_a_hit_runs_no_python_code(tmp_path: Path, mode: str | None) -> None:
    cached = sde.Memory(tmp_path / "store", mmap_mode=mode).cache(reaches_much)
    settings = {"deep": [{"b": 1, "a": (None, True, 2.5)}, {"set", "of"}, 10**40, b"bytes"]}
    grid = numpy.arange(100_000.0)

    def call() -> float:
        return cached(1.0, "label", grid=grid, settings=settings)

    assert f"{__file__}:reaches_much" in frames_of(call)
    assert frames_of(call) == []


def reads() -> int:
    """How often this process has asked the system to read."""
    words = Path("/proc/self/io").read_text().split()
    return int(words[words.index("syscr:") + 1])


def reads_of(call: Callable[[], Any]) -> int:
    before = reads()
    call()
    return reads() - before


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count reads")
def test_a_key_reads_no_records(tmp_path: Path) -> None:
    filled = sde.Memory(tmp_path / "store").cache(helper)
    for x in range(200):
        filled(float(x))
    filled._memory.checkpoint()
    cached = sde.Memory(tmp_path / "store").cache(helper)
    assert cached.is_cached(1.0) and not cached.is_cached(-1.0)
    # What other threads read now and then is little beside 200 records.
    assert reads_of(lambda: cached.why(-2.0)) >= 200
    assert reads_of(lambda: (cached.key(-3.0), cached.is_cached(-3.0), cached.invalidate(-3.0))) < 100
