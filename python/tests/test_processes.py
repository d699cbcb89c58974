"""Worker processes, and pickles of functions and stores."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from programs import SOURCES, begin, end, run
from test_signals import wait_for


def test_results_come_in_order_and_are_remembered_under_the_keys_of_this_program(tmp_path):
    text = """
        FACTOR, SHIFTS = 3, [1, 2]

        class Grid:
            def __init__(self, n):
                self.n = n

        @memory.cache
        def inner(x):
            return x * FACTOR

        @memory.cache
        def f(x, grid=None, *, y=0):
            return inner(x) + len(SHIFTS) + y + (grid.n if grid else 0)

        points = [5, (1,), {"x": 2, "y": 10}, (3, Grid(100)), 5]
        print(memory.map(f, points, processes=2), memory.stats()["computed"])
        print([f.is_cached(*args) for args in [(5,), (1,), (3, Grid(100)), (4,)]])
        """
    first = run(tmp_path, text)
    assert first == ["[17, 5, 18, 111, 17] 0", "[True, True, True, False]"]
    assert run(tmp_path, text.replace("processes=2", "processes=1")) == first


def test_points_that_are_remembered_are_not_sent_and_a_lambda_is(tmp_path):
    out = run(
        tmp_path,
        """
        f = memory.cache(lambda x: (x, os.getpid()))
        f(1)
        got = memory.map(f, range(3), processes=2)
        print([x for x, _ in got], [process == os.getpid() for _, process in got])
        # What workers computed is not computed once more.
        print([f(x) for x in range(3)] == got, memory.stats()["computed"])
        """,
    )
    assert out == ["[0, 1, 2] [False, True, False]", "True 1"]


@pytest.mark.parametrize("processes", [1, 2])
def test_exceptions_come_out_of_map_and_are_given_by_try_map(tmp_path, processes):
    out = run(
        tmp_path,
        f"""
        class Odd(Exception):
            pass

        @memory.cache
        def f(x):
            if x % 2:
                raise Odd(x)
            return x

        got = memory.try_map(f, range(4), processes={processes})
        print([type(value) if isinstance(value, Odd) else value for value in got])
        try:
            memory.map(f, [0, 1, 2], processes={processes})
        except Odd as error:
            print(error, any("in f" in note for note in getattr(error, "__notes__", ["in f"])))
        """,
    )
    assert out == ["[0, <class '__main__.Odd'>, 2, <class '__main__.Odd'>]", "1 True"]


def test_programs_that_share_a_store_go_through_points_in_orders_of_their_own(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            with open("order", "a") as file:
                file.write(f"{x}\\n")
            return x

        print(memory.map(f, range(40), processes=2) == list(range(40)))
        """,
    )
    order = [int(line) for line in (tmp_path / "order").read_text().split()]
    assert out == ["True"] and sorted(order) == list(range(40))
    # Two workers change places, and one may be late by some points. That few are far from their place is one case of 10^20.
    assert sum(abs(place - x) > 4 for place, x in enumerate(order)) > 4


