"""How arguments look to people: in `why`, and so in listings and tables."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
from typing import Any

import numpy
import pytest

import sde


class Grid:
    def __init__(self, n: int) -> None:
        self.n = n


@dataclasses.dataclass
class Point:
    r: float
    grid: Grid | None = None


class Colour(enum.Enum):
    RED = 1


SHOWN = [
    (None, "None"),
    (2.5, "2.5"),
    (numpy.float64(2.5), "2.5"),
    (numpy.int32(3), "3"),
    (numpy.bool_(True), "true"),
    (10**20, "0x56bc75e2d63100000"),
    (3 + 1j, "complex(3.0, 1.0)"),
    ([1, "x"], '[1, "x"]'),
    ((1, (2.0,)), "(1, (2.0))"),
    ({3}, "{3}"),
    ({"b": 1, "a": {"c": 2}}, "dict { b: 1, a: dict { c: 2 } }"),
    ({"a": 1}, "dict { a: 1 }"),
    ({1: 2}, "dict of 1"),
    (numpy.arange(3), "[i64; 3] 0, 1, 2"),
    (Point(1.5, Grid(4)), "Point { r: 1.5, grid: Grid { n: 4 } }"),
    (Colour.RED, "Colour.RED"),
    (Grid, "test_shown.Grid"),
    (len, "builtin"),
    (pathlib.PurePosixPath("a/b"), '"a/b"'),
    (datetime.date(2026, 1, 2), '"2026-01-02"'),
]


@pytest.mark.parametrize(("value", "shown"), SHOWN, ids=[shown for _, shown in SHOWN])
def test_an_argument_is_shown_as_a_person_would_write_it(tmp_path: pathlib.Path, value: Any, shown: str) -> None:
    memory = sde.open(tmp_path / "s")

    @memory.cache
    def f(value: Any) -> None:
        return None

    f("before")
    assert f.why(value).partition('"before" -> ')[2] == shown
