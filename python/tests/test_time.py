"""Sweeps whose time runs out, and sweeps of functions with tags."""

from __future__ import annotations

import pickle

import pytest
from programs import run

import sde
from sde._time import Gate


class _Clock(sde.Memory):
    """A store whose job has as much time left as is said."""

    left: float | None

    def time_left(self) -> float | None:
        return self.left


def _gate(recorded: list[float], left: float | None, whole: float | None = 1000.0, limit: float | None = None) -> Gate:
    memory = _Clock.__new__(_Clock)
    memory.left, memory._time_at_open = left, whole
    return Gate(memory, lambda: list(recorded), limit)


def test_nothing_begins_that_does_not_fit() -> None:
    is_open = [
        (_gate([500.0, 500.0], 51.0), True),
        (_gate([500.0, 500.0], 50.0), False),
        (_gate([10.0] * 3, 13.0), True),
        (_gate([10.0] * 3, 12.0), False),
        (_gate([10.0 * n for n in range(1, 11)], 108.1), True),
        (_gate([10.0 * n for n in range(1, 11)], 108.0), False),
        (_gate([1000.0] * 100 + [10.0] * 50, 12.1), True),
        (_gate([0.0] * 3, 0.0), False),
        (_gate([10.0] * 3, None), True),
        (_gate([10.0] * 3, None, limit=3600.0), True),
        (_gate([10.0] * 3, None, limit=5.0), False),
        (_gate([10.0] * 3, 5.0, limit=3600.0), False),
        (_gate([], 0.0, whole=None), False),  # told to stop, without a limit before
    ]
    assert [gate.is_open() for gate, _ in is_open] == [expected for _, expected in is_open]
    gate = _gate([1.0] * 3, 10.0)
    assert gate.is_open()
    gate.note(20.0)
    assert not gate.is_open()


SWEEP = """
    @memory.cache
    def f(x):
        return x, os.environ["SDE_TIME_LIMIT"]

    print(f(1)[0])
    for limits in {}:
        got = memory.try_map(f, range(3), processes={}, **limits)
        print([type(each).__name__ for each in got])
        try:
            memory.map(f, [1, 2, 0], processes={}, **limits)
        except sde.OutOfTime as error:
            print(error.done, error.left, error.exit_code, "run the program again" in str(error))
    print(f(2)[0])
    """


@pytest.mark.parametrize("processes", [1, 2])
def test_points_are_not_begun_without_time_and_what_is_remembered_is_given(tmp_path, monkeypatch, processes):
    # A call that is no point of a sweep begins in any case.
    expected = ["1", "['NotStarted', 'tuple', 'NotStarted']", "1 2 75 True", "2"]
    for limit, limits in [("0", {}), ("none", {"time_limit": 0})]:
        monkeypatch.setenv("SDE_TIME_LIMIT", limit)
        folder = tmp_path / limit
        folder.mkdir()
        assert run(folder, SWEEP.format([limits], processes, processes)) == expected


@pytest.mark.parametrize("processes", [1, 2])
def test_a_sweep_ends_early_and_the_next_program_goes_on(tmp_path, processes):
    text = f"""
        def compute(x):
            {{}}
            return x

        sde._processes._shuffle = lambda points: None
        f = memory.cache(compute, version="1")
        try:
            print(memory.map(f, [0, 1, 2, 3, 4], processes={processes}))
        except sde.OutOfTime as error:
            print(error.done + error.left, 1 <= error.done <= {processes})
        print(f.is_cached(0), f.is_cached(4))
        """
    # Whichever process computes a point is told to stop then.
    told = run(tmp_path, text.format("sde.Memory.time_left = lambda memory: 0"))
    assert told == ["5 True", "True False"]
    assert run(tmp_path, text.format("pass")) == ["[0, 1, 2, 3, 4]", "True True"]


def test_workers_have_the_end_of_the_job_and_answer_that_it_is_over(tmp_path, monkeypatch):
    monkeypatch.setenv("SDE_TIME_LIMIT", "2h")
    out = run(
        tmp_path,
        """
        from sde import _worker

        def compute(x):
            return memory.time_left()

        f = memory.cache(compute, tags="no_cache")
        here = memory.time_left()
        there = memory.map(f, [0], processes=2)[0]
        print(7000 < there <= here)

        g = memory.cache(lambda x: x)
        key = g.key(1)
        sde.Memory.time_left = lambda memory: 0
        print(_worker._computed(g, key, (1,), {}) is _worker._LATE, g(1), _worker._computed(g, key, (1,), {}))
        """,
    )
    assert out == ["True", "True 1 1"]


@pytest.mark.parametrize("tag", ["intermediate", "expendable", "no_cache"])
def test_a_sweep_of_a_function_with_tags(tmp_path, tag):
    text = f"""
        f = memory.cache(lambda x: [x, x], tags={tag!r})
        for processes in (2, 1):
            print(memory.map(f, range(3), processes=processes), memory.stats()["computed"])
        """
    result = "[[0, 0], [1, 1], [2, 2]]"
    is_saved = tag == "intermediate"
    assert run(tmp_path, text) == [f"{result} 0", f"{result} {0 if is_saved else 3}"]


def test_errors_of_time_can_be_pickled_and_a_limit_is_a_number(tmp_path) -> None:
    error = pickle.loads(pickle.dumps(sde.OutOfTime("late", 3, 4)))
    assert (str(error), error.done, error.left, isinstance(error, sde.Error)) == ("late", 3, 4, True)
    for memory in (sde.Memory(tmp_path / "s"), sde.Memory(None)):
        with pytest.raises(ValueError, match="a number of seconds"):
            memory.map(lambda x: x, [1], time_limit=-1)
        with pytest.raises(sde.OutOfTime):
            memory.map(lambda x: x, [1], time_limit=0)
        assert memory.map(lambda x: x, [1], time_limit=3600) == [1]


@pytest.mark.parametrize("processes", [None, 2])
def test_a_point_whose_result_is_refused_is_not_begun_late(tmp_path, processes):
    memory = sde.Memory(tmp_path / "s")
    wanted = [True]

    @memory.cache(cache_validation_callback=lambda metadata: wanted[0], version="1")
    def square(x):
        return x * x

    assert memory.map(square, [1, 2]) == [1, 4]
    assert memory.map(square, [1, 2], processes=processes, time_limit=0) == [1, 4]
    wanted[0] = False
    with pytest.raises(sde.OutOfTime):
        memory.map(square, [1, 2], processes=processes, time_limit=0)