def test_a_function_that_maps_over_processes_is_remembered(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            return x * x

        @memory.cache
        def total(n):
            print("runs")
            return sum(memory.map(f, range(n), processes=2))

        # It would compare each point with all that is remembered.
        sde.CachedFunction.explained = None
        print(total(5), total(5))
        """,
    )
    assert out == ["runs", "30 30"]


def test_dataclasses_of_a_script_are_the_same_in_workers(tmp_path):
    out = run(
        tmp_path,
        """
        import dataclasses, typing

        @dataclasses.dataclass
        class Point:
            r: float
            n: int = 2
            names: list = dataclasses.field(default_factory=list)
            made: typing.ClassVar[int] = 0
            seed: dataclasses.InitVar[int] = 1
            _: dataclasses.KW_ONLY
            more: float = 0.5

            def second(self):
                return self.first()

            def first(self):
                return self.r

        @memory.cache
        def f(point):
            return [field.name for field in dataclasses.fields(point)], dataclasses.replace(point, r=2.0, seed=1).r

        import warnings
        warnings.simplefilter("error")
        print(memory.map(f, [Point(1.0), Point(3.0)], processes=2) == [f.func(Point(1.0))] * 2, memory.stats()["computed"])
        """,
    )
    assert out == ["True 0"]


LOCKED = """
import threading
LOCK = threading.Lock()
def f(x):
    with LOCK:
        return x
"""


def test_a_warning_of_code_is_told_by_the_program_and_not_by_each_worker(tmp_path):
    (tmp_path / "project.py").write_text(LOCKED)
    process = begin(tmp_path, "import project\nprint(memory.map(project.f, range(4), processes=2))")
    out, told = process.communicate(timeout=60)
    assert out == "[0, 1, 2, 3]\n", told
    assert told.count("project.LOCK is a lock") == 1


def test_a_function_that_can_not_go_to_workers_is_an_error_that_says_so(tmp_path):
    text = f"{LOCKED}\ntry:\n    memory.map(f, range(4), processes=2)\nexcept sde.Error as error:\n    print(error)"
    assert run(tmp_path, text)[0].startswith("f can't go to worker processes (TypeError: cannot pickle")


def test_a_function_that_asks_what_is_remembered_is_not_looked_up(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            return x

        @memory.cache
        def asks(x):
            return f.is_cached(x)

        print(asks(1), f(1), asks(1))
        """,
    )
    assert out == ["False 1 True"]


def test_a_point_of_a_worker_that_is_killed_is_taken_over(tmp_path):
    out = run(
        tmp_path,
        """
        import warnings

        @memory.cache
        def f(x):
            if x == 2 and not os.path.exists("died"):
                pathlib.Path("died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return x

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            print(memory.map(f, range(4), processes=2))
        print(len(told), told[0].message)
        """,
    )
    assert out[0] == "[0, 1, 2, 3]"
    assert out[1].startswith("1 worker process ") and "SIGKILL while it computed f at point 2" in out[1]


def test_a_point_at_which_three_workers_die_is_an_error_and_the_others_are_computed(tmp_path):
    out = run(
        tmp_path,
        """
        import warnings
        warnings.simplefilter("ignore")

        @memory.cache
        def f(x):
            if x == 1:
                with open("deaths", "a") as file:
                    file.write("x")
                os._exit(7)
            return x

        got = memory.try_map(f, range(3), processes=2)
        print(got[0], got[2], type(got[1]).__name__, got[1])
        print(os.path.getsize("deaths"))
        """,
    )
    assert out[0].startswith("0 2 Error worker process") and "status 7" in out[0]
    assert out[1] == "3"


