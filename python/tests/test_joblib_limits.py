"""Results that are cleared, and stores that are reduced to limits."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import programs
import pytest
from test_joblib import Counted

import sde


@pytest.fixture
def memory(tmp_path: Path) -> sde.Memory:
    return sde.Memory(tmp_path / "s")


FUNCTIONS = """
memory = sde.Memory("s")
@memory.cache
def f(x):
    print("f runs")
    return x
@memory.cache
def g(x):
    print("g runs")
    return x
"""


def test_a_function_is_cleared_and_no_other(tmp_path: Path) -> None:
    text = FUNCTIONS + "f(1), g(1)\n"
    assert programs.run(tmp_path, text) == ["f runs", "g runs"]
    assert programs.run(tmp_path, text) == []
    # In the process that clears, in the next, and with what only memory had.
    assert programs.run(tmp_path, FUNCTIONS + "f(1), f(2), f.clear(), print('-'), f(1), f(2), g(1)") == ["f runs", "-", "f runs", "f runs"]
    assert programs.run(tmp_path, FUNCTIONS + "f(1), f(2), g(1), f.clear()") == []
    assert programs.run(tmp_path, text) == ["f runs"]


def test_all_is_cleared(tmp_path: Path) -> None:
    text = FUNCTIONS + "f(1), g(1)\n"
    assert programs.run(tmp_path, text) == ["f runs", "g runs"]
    assert programs.run(tmp_path, FUNCTIONS + "f(1), memory.clear(), f(1)") == ["f runs"]
    assert programs.run(tmp_path, text) == ["g runs"]


def test_what_earlier_code_left_is_cleared_too(tmp_path: Path) -> None:
    text = FUNCTIONS + "f(1)\n"
    other = text.replace("return x", "return x + 0")
    assert programs.run(tmp_path, text) == ["f runs"]
    assert programs.run(tmp_path, other + "f.clear()") == ["f runs"]
    assert programs.run(tmp_path, text) == ["f runs"]


def test_clearing_what_was_never_called(memory: sde.Memory) -> None:
    counted = Counted(memory)
    counted.f.clear()
    memory.clear()
    memory.reduce_size(items_limit=0)
    assert counted.ran(1)


@pytest.mark.parametrize("tag", ["expendable", "intermediate"])
def test_results_with_tags_are_cleared(memory: sde.Memory, tag: str) -> None:
    counted = Counted(memory, tags=tag)
    assert counted.ran(1) and not counted.ran(1)
    counted.f.clear()
    assert counted.ran(1)
    memory.clear()
    assert counted.ran(1)
    memory.checkpoint()
    assert not counted.ran(1)


def test_an_array_that_is_held_is_cleared(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    memory = sde.open(tmp_path / "s")
    runs = []

    @memory.cache(version="1")
    def f() -> Any:
        runs.append(1)
        return numpy.zeros(100_000)

    held = f()
    memory.checkpoint()
    f.clear()
    again = f()
    assert len(runs) == 2
    assert held.sum() == again.sum() == 0


def test_what_another_process_is_writing_is_cleared(tmp_path: Path) -> None:
    """Its file can't be replaced, so its results are marked."""
    writer = programs.begin(tmp_path, FUNCTIONS + """
f(1)
g(1)
memory.checkpoint()
pathlib.Path("written").touch()
wait_for("cleared")
""", "writer.py")
    text = FUNCTIONS + """
wait_for("written")
f(1)
f.clear()
f(1)
memory.checkpoint()
pathlib.Path("cleared").touch()
"""
    assert programs.run(tmp_path, text) == ["f runs"]
    assert programs.end(writer) == ["f runs", "g runs"]
    assert programs.run(tmp_path, FUNCTIONS + "f(1), g(1)") == []


def test_what_both_have_computed_is_cleared(tmp_path: Path) -> None:
    """Two computations of one key: the clearing process has its own in memory, and the store the other's."""
    writer = programs.begin(tmp_path, FUNCTIONS + """
wait_for("computed")
f.call(1)
memory.checkpoint()
pathlib.Path("written").touch()
wait_for("cleared")
""", "writer.py")
    text = FUNCTIONS + """
f(1)
memory.checkpoint()
pathlib.Path("computed").touch()
wait_for("written")
f.clear()
f(1)
pathlib.Path("cleared").touch()
"""
    assert programs.run(tmp_path, text) == ["f runs", "f runs"]
    assert programs.end(writer) == ["f runs"]


