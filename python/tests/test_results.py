"""Results come back equal, with their types, also in a new process."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import fractions
import math
import os
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy
import pytest

import sde

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Model:
    name: str
    weights: Any


class MyList(list):
    pass


class Hostile:
    """Its pickle makes a file when it is loaded."""

    def __reduce__(self) -> Any:
        return os.mkdir, (os.environ.get("HOSTILE", "/nonexistent/a"),)


Pair = collections.namedtuple("Pair", "a b")


def results() -> dict[str, Any]:
    f = numpy.arange(6.0).reshape(2, 3)
    kinds = "? i1 u1 i2 >i4 u8 f2 f4 >f8 g F D G M8[s] m8[ms] S3 U3".split()
    return {
        **{f"array {kind}": numpy.zeros((2, 3), kind) for kind in kinds},
        **{f"scalar {kind}": numpy.ones(2, kind)[0] for kind in kinds if kind[0] not in ">S"},
        "none": None, "bools": [True, False], "ints": [0, -1, 2**63, -(10**5000)],
        "floats": [0.0, -0.0, 1.5, math.inf, math.nan], "complex": complex(-0.0, 1), "texts": ["", "\udc80", "a\0"],
        "bytes": [b"", b"a", bytearray(b"b")], "tuples": ((), (1,), ([2],)), "sets": ({1, "a"}, frozenset({(1, 2)})),
        "order": {"b": 1, "a": {"z": 1, "y": 2}}, "names": {1: 1, (2,): 2, None: 3, "py": 4}, "empty": [{}, [], set()],
        "py": {"py": "tuple", "of": [1]}, "file": {"$sde::file": 1}, "dates": datetime.date(2020, 1, 1),
        "delta": datetime.timedelta(1, 2, 3), "decimal": decimal.Decimal("-0.10"), "fraction": fractions.Fraction(1, 3),
        "path": pathlib.Path("a/b"), "f": numpy.asfortranarray(f), "c": f, "f complex": numpy.asfortranarray(f + 1j),
        "strided": f[:, ::2], "flat": f.ravel(), "0-d": numpy.array(2.0), "0-d complex": numpy.array(2j),
        "no rows": numpy.zeros((0, 3)), "none of complex": numpy.zeros((3, 0), "D"),
        "structured": numpy.ones(2, [("a", "i1"), ("b", "f8")]), "objects": numpy.array([1, None, "a"], object),
        "model": Model("m", f), "pair": Pair(1, [2]), "my list": MyList([1]), "when": datetime.datetime(2020, 1, 1),
        "masked": numpy.ma.array([1, 2], mask=[0, 1]), "counter": collections.Counter("aab"),
        "ordered": collections.OrderedDict(b=1, a=2), "str_": numpy.str_("a"), "range": range(3),
    }  # fmt: skip


def same(one: Any, two: Any, path: str = "") -> None:
    assert type(one) is type(two), path
    if isinstance(one, numpy.ndarray):
        assert one.dtype == two.dtype and one.shape == two.shape, path
        assert one.flags.fnc == two.flags.fnc, path
        assert one.tobytes() == two.tobytes() if not one.dtype.hasobject else list(one) == list(two), path
    elif isinstance(one, dict):
        same(list(one), list(two), path)
        for name in one:
            same(one[name], two[name], f"{path}[{name!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two), path
        for at, (left, right) in enumerate(zip(one, two)):
            same(left, right, f"{path}[{at}]")
    elif isinstance(one, Model):
        same(vars(one), vars(two), path)
    elif isinstance(one, (float, complex)):
        assert repr(one) == repr(two), path
    else:
        assert one == two, path


def each(store: pathlib.Path, is_writable: bool) -> int:
    """Asks for each result, and holds it against the original; gives how many calls ran."""
    memory = sde.Memory(store) if is_writable else sde.open(store)

    @memory.cache(version="1")
    def one(name: str) -> Any:
        return results()[name]

    for name, expected in results().items():
        for _ in range(2):
            found = one(name)
            same(expected, found, name)
            if type(found) is numpy.ndarray and not found.dtype.hasobject and found.dtype.names is None:
                assert found.flags.writeable == is_writable, name
    memory.finish()
    return memory.stats()["computed"]


@pytest.mark.parametrize("is_writable", [True, False])
def test_results_come_back_in_a_new_process(tmp_path: pathlib.Path, is_writable: bool) -> None:
    assert each(tmp_path / "s", is_writable) == len(results())
    program = (
        f"import sys, pathlib; sys.path[:0] = [{str(HERE)!r}]; import test_results\n"
        f"ran = test_results.each(pathlib.Path({str(tmp_path / 's')!r}), {is_writable}); assert ran == 0, ran"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("is_writable", [True, False])
def test_arrays_in_containers_are_as_the_store_says(tmp_path: pathlib.Path, is_writable: bool) -> None:
    memory = sde.Memory(tmp_path / "s") if is_writable else sde.open(tmp_path / "s")

    @memory.cache(version="1")
    def nested() -> Any:
        return {"a": [numpy.ones(3), (numpy.ones(2, "D"),)], "m": Model("m", numpy.ones(9)), "n": numpy.ones(2, ">f8")}

    for _ in range(2):
        found = nested()
        for one in (found["a"][0], found["a"][1][0], found["m"].weights, found["n"]):
            assert one.flags.writeable == is_writable
            if is_writable:
                one[0] = 7
        assert type(found["a"]) is list
    if is_writable:
        assert nested()["a"][0][0] == 1 and nested()["m"].weights[0] == 1


def test_shared_references_and_cycles_stay(tmp_path: pathlib.Path) -> None:
    memory = sde.Memory(tmp_path / "s")

    @memory.cache(version="1")
    def shared(how: str) -> Any:
        inner, array = [1], numpy.ones(2)
        if how == "cycle":
            inner.append(inner)
            return inner
        if how == "deep":
            deep: Any = 0
            for _ in range(150):
                deep = (deep,)
            return deep
        if how == "through a pickle":
            return {"inner": inner, "model": Model("m", inner)}
        if how == "two pickles":
            return [Model("m", inner), Model("n", inner)]
        return {"inner": [inner, inner], "array": [array, array]}

    for _ in range(2):
        found = shared("cycle")
        assert found[1] is found
        found = shared("plain")
        assert found["inner"][0] is found["inner"][1] and found["array"][0] is found["array"][1]
        found = shared("through a pickle")
        assert found["inner"] is found["model"].weights
        found = shared("two pickles")
        assert found[0].weights is found[1].weights
        depth, found = 0, shared("deep")
        while found != 0:
            depth, found = depth + 1, found[0]
        assert depth == 150


def test_a_result_that_pickle_cannot_write_goes_to_its_caller_with_its_place(tmp_path: pathlib.Path) -> None:
    memory = sde.Memory(tmp_path / "s")
    runs = []

    @memory.cache(version="1")
    def bad() -> Any:
        runs.append(1)
        return {"a": [1, lambda: 2]}

    for call in (bad, bad, lambda: bad.call()[0]):
        with pytest.warns(RuntimeWarning, match=r"bad is not remembered: the result\['a'\]\[1\]: .*can't be stored"):
            assert call()["a"][1]() == 2
    assert len(runs) == 3


def test_a_pickle_that_cannot_be_loaded_is_a_miss(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = sde.Memory(tmp_path / "s")

    @memory.cache(version="1")
    def made() -> Any:
        return Model("m", 1)

    made()
    monkeypatch.setattr(pickle, "loads", _fails_once(pickle.loads))
    with pytest.warns(RuntimeWarning, match="run again"):
        assert made() == Model("m", 1)
    assert memory.stats()["computed"] == 2


def _fails_once(loads: Any) -> Any:
    left = [1]

    def failing(*args: Any, **named: Any) -> Any:
        if left:
            left.pop()
            raise ImportError("gone")
        return loads(*args, **named)

    return failing


def of_environment() -> Any:
    return Hostile() if os.environ["WHAT"] == "hostile" else Model("m", 2)


PROGRAM = """
import sys; sys.path[:0] = [{here!r}]
import sde, test_results
memory = sde.open({store!r})
@memory.cache(version="1")
def f(kind):
    print("ran", kind)
    return (1, [2.5]) if kind == "typed" else test_results.of_environment()
print(f("typed"), type(f("pickle")).__name__)
memory.finish()
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
def test_a_pickle_of_another_user_is_a_miss(tmp_path: pathlib.Path) -> None:
    store, trap = tmp_path / "s", tmp_path / "trap"
    package = str(pathlib.Path(sde.__file__).parents[1])

    def run(what: str) -> subprocess.CompletedProcess[str]:
        program = PROGRAM.format(here=str(HERE), store=str(store))
        env = {**os.environ, "PYTHONPATH": package, "WHAT": what, "HOSTILE": str(trap)}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stderr
        return done

    assert run("hostile").stdout.split("\n")[:2] == ["ran typed", "ran pickle"]
    trap.rmdir()  # to load it, as its own user does, makes it
    for path in [store, *store.rglob("*")]:  # a store that a group shares, in which another user has saved all
        os.chown(path, 1234, os.getegid())
        path.chmod(0o2770 if path.is_dir() else 0o660)
    other = run("model")
    assert not trap.exists()
    assert other.stdout == "ran pickle\n(1, [2.5]) Model\n"
    assert "another user" in other.stderr
    again = run("model")
    assert (again.stdout, again.stderr) == ("(1, [2.5]) Model\n", "")
