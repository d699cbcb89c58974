"""Tables have the rows, the columns and the values that the program ``sde table`` shows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import sde

from sde_program import sde_program


def of_program(store: Path, *options: str) -> list[dict[str, Any]]:
    """What `sde table --json` writes."""
    lines = subprocess.run(
        [sde_program(), "table", str(store), "--json", *options], check=True, capture_output=True, text=True
    ).stdout
    return [json.loads(line) for line in lines.splitlines()]


@pytest.fixture
def scan(tmp_path: Path) -> tuple[sde.Memory, Any]:
    memory = sde.open(tmp_path / "scan.sde")

    @memory.cache
    def energy(r: float, basis: str, steps: int, is_tight: bool, note: str | None = None) -> dict[str, Any]:
        if steps == 13:
            raise ValueError("not converged")
        return {"energy": (r - 1.5) ** 2, "n": steps + 1, "ok": is_tight, "basis": basis}

    return memory, energy


def test_a_table_has_what_the_program_shows(scan: tuple[sde.Memory, Any], tmp_path: Path) -> None:
    memory, energy = scan
    points = [(1.0, "sto-3g", 1, True), (1.25, "6-31g", 2, False), (1e-300, "x" * 30, 3, True)]
    for point in points:
        energy(*point)
    # Nothing was saved by hand: the table is of all that this process has computed.
    table = memory.table(energy)
    assert len(table) == 3
    rows = list(table)
    assert rows == of_program(tmp_path / "scan.sde")
    assert list(rows[0]) == table.names and table.names[-1] == "key"
    assert rows[1]["r"] == 1.25 and rows[1]["steps"] == 2 and rows[1]["is_tight"] is False
    assert [type(rows[1][name]) for name in ("r", "steps", "is_tight", "basis")] == [float, int, bool, str]
    assert table[1] == rows[1] and table["r"] == [1.0, 1.25, 1e-300]
    assert rows[0]["key"] == energy.key(*points[0])
    assert list(memory.table(energy.app_name())) == rows == list(memory.table())


def test_objects_of_python_have_columns(tmp_path: Path) -> None:
    """What keeps the order of a dict and the type of a tuple in a store is not what its reader sees."""
    numpy = pytest.importorskip("numpy")
    memory = sde.open(tmp_path / "scan.sde")

    @memory.cache
    def energy(r: float, note: str | None, pair: tuple[int, str], grid: Any) -> dict[str, Any]:
        # Not in the order of the names.
        return {
            "z": {"y": 1, "x": (2.5, "text")}, "f8": numpy.float64(0.1), "f4": numpy.float32(0.5), "i": numpy.int32(4),
            "a": numpy.bool_(True), "nothing": None, "array": numpy.zeros(3), "of": {1, 2},
        }  # fmt: skip

    energy(1.0, None, (1, "x"), numpy.zeros(3))
    energy(2.0, "text", (2, "x"), numpy.zeros(3))
    table = memory.table(energy)
    first, second = table
    expected = {"z.y": 1, "z.x.0": 2.5, "z.x.1": "text", "f8": 0.1, "f4": 0.5, "i": 4, "a": True}
    assert {name.removeprefix("result."): first[name] for name in table.names if name.startswith("result.")} == expected
    assert (first["note"], second["note"]) == (None, "text")
    assert first["pair"] == '(1, "x")' and first["grid"].startswith("[f64; 3]")
    assert sorted(table.left_out) == ["result.array", "result.of (set)"]
    assert [
        {**dict.fromkeys(table.names), **row} for row in of_program(tmp_path / "scan.sde")
    ] == [first, second]
    line = subprocess.run(
        [sde_program(), "export", str(memory.location), first["key"], "--format", "json"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    result = json.loads(line)["result"]
    assert list(result) == ["z", "f8", "f4", "i", "a", "nothing", "array", "of"]
    assert result["z"] == {"y": 1, "x": [2.5, "text"]} and result["of"] == [1, 2] and result["f4"] == 0.5


def test_arrays_have_no_column_and_are_named(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    memory = sde.open(tmp_path / "scan.sde")

    @memory.cache
    def spectrum(n: int) -> dict[str, Any]:
        return {"peak": float(n), "values": numpy.arange(float(n))}

    spectrum(4)
    table = memory.table(spectrum)
    assert [name for name in table.names if "values" in name] == []
    assert any("values" in name for name in table.left_out), table.left_out
    assert list(table) == of_program(tmp_path / "scan.sde")


def test_the_text_fits_eighty_columns_and_tells_how_many(scan: tuple[sde.Memory, Any]) -> None:
    memory, energy = scan
    for steps in range(14, 54):
        energy(steps / 7, "a basis of a very long name, longer than there is room for", steps, True)
    text = repr(memory.table(energy))
    assert max(map(len, text.splitlines())) <= 80
    assert "the first 20 of 40 runs" in text and "no room for" in text
    assert repr(sde.Memory(None).table()) == "no entries"


def test_a_failure_that_stands_has_its_error(scan: tuple[sde.Memory, Any], tmp_path: Path) -> None:
    memory, energy = scan
    energy(1.0, "sto-3g", 1, True)
    with pytest.raises(ValueError, match="not converged"):
        energy(1.0, "sto-3g", 13, True)
    assert list(memory.table(energy)) == of_program(tmp_path / "scan.sde")


def test_rows_are_of_one_code_unless_all_are_asked_for(tmp_path: Path) -> None:
    memory = sde.open(tmp_path / "scan.sde")

    def version(text: str, points: range) -> Any:
        def energy(r: int) -> int:
            return r

        cached = memory.cache(energy, version=text)
        for r in points:
            cached(r)
        return cached

    version("1", range(3))
    energy = version("2", range(2))
    store = tmp_path / "scan.sde"
    table = memory.table(energy)
    assert table["r"] == [0, 1] and list(table) == of_program(store)
    assert "1 combination only under other code: all_code=True" in repr(table)
    everything = memory.table(energy, all_code=True)
    assert everything["code"] == ["1"] * 3 + ["2"] * 2
    assert list(everything) == of_program(store, "--all-code")
    assert list(memory.table(energy, code="1")) == of_program(store, "--code", "1")
    with pytest.raises(sde.Error, match="no code here"):
        memory.table(energy, code="3")
    with pytest.raises(ValueError, match="give one of them"):
        memory.table(energy, all_code=True, code="1")


def test_what_is_no_function_of_the_store_is_refused(scan: tuple[sde.Memory, Any]) -> None:
    memory, energy = scan
    energy(1.0, "sto-3g", 1, True)

    @memory.cache
    def other(x: int) -> int:
        return x

    other(1)
    with pytest.raises(sde.Error, match="a table is of one app"):
        memory.table()
    with pytest.raises(sde.Error, match="no app here is called"):
        memory.table("no.such")
    with pytest.raises(TypeError, match="no cached function"):
        memory.table(len)


def test_to_pandas_has_types(scan: tuple[sde.Memory, Any]) -> None:
    pytest.importorskip("pandas")
    memory, energy = scan
    energy(1.0, "sto-3g", 1, True)
    energy(2.0, "sto-3g", 2, False)
    frame = memory.table(energy).to_pandas()
    assert list(frame.columns) == memory.table(energy).names
    assert [frame[name].dtype.kind for name in ("r", "steps", "is_tight")] == ["f", "i", "b"]
    assert frame["steps"].sum() == 3


def test_a_run_that_reads_the_store_is_not_looked_up(tmp_path: Path) -> None:
    memory = sde.Memory(tmp_path / "s")

    @memory.cache
    def square(x):
        return x * x

    @memory.cache
    def number(of):
        return len(memory.table(square))

    @memory.cache
    def loaded(key):
        try:
            return memory.load(key)
        except sde.Error:
            return None

    square(1)
    assert (number(0), loaded(square.key(2))) == (1, None)
    square(2)
    assert (number(0), loaded(square.key(2))) == (2, {"result": 4})