def test_ctrl_c_ends_workers_which_save_what_they_have(tmp_path):
    text = """
        @memory.cache
        def f(x):
            if x:
                pathlib.Path(f"began{x}").write_text(str(os.getpid()))
                while not os.path.exists("go"):
                    time.sleep(0.002)
            return x

        sde._processes._shuffle = lambda tasks: None
        try:
            print(memory.map(f, [0, 1, 2], processes=2))
        except KeyboardInterrupt:
            print("interrupted", f.is_cached(1))
        """
    process = begin(tmp_path, text)
    for number in (1, 2):
        wait_for(tmp_path / f"began{number}")
    process.send_signal(signal.SIGINT)
    assert end(process) == ["interrupted False"]
    for number in (1, 2):
        worker = int((tmp_path / f"began{number}").read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    (tmp_path / "go").touch()
    assert run(tmp_path, text.replace("try:", "print(f.is_cached(0))\n        try:")) == ["True", "[0, 1, 2]"]


def test_workers_end_when_their_parent_is_killed(tmp_path):
    process = begin(
        tmp_path,
        """
        @memory.cache
        def f(x):
            pathlib.Path(f"began{x}").touch()
            try:
                while True:
                    time.sleep(0.002)
            finally:
                pathlib.Path(f"ended{x}").touch()

        memory.map(f, [0, 1], processes=2)
        """,
    )
    for number in (0, 1):
        wait_for(tmp_path / f"began{number}")
    process.kill()
    process.communicate()
    for number in (0, 1):
        wait_for(tmp_path / f"ended{number}")


def test_a_module_that_was_edited_since_it_was_imported_is_told(tmp_path):
    (tmp_path / "project.py").write_text("def helper(x):\n    return x + 1\n")
    out = run(
        tmp_path,
        """
        import project

        @memory.cache
        def f(x):
            return project.helper(x)

        pathlib.Path("project.py").write_text("def helper(x):\\n    return x + 2\\n")
        try:
            memory.map(f, [1, 2], processes=2)
        except sde.Error as error:
            print(error)
        print(memory.map(f, [1, 2], processes=1))
        """,
    )
    assert "another project.helper than this program has" in out[0]
    assert out[1:] == ["[2, 3]"]


def test_a_global_that_was_set_at_run_time_is_told(tmp_path):
    (tmp_path / "project.py").write_text("SIZES = [1]\n")
    out = run(
        tmp_path,
        """
        import project

        @memory.cache
        def f(x):
            return x + len(project.SIZES)

        project.SIZES.append(2)
        try:
            memory.map(f, [1], processes=2)
        except sde.Error as error:
            print(error)
        """,
    )
    assert "project.SIZES" in out[0]


PICKLES = """
    import pickle, subprocess
    load = "import pickle, sys; f = pickle.load(sys.stdin.buffer); print(f(3), f.is_cached(3), f._memory.location)"

    def in_another_process(function, dumps=pickle.dumps):
        memory.checkpoint()
        done = subprocess.run([sys.executable, "-c", load], input=dumps(function), capture_output=True, cwd="/")
        return (done.stdout + done.stderr).decode().split()
    """


def test_functions_of_modules_and_scripts_come_back_from_pickles(tmp_path):
    (tmp_path / "project.py").write_text(
        "import sde\nmemory = sde.open({!r})\n@memory.cache\ndef g(x):\n    return x\n".format(str(tmp_path / "store.sde"))
    )
    out = run(
        tmp_path,
        PICKLES
        + """
    import project, cloudpickle
    sys.path.insert(0, os.getcwd())
    os.environ["PYTHONPATH"] += os.pathsep + os.getcwd()

    @memory.cache
    def factorial(n):
        return n * factorial(n - 1) if n else 1

    print(pickle.loads(pickle.dumps(project.g)) is project.g)
    print(in_another_process(project.g))
    for dumps in (pickle.dumps, cloudpickle.dumps):
        print(in_another_process(factorial, dumps))
    again = pickle.loads(pickle.dumps(memory))
    print(again._store in (memory._store, project.memory._store))
    """,
    )
    place = str(tmp_path / "store.sde")
    assert out[0] == "True"
    assert out[1] == str(["3", "True", place])
    assert out[2:4] == [str(["6", "True", place])] * 2
    assert out[4] == "True"


def test_the_number_of_processes_is_one_or_more(tmp_path):
    out = run(
        tmp_path,
        """
        for processes in (0, -1, 1.5, "2"):
            try:
                memory.map(abs, [1], processes=processes)
            except ValueError as error:
                print(error)
        """,
    )
    assert len(out) == 4 and all("a number from 1 on" in line for line in out)


def test_a_build_without_the_global_lock_is_refused(tmp_path):
    import subprocess

    text = "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1; import sde"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={"PYTHONPATH": str(SOURCES)})
    assert "ImportError: sde is not tested without Python's global lock" in done.stderr


def test_a_function_that_forks_in_a_worker_answers_once_and_its_child_ends(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            child = os.fork()
            if child == 0 and x % 2:
                sys.exit(5)
            if child == 0:
                return "of the child"
            return x, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        print(memory.map(f, range(6), processes=2))
        """,
    )
    assert out == ["[(0, 0), (1, 5), (2, 0), (3, 5), (4, 0), (5, 5)]"]


def test_a_result_that_cannot_be_stored_comes_from_a_worker_too(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            return lambda: x

        print([f() for f in memory.map(f, range(2), processes=2)])
        """,
    )
    assert out == ["[0, 1]"]
