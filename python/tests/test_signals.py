"""Ctrl-C: Python raises KeyboardInterrupt wherever the program is, and the store is as it was."""

from __future__ import annotations

import signal
import time

from programs import PATIENCE, begin, end, run


def wait_for(path):
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until, f"{path} has not come"
        time.sleep(0.002)


def interrupted(folder, text):
    """Runs a program that makes a file `ready`, and sends it Ctrl-C then."""
    process = begin(folder, text)
    wait_for(folder / "ready")
    process.send_signal(signal.SIGINT)
    return end(process)


def test_in_a_body(tmp_path):
    out = interrupted(
        tmp_path,
        """
        @memory.cache
        def f(x):
            if not os.path.exists("ready"):
                pathlib.Path("ready").touch()
                while True:
                    pass
            return x

        try:
            f(1)
        except KeyboardInterrupt:
            print("interrupted", f.is_cached(1), f(1))
        """,
    )
    assert out == ["interrupted False 1"]


def test_in_a_body_that_sleeps_within_another(tmp_path):
    out = interrupted(
        tmp_path,
        """
        @memory.cache
        def inner(x):
            pathlib.Path("ready").touch()
            time.sleep(3600)

        @memory.cache
        def outer(x):
            return inner(x)

        try:
            outer(1)
        except KeyboardInterrupt:
            print("interrupted", outer.is_cached(1))
        """,
    )
    assert out == ["interrupted False"]


def test_while_waiting_for_another_thread_which_goes_on(tmp_path):
    out = interrupted(
        tmp_path,
        """
        began, go = threading.Event(), threading.Event()

        def compute(x):
            began.set()
            go.wait()
            return x + 1

        f = memory.cache(compute, version="1")
        results = []
        thread = threading.Thread(target=lambda: results.append(f(1)))
        thread.start()
        began.wait()
        try:
            pathlib.Path("ready").touch()
            f(1)
        except KeyboardInterrupt:
            print("interrupted")
        go.set()
        thread.join()
        print(results, memory.stats()["computed"])
        """,
    )
    assert out == ["interrupted", "[2] 1"]


def test_a_thread_that_waits_takes_over_what_was_interrupted(tmp_path):
    out = run(
        tmp_path,
        """
        began = threading.Event()
        main = threading.main_thread()

        def compute(x):
            if threading.current_thread() is main:
                began.set()
                while not os.path.exists("asked"):
                    time.sleep(0.002)
                signal.raise_signal(signal.SIGINT)
            return x + 1

        f = memory.cache(compute, version="1")
        results = []

        def ask():
            began.wait()
            pathlib.Path("asked").touch()
            results.append(f(1))

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            f(1)
        except KeyboardInterrupt:
            print("interrupted")
        thread.join()
        print(results)
        """,
    )
    assert out == ["interrupted", "[2]"]


def test_while_waiting_for_another_process(tmp_path):
    function = """
        def compute(x):
            pathlib.Path("began").touch()
            while not os.path.exists("go"):
                time.sleep(0.002)
            return x + 1

        f = memory.cache(compute, version="1")
        """
    other = begin(tmp_path, function + "print(f(1))", "other.py")
    wait_for(tmp_path / "began")
    waits = """
        def is_waiting():
            # A process that waits for another one watches the folder of announcements.
            try:
                return any("inotify" in os.readlink(file) for file in pathlib.Path("/proc/self/fd").iterdir())
            except FileNotFoundError:
                return False

        def tell():
            while not is_waiting():
                time.sleep(0.002)
            pathlib.Path("ready").touch()

        # The other process announces its run some milliseconds after the beginning, by a second link to a file.
        while all(file.stat().st_nlink < 2 for file in pathlib.Path("store.sde/work").iterdir()):
            time.sleep(0.002)
        threading.Thread(target=tell).start()
        try:
            f(1)
        except KeyboardInterrupt:
            print("interrupted", memory.stats()["computed"])
        """
    out = interrupted(tmp_path, function + waits)
    (tmp_path / "go").touch()
    assert end(other) == ["2"]
    assert out == ["interrupted 0"]


def test_a_handler_that_does_not_raise_lets_the_call_go_on(tmp_path):
    out = interrupted(
        tmp_path,
        """
        began, go = threading.Event(), threading.Event()
        signal.signal(signal.SIGINT, lambda *_: go.set())

        def compute(x):
            began.set()
            go.wait()
            return x + 1

        f = memory.cache(compute, version="1")
        threading.Thread(target=f, args=(1,)).start()
        began.wait()
        pathlib.Path("ready").touch()
        print(f(1))
        """,
    )
    assert out == ["2"]


def test_an_exit_in_a_body_ends_the_program_and_remembers_nothing(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            sys.exit(3)

        try:
            f(1)
        except SystemExit as exit:
            print(exit.code, f.is_cached(1))
        """,
    )
    assert out == ["3 False"]


def test_at_the_end_of_a_wait_whose_function_is_dropped(tmp_path):
    out = run(
        tmp_path,
        """
        began, asked = threading.Event(), threading.Event()

        def compute(x):
            began.set()
            asked.wait()
            # The other thread most likely waits by now; if it does not, it is interrupted all the same.
            time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)
            return x

        thread = threading.Thread(target=memory.cache(compute, version="1"), args=(1,))
        thread.start()
        began.wait()
        try:
            asked.set()
            # Callbacks of weak references run as the function goes, and would swallow the exception.
            memory.cache(compute, version="1")(1)
            print("lost")
        except KeyboardInterrupt:
            print("interrupted")
        """,
    )
    assert out == ["interrupted"]
