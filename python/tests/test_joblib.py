"""What of joblib's `Memory` is behaviour, row by row of the list in docs/decisions/0037."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import programs
import pytest

import sde

numpy = pytest.importorskip("numpy")


class Counted:
    """A function of one argument, and how often it ran."""

    def __init__(self, memory: sde.Memory, **options: Any) -> None:
        self.runs: list[Any] = []
        runs = self.runs

        def twice(x: Any, note: Any = None) -> Any:
            runs.append(x)
            return [x, x]

        self.twice = twice
        # Its runs are a list that it changes.
        self.f = memory.cache(twice, version="1", **options)

    def ran(self, *args: Any, **kwargs: Any) -> bool:
        """Whether a call runs the function."""
        before = len(self.runs)
        assert self.f(*args, **kwargs) == [args[0], args[0]]
        return len(self.runs) > before


@pytest.fixture
def memory(tmp_path: Path) -> sde.Memory:
    return sde.Memory(tmp_path / "s")


def test_a_home_folder_and_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sde.Memory("~/a/b").location == str(tmp_path / "a/b")
    assert (tmp_path / "a/b/FORMAT").is_file()


@pytest.mark.parametrize(
    "name", ["backend", "backend_options", "compress", "store_backend", "bytes_limit", "items_limit", "age_limit", "cachedir"]
)
def test_arguments_of_files_are_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    with pytest.raises(TypeError, match=rf"Memory\(\) takes no {name}: \w+"):
        sde.Memory(tmp_path / "s", **{name: None})  # type: ignore[arg-type]
    assert not (tmp_path / "s").exists()


def test_an_unknown_argument_is_refused(memory: sde.Memory) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'mmapmode'"):
        sde.Memory(None, mmapmode="r")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"cache\(\) takes no compress"):
        memory.cache(lambda: 1, compress=True)  # type: ignore[arg-type]


def test_the_forms_of_the_decorator(memory: sde.Memory) -> None:
    def f(x: int, note: int = 0) -> int:
        return x + 1

    again = memory.cache(memory.cache(f))
    assert again.func is f
    for cached in (memory.cache(f), memory.cache(f, ["note"]), memory.cache(ignore=["note"])(f), memory.cache()(f)):
        assert (cached(1), cached.func, cached.__wrapped__) == (2, f, f)
        assert (cached.__name__, cached.__doc__, cached.__module__) == ("f", f.__doc__, f.__module__)
    with pytest.raises(ValueError, match="no parameter 'y'"):
        memory.cache(f, ignore=["y"])
    assert memory.eval(f, 1) == 2


def test_an_ignored_argument(memory: sde.Memory) -> None:
    counted = Counted(memory, ignore=["note"])
    assert counted.ran(1, note=object())
    assert not counted.ran(1, note=object())


@pytest.mark.parametrize("mmap_mode", [None, "c", "r"])
@pytest.mark.parametrize("of_memory", [True, False])
def test_arrays_are_writable_unless_mapped(tmp_path: Path, mmap_mode: str | None, of_memory: bool) -> None:
    memory = sde.Memory(tmp_path / "s", mmap_mode=mmap_mode if of_memory else ("r" if mmap_mode is None else None))
    options = {} if of_memory else {"mmap_mode": mmap_mode}

    @memory.cache(**options)
    def zeros() -> Any:
        return numpy.zeros(3)

    for _ in range(3):
        array = zeros()
        assert array.flags.writeable == (mmap_mode != "r")
        assert array.tolist() == [0, 0, 0]
        if mmap_mode != "r":
            array[:] = 1
    shelved = zeros.call_and_shelve()
    assert shelved.get().flags.writeable == (mmap_mode != "r")
    assert pickle.loads(pickle.dumps(zeros))().flags.writeable == (mmap_mode != "r")


def test_modes_that_change_the_store_are_refused(memory: sde.Memory) -> None:
    for mode in ("r+", "w+"):
        with pytest.raises(ValueError, match="would change the stored result.*'c' or None"):
            sde.Memory(None, mmap_mode=mode)
    with pytest.raises(ValueError, match="it can be None, 'r' or 'c'"):
        memory.cache(lambda: 1, mmap_mode="x")


def test_a_call_that_is_looked_for(memory: sde.Memory) -> None:
    counted = Counted(memory)
    assert counted.f.check_call_in_cache(2) is False
    assert counted.ran(2)
    assert counted.f.check_call_in_cache(2) is True
    assert counted.runs == [2]


def test_a_forced_call_gives_metadata(memory: sde.Memory) -> None:
    counted = Counted(memory, ignore=["note"])
    assert counted.ran(2)
    before = time.time()
    result, metadata = counted.f.call(2, note="not told")
    assert (result, counted.runs) == ([2, 2], [2, 2])
    assert before <= metadata["time"] <= time.time()
    assert 0 < metadata["duration"] < 60
    assert metadata["input_args"] == {"x": "2"}
    assert not counted.ran(2)


def test_what_a_forced_call_returns_is_remembered(memory: sde.Memory) -> None:
    values = [1, 2]

    @memory.cache(version="1", cache_validation_callback=lambda metadata: True)
    def next_value() -> int:
        return values.pop(0)

    assert (next_value(), next_value.call()[0], next_value()) == (1, 2, 2)


def test_a_result_is_shelved(tmp_path: Path, memory: sde.Memory) -> None:
    counted = Counted(memory)
    shelved = counted.f.call_and_shelve(2)
    assert isinstance(shelved, sde.Reference)
    assert (shelved.get(), shelved.get(), counted.runs) == ([2, 2], [2, 2], [2])
    assert counted.f.call_and_shelve(2).get() == [2, 2]
    assert counted.runs == [2]
    shelved.clear()
    with pytest.raises(KeyError, match="no longer there"):
        shelved.get()
    shelved.clear()
    assert counted.f.check_call_in_cache(2) is False
    assert counted.ran(2)
    assert shelved.get() == [2, 2]


def test_a_reference_is_small_and_goes_to_another_process(tmp_path: Path, memory: sde.Memory) -> None:
    @memory.cache(version="1")
    def large(n: int) -> Any:
        return numpy.arange(n)

    pickled = pickle.dumps(large.call_and_shelve(100_000))
    assert len(pickled) < 500
    (tmp_path / "shelved").write_bytes(pickled)
    text = """
    import pickle
    shelved = pickle.load(open("shelved", "rb"))
    print(int(shelved.get()[-1]))
    shelved.clear()
    try:
        shelved.get()
    except KeyError:
        print("gone")
    """
    assert programs.run(tmp_path, text) == ["99999", "gone"]
    # This process has it in memory, and the other has marked it.
    with pytest.raises(KeyError):
        pickle.loads(pickled).get()


def test_a_reference_to_what_was_cleared_otherwise(memory: sde.Memory) -> None:
    counted = Counted(memory)
    clear: list[Any] = [counted.f.clear, memory.clear, lambda: counted.f.invalidate(2), lambda: memory.reduce_size(items_limit=0)]
    for way in clear:
        shelved = counted.f.call_and_shelve(2)
        assert shelved.get() == [2, 2]
        way()
        with pytest.raises(KeyError):
            shelved.get()
    assert counted.runs == [2] * len(clear)


@pytest.mark.parametrize("tag", ["expendable", "no_cache", "intermediate"])
def test_a_reference_to_a_result_that_no_store_has(memory: sde.Memory, tag: str) -> None:
    counted = Counted(memory, tags=tag)
    shelved = counted.f.call_and_shelve(2)
    assert counted.runs == [2]
    memory.finish()
    assert pickle.loads(pickle.dumps(shelved)).get() == [2, 2]
    shelved.clear()
    with pytest.raises(KeyError):
        shelved.get()


def test_a_reference_to_a_result_that_cannot_be_stored(memory: sde.Memory) -> None:
    @memory.cache(version="1")
    def lock() -> Any:
        return lambda: 2

    with pytest.warns(RuntimeWarning, match="is not remembered"):
        shelved = lock.call_and_shelve()
    assert shelved.get()() == 2


def test_a_reference_as_argument_is_the_result_that_it_gives(memory: sde.Memory) -> None:
    values, runs = [1, 2], []

    @memory.cache(version="1", cache_validation_callback=lambda metadata: True)
    def value() -> int:
        return values.pop(0)

    @memory.cache(version="1")
    def more(of: sde.Reference) -> int:
        runs.append(1)
        return of.get() + 10

    assert more(value.call_and_shelve()) == 11
    assert more(value.call_and_shelve()) == 11
    assert len(runs) == 1
    value.call()
    assert more(value.call_and_shelve()) == 12


def test_a_reference_within_a_cached_function(memory: sde.Memory) -> None:
    runs = []

    @memory.cache
    def inner(x: int) -> int:
        return x + 1

    @memory.cache(version="1")
    def outer(x: int) -> int:
        runs.append(x)
        return inner.call_and_shelve(x).get() * 10

    assert (outer(1), outer(1), runs) == (20, 20, [1])


@pytest.mark.parametrize("is_young", [True, False])
def test_a_validation_callback(memory: sde.Memory, is_young: bool) -> None:
    told: list[dict[str, Any]] = []

    def callback(metadata: dict[str, Any]) -> bool:
        told.append(metadata)
        return is_young

    counted = Counted(memory, cache_validation_callback=callback)
    assert counted.f.check_call_in_cache(2) is False
    assert counted.ran(2)
    assert told == []
    assert counted.f.check_call_in_cache(2) is is_young
    assert counted.ran(2) is not is_young
    assert len(told) == 2
    assert told[0].keys() >= {"time", "duration", "input_args"}
    assert abs(told[0]["time"] - time.time()) < 60
    assert 0 <= told[0]["duration"] < 60
    assert told[0]["input_args"] == {"x": "2", "note": "None"}
    assert counted.f.call_and_shelve(2).get() == [2, 2]
    assert len(counted.runs) == (1 if is_young else 3)


def test_a_validation_callback_looks_at_results_of_other_programs(tmp_path: Path, memory: sde.Memory) -> None:
    text = """
    import sys
    memory = sde.Memory("s")
    def callback(metadata):
        print(metadata["input_args"], metadata["duration"] >= 0.02)
        return len(sys.argv) > 1
    @memory.cache(cache_validation_callback=callback)
    def f(x, *more, **named):
        time.sleep(0.02)
        print("runs")
        return x
    print(f(1, 2, a=3))
    """
    assert programs.run(tmp_path, text) == ["runs", "1"]
    told = "{'x': '1', '*': '(2,)', '**': \"{'a': 3}\"} True"
    assert programs.run(tmp_path, text) == [told, "runs", "1"]
    assert programs.run(tmp_path, text.replace("len(sys.argv) > 1", "True")) == [told, "1"]


def test_a_validation_callback_in_a_cached_function(memory: sde.Memory) -> None:
    """The function that calls it stays one whose results are remembered."""
    runs = []

    @memory.cache(cache_validation_callback=lambda metadata: False)
    def inner(x: int) -> int:
        return x + 1

    @memory.cache(version="1")
    def outer(x: int) -> int:
        runs.append(x)
        return inner(1) + x

    assert (inner(1), outer(5), outer(5), runs) == (2, 7, 7, [5])


def test_a_validation_callback_that_raises(memory: sde.Memory) -> None:
    counted = Counted(memory, cache_validation_callback=lambda metadata: metadata["no such"])
    assert counted.ran(1)
    with pytest.raises(KeyError, match="no such"):
        counted.f(1)
    with pytest.raises(ValueError, match="can't be called: it is True"):
        memory.cache(cache_validation_callback=True)  # type: ignore[arg-type]


def test_another_result_after_a_callback_is_no_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for callback, told in [(lambda metadata: False, ""), (None, "other bits")]:
        values = [1, 2]
        memory = sde.Memory(tmp_path / f"s {told}")
        f = memory.cache(lambda: values.pop(0), version="1", cache_validation_callback=callback)
        assert (f(), f() if callback else f.call()[0]) == (1, 2)
        err = capfd.readouterr().err
        assert told in err if told else err == ""


def test_a_validation_callback_in_a_sweep_and_from_asyncio(memory: sde.Memory) -> None:
    import asyncio

    counted = Counted(memory, cache_validation_callback=lambda metadata: False)
    for _ in range(2):
        memory.map(counted.f, [1])
        asyncio.run(memory.run(counted.f, 1))
    assert counted.runs == [1] * 4


def test_a_validation_callback_in_worker_processes(tmp_path: Path) -> None:
    text = """
    memory = sde.Memory("s")
    def f(x):
        return os.getpid()
    f = memory.cache(f, cache_validation_callback=lambda metadata: metadata["duration"] > 60)
    first = memory.map(f, [1, 2], processes=2)
    second = memory.map(f, [1, 2], processes=2)
    print(set(first) & set(second))
    """
    assert programs.run(tmp_path, text) == ["set()"]


def test_expiry(memory: sde.Memory) -> None:
    counted = Counted(memory, cache_validation_callback=sde.expires_after(days=1))
    assert counted.ran(1) and not counted.ran(1)
    # The clock of files and the one that is asked have the same source, but not the same steps.
    of_no_time = Counted(memory, cache_validation_callback=sde.expires_after(seconds=-1))
    assert of_no_time.ran(1) and of_no_time.ran(1)
    age = sde.expires_after(hours=1, minutes=30)
    assert age({"time": time.time() - 5300}) and not age({"time": time.time() - 5500})


def test_options_that_change_no_result_change_no_key_of_callers(tmp_path: Path) -> None:
    def keys(**options: Any) -> tuple[str, str]:
        memory = sde.Memory(tmp_path / "s")

        def inner(x: int) -> int:
            return x

        cached = memory.cache(inner, **options)

        def outer(x: int) -> int:
            return cached(x)

        return cached.key(1), memory.cache(outer).key(1)

    plain = keys()
    assert keys(verbose=50) == plain
    assert keys(cache_validation_callback=lambda metadata: True) == plain
    assert keys(mmap_mode="r") == plain


def test_nothing_is_printed_unasked(memory: sde.Memory, capfd: pytest.CaptureFixture[str]) -> None:
    counted = Counted(memory)
    counted.ran(1), counted.ran(1), counted.f.clear(), memory.clear(), memory.reduce_size(items_limit=1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("verbose", "hit"), [(1, []), (11, ["is remembered"])])
def test_messages(memory: sde.Memory, verbose: int, hit: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    counted = Counted(memory, verbose=verbose)
    place = "test_joblib.Counted.__init__.<locals>.twice"
    name = place.removeprefix("test_joblib.")
    counted.ran(1, note="x")
    run, took = capfd.readouterr().out.splitlines()
    assert run == f"[sde] {name}(1, note='x') is run"
    assert took.startswith(f"[sde] {name} took ") and took.endswith(" s")
    counted.ran(1, note="x")
    assert capfd.readouterr().out.splitlines() == [f"[sde] {name}(1, note='x') {text}" for text in hit]
    counted.f.clear(warn=False)
    assert capfd.readouterr().out == ""
    counted.f.clear()
    assert capfd.readouterr().out.splitlines() == [f"[sde] {place} is cleared"]


def test_the_memory_s_messages(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    memory = sde.Memory(tmp_path / "s", verbose=1)
    quiet = Counted(memory, verbose=0)
    assert quiet.ran(1)
    assert capfd.readouterr().out == ""
    loud = Counted(pickle.loads(pickle.dumps(memory)))
    assert loud.ran(2)
    assert "is run" in capfd.readouterr().out


def test_an_exception_reaches_its_caller_and_is_not_remembered(memory: sde.Memory) -> None:
    runs = []

    class Own(Exception):
        pass

    @memory.cache(version="1", verbose=11)
    def f() -> None:
        runs.append(1)
        raise Own("why")

    for call in (f, f, f.call, f.call_and_shelve):
        with pytest.raises(Own, match="why") as raised:
            call()
        assert raised.traceback[-1].name == "f"
    assert len(runs) == 4


def test_memory_and_functions_and_references_can_be_pickled(memory: sde.Memory) -> None:
    @memory.cache
    def f(x: int) -> int:
        return x + 1

    again = pickle.loads(pickle.dumps(memory))
    assert (again.location, again.mmap_mode, again.verbose) == (memory.location, None, 0)
    assert pickle.loads(pickle.dumps(f))(1) == 2
    checked = memory.cache(f, cache_validation_callback=lambda metadata: metadata["duration"] < 0)
    again = pickle.loads(pickle.dumps(checked))
    assert again(1) == 2
    assert again.check_call_in_cache(1) is False
    assert f.check_call_in_cache(1) is True


class Test_a_memory_without_a_location:
    def test_functions_run_as_they_are_with_all_methods(self) -> None:
        memory = sde.Memory(None)
        counted = Counted(memory, cache_validation_callback=lambda metadata: True, mmap_mode="r", verbose=50)
        assert counted.f.func is counted.twice
        assert counted.f.__name__ == "twice"
        assert counted.ran(1) and counted.ran(1)
        assert counted.f.call(1) == ([1, 1], {})
        assert counted.f.check_call_in_cache(1) is counted.f.is_cached(1) is counted.f.invalidate(1) is False
        assert "no location" in counted.f.why(1)
        counted.f.clear(), memory.clear(), memory.reduce_size(bytes_limit=0)
        shelved = counted.f.call_and_shelve(2)
        assert (shelved.get(), len(counted.runs)) == ([2, 2], 4)
        assert pickle.loads(pickle.dumps(shelved)).get() == [2, 2]
        shelved.clear()
        with pytest.raises(KeyError):
            shelved.get()
        assert memory.eval(counted.twice, 3) == [3, 3]
        assert memory.map(counted.f, [1, 2]) == [[1, 1], [2, 2]]

    def test_its_functions_can_be_pickled_and_cached(self, memory: sde.Memory) -> None:
        @sde.Memory(None).cache
        def f(x: int) -> int:
            return x + 1

        assert pickle.loads(pickle.dumps(f))(1) == 2
        assert pickle.loads(pickle.dumps(sde.Memory(None))).location is None
        assert memory.cache(f)(1) == 2
        assert memory.cache(f).check_call_in_cache(1) is True

    def test_methods(self) -> None:
        class Model:
            @sde.Memory(None).cache
            def f(self, x: int) -> int:
                return x + 1

        assert Model().f(1) == 2

    def test_its_functions_count_by_what_they_wrap(self, memory: sde.Memory) -> None:
        inner = sde.Memory(None).cache(lambda x: x + 1)

        def outer(x: int) -> Any:
            return inner(x)

        before = memory.cache(outer).key(1)
        inner = sde.Memory(None).cache(lambda x: x + 2)
        assert memory.cache(outer).key(1) != before