def test_a_reference_is_cleared_that_both_have_computed(tmp_path: Path) -> None:
    writer = programs.begin(tmp_path, FUNCTIONS + """
wait_for("computed")
f.call(1)
memory.checkpoint()
pathlib.Path("written").touch()
wait_for("cleared")
""", "writer.py")
    text = FUNCTIONS + """
shelved = f.call_and_shelve(1)
memory.checkpoint()
pathlib.Path("computed").touch()
wait_for("written")
shelved.clear()
try:
    shelved.get()
except KeyError:
    print("gone")
f(1)
pathlib.Path("cleared").touch()
"""
    assert programs.run(tmp_path, text) == ["f runs", "gone", "f runs"]
    assert programs.end(writer) == ["f runs"]


def test_clearing_within_a_run(memory: sde.Memory) -> None:
    counted = Counted(memory)

    @memory.cache(version="1")
    def outer() -> Any:
        counted.f(1)
        counted.f.clear()
        memory.reduce_size(items_limit=0)
        return counted.f(1)

    assert outer() == [1, 1]
    assert len(counted.runs) == 2


def cached(counted: Counted, of: range) -> list[int]:
    return [x for x in of if counted.f.check_call_in_cache(x)]


def filled(memory: sde.Memory) -> Counted:
    counted = Counted(memory)
    for x in range(5):
        counted.f(x)
        memory.checkpoint()
    return counted


def test_without_limits_nothing_goes(memory: sde.Memory) -> None:
    counted = filled(memory)
    memory.reduce_size()
    memory.reduce_size(bytes_limit="1M", items_limit=5, age_limit=datetime.timedelta(days=1))
    memory.reduce_size(bytes_limit=1 << 40)
    assert cached(counted, range(5)) == [0, 1, 2, 3, 4]


def test_the_number_of_results_is_limited(memory: sde.Memory) -> None:
    counted = filled(memory)
    memory.reduce_size(items_limit=3)
    assert cached(counted, range(5)) == [2, 3, 4]
    assert not counted.ran(4) and counted.ran(0)
    memory.reduce_size(items_limit=0)
    assert cached(counted, range(5)) == []


def test_what_was_used_stays(tmp_path: Path) -> None:
    text = """
    memory = sde.Memory("s")
    @memory.cache
    def f(x):
        print("runs", x)
        return x
    """
    fill = "\n    for x in range(4): f(x), memory.checkpoint()"
    assert len(programs.run(tmp_path, text + fill)) == 4
    # One in the program that reduces, one in another.
    programs.run(tmp_path, text + "\n    f(0)")
    programs.run(tmp_path, text + "\n    f(2), f(2), memory.reduce_size(items_limit=2)")
    assert programs.run(tmp_path, text + "\n    for x in range(4): f(x)") == ["runs 1", "runs 3"]


def test_the_bytes_are_limited(memory: sde.Memory) -> None:
    runs = []

    @memory.cache(version="1")
    def large(x: int) -> bytes:
        runs.append(x)
        return bytes([x]) * 1_000_000

    for x in range(4):
        large(x)
        memory.checkpoint()
    memory.reduce_size(bytes_limit="2.5M")
    assert [large.check_call_in_cache(x) for x in range(4)] == [False, False, True, True]
    memory.reduce_size(bytes_limit="1K")
    assert not any(large.check_call_in_cache(x) for x in range(4))


def test_the_age_is_limited(memory: sde.Memory) -> None:
    counted = filled(memory)
    memory.reduce_size(age_limit=datetime.timedelta(days=365 * 10_000))
    assert cached(counted, range(5)) == [0, 1, 2, 3, 4]
    memory.reduce_size(age_limit=datetime.timedelta(0))
    assert cached(counted, range(5)) == []


def test_limits_that_are_none(memory: sde.Memory) -> None:
    for limits, why in [
        ({"age_limit": datetime.timedelta(seconds=-1)}, "has to be a positive timedelta"),
        ({"bytes_limit": "1T"}, "bytes_limit is '1T'"),
        ({"bytes_limit": "M"}, "bytes_limit is 'M'"),
        ({"bytes_limit": "nanM"}, "bytes_limit is 'nanM'"),
        ({"items_limit": -1}, "items_limit is -1"),
    ]:
        with pytest.raises(ValueError, match=why):
            memory.reduce_size(**limits)  # type: ignore[arg-type]


def test_what_another_process_is_writing_goes_too(tmp_path: Path) -> None:
    writer = programs.begin(tmp_path, FUNCTIONS + """
f(1)
memory.checkpoint()
pathlib.Path("written").touch()
wait_for("reduced")
""", "writer.py")
    text = FUNCTIONS + """
wait_for("written")
g(1)
memory.reduce_size(items_limit=1)
f(1)
g(1)
# What is marked counts no more: of f(2) and g(1) both stay.
f.invalidate(1)
f(2)
memory.reduce_size(items_limit=3)
print(f.is_cached(2), g.is_cached(1))
pathlib.Path("reduced").touch()
"""
    assert programs.run(tmp_path, text) == ["g runs", "f runs", "f runs", "True True"]
    assert programs.end(writer) == ["f runs"]
