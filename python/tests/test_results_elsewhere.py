"""Results that Python stored are read by others, and those of others by Python."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import sde

from sde_program import sde_program

VALUES: dict[str, Any] = {
    "an int": 7,
    "a negative int": -(2**62),
    "a float": 0.1,
    "text": "Grüße, 水",
    "truth": True,
    "nothing": None,
    "list": [1, 2.5, "three", [False, None]],
    "dict": {"a": 1, "b": {"c": [1.5]}},
}


def run(*args: str) -> str:
    return subprocess.run([sde_program(), *args], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", VALUES)
def test_built_in_values_are_typed_for_the_program(tmp_path: Path, name: str) -> None:
    memory, value = sde.open(tmp_path / "s.sde"), VALUES[name]
    function = memory.cache(lambda: value, version=name)
    assert function() == value
    memory.checkpoint()
    store, key = str(tmp_path / "s.sde"), function.key()
    assert json.loads(run("export", store, key, "--format", "json"))["result"] == value
    assert run("explain", store, key) and key[:8] in run("ls", store)
    assert "pickle" not in run("show", store, key)
    assert memory.load(key) == {"result": value}
    assert type(memory.load(key[:16])["result"]) is type(value)


DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16", "?", "f2", ">f8", "M8[s]", "U3"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_read_by_key(tmp_path: Path, dtype: str) -> None:
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(6).reshape(2, 3).astype(dtype)
    for number, array in enumerate([values, numpy.asfortranarray(values), values.reshape(6), values.reshape(6)[:0]]):
        memory = sde.open(tmp_path / f"{number}.sde")
        function = memory.cache(lambda array=array: array, version=dtype)
        function()
        within = memory.cache(lambda array=array: ({1: array}, b"bytes"), version=dtype + "within")
        within()
        found, content = memory.load(within.key())["result"]
        assert (found[1] == array).all() and found[1].dtype == array.dtype and content == b"bytes"
        loaded = memory.load(function.key())["result"]
        assert loaded.dtype == array.dtype and loaded.flags.fnc == array.flags.fnc
        assert (loaded == array).all()
        # No pickle: the program has the numbers.
        assert "pickle" not in run("show", str(memory.location), function.key())


@pytest.mark.parametrize("dtype", ["i4", "i8", "u2", "f4", "f8"])
def test_arrays_of_numbers_are_exported_as_numpy_files(tmp_path: Path, dtype: str) -> None:
    numpy = pytest.importorskip("numpy")
    memory = sde.open(tmp_path / "s.sde")
    values = numpy.arange(6).reshape(2, 3).astype(dtype)
    function = memory.cache(lambda: values, version=dtype)
    function()
    memory.checkpoint()
    run("export", str(memory.location), function.key(), "--format", "npz", "-o", str(tmp_path / "out.npz"))
    exported = numpy.load(tmp_path / "out.npz")["result"]
    assert exported.dtype == values.dtype and (exported == values).all()


def test_what_python_alone_has_comes_back_and_pickles_do_not(tmp_path: Path) -> None:
    memory = sde.open(tmp_path / "s.sde")
    plain = memory.cache(lambda: ((1, 2), {3: "x"}, 2**100, 1j, b"ab", {1, 2}), version="1")
    plain()
    assert memory.load(plain.key())["result"] == ((1, 2), {3: "x"}, 2**100, 1j, b"ab", {1, 2})
    pickled = memory.cache(lambda: Exception("x"), version="2")
    pickled()
    with pytest.raises(sde.Error, match="not loaded by key"):
        memory.load(pickled.key())
    with pytest.raises(sde.Error, match="no entry has a key"):
        memory.load("0123456789")
    with pytest.raises(sde.Error, match="is not a key"):
        memory.load("../x")


def test_results_of_a_rust_program_are_read_by_key(tmp_path: Path) -> None:
    store = tmp_path / "commands.sde"
    environment = {**os.environ, "SDE_STORE": str(store)}
    command = [sde_program(), "exec", "-q", "--get", r"n=(\d+)", "--", "echo", "12 atoms"]
    command.remove("-q")
    subprocess.run(command, check=True, capture_output=True, env=environment)
    memory = sde.open(store)
    [row] = memory.table("echo")
    assert (row["n"], row["status"]) == (12, 0)
    loaded = memory.load(row["key"])
    assert loaded["status"] == 0 and loaded["stdout"]["length"] == len("12 atoms\n")
