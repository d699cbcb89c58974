"""What a program changes while it runs: no call gives a result of what was there before."""

from __future__ import annotations

import pathlib
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import sde

TEXT = """
class Scale:
    factor = 2
    def of(self, x):
        return self.factor * x

FACTOR = 2
SETTINGS = {"factor": 2}

def helper(x):
    return 2 * x

def closing():
    factor = 2
    def f(x):
        return factor * x
    def set_factor(to):
        nonlocal factor
        factor = to
    return f, set_factor
closed, set_factor = closing()

def by_helper(x): return helper(x)
def by_constant(x): return FACTOR * x
def by_dict(x): return SETTINGS["factor"] * x
def by_class(x): return Scale().of(x)
def by_code(x): return 2 * x
"""


def other_code(module: Any) -> None:
    module.by_code.__code__ = (lambda x: 3 * x).__code__


CHANGES: dict[str, Callable[[Any], None]] = {
    "by_helper": lambda module: setattr(module, "helper", lambda x: 3 * x),
    "by_constant": lambda module: setattr(module, "FACTOR", 3),
    "by_dict": lambda module: module.SETTINGS.update(factor=3),
    "by_class": lambda module: setattr(module.Scale, "factor", 3),
    "closed": lambda module: module.set_factor(3),
    "by_code": other_code,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_by_the_next_call(tmp_path: pathlib.Path, name: str) -> None:
    module = types.ModuleType("changing")
    exec(compile(TEXT, "<test>", "exec", dont_inherit=True), module.__dict__)
    memory = sde.Memory(tmp_path / "s")
    f = memory.cache(getattr(module, name))
    assert (f(1), f(1)) == (2, 2)
    CHANGES[name](module)
    assert (f(1), f(1)) == (3, 3)
    assert memory.stats()["computed"] == 2


LOCK = threading.Lock()


def test_a_warning_names_the_place_of_the_function_once(tmp_path: pathlib.Path) -> None:
    memory = sde.Memory(tmp_path / "s")

    @memory.cache
    def locked(x: int) -> int:
        with LOCK:
            return x

    @memory.cache
    def other(x: int) -> int:
        return locked(x)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        assert (other(1), locked(2)) == (1, 2)
    assert {found.filename for found in told} == {__file__}
    # `other` reaches the lock too.
    lines = [function.func.__code__.co_firstlineno for function in (locked, other)]
    assert sorted(found.lineno for found in told) == lines


SEEN: list[int] = []


def test_a_global_that_a_call_changes_is_named(tmp_path: pathlib.Path) -> None:
    memory = sde.Memory(tmp_path / "s")

    @memory.cache
    def notes(x: int) -> int:
        SEEN.append(x)
        return x

    @memory.cache
    def reads(x: int) -> int:
        return x + len(SEEN)

    with pytest.warns(RuntimeWarning, match="test_changes.SEEN was changed while .*notes ran"):
        notes(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reads(1)
