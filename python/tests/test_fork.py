"""Forks in the middle of work: a child opens the store anew, and ends when it is told to."""

from __future__ import annotations

import pytest
from programs import run


def test_a_child_computes_and_saves_while_a_thread_of_the_parent_computes(tmp_path):
    out = run(
        tmp_path,
        """
        began, go = threading.Event(), threading.Event()

        def compute(x):
            began.set()
            go.wait()
            return x + 1

        slow = memory.cache(compute, version="1")

        @memory.cache
        def quick(x):
            return os.getpid()

        @memory.cache
        def other(x):
            return os.getpid()

        assert quick(0) == os.getpid()
        thread = threading.Thread(target=slow, args=(1,))
        thread.start()
        began.wait()
        child = os.fork()
        if child == 0:
            assert quick(0) != 0
            assert other(1) == os.getpid()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        go.set()
        thread.join()
        print(other(1) == child, slow(1), memory.stats()["computed"])
        """,
    )
    assert out == ["True 2 2"]


def test_a_child_ends_as_programs_do(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            return x

        f(1)
        child = os.fork()
        if child == 0:
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )
    assert out == ["5"]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_ends_a_child_and_not_its_parent(tmp_path, name):
    out = run(
        tmp_path,
        f"""
        # Under nohup it is ignored, and a child takes that over.
        signal.signal(signal.{name}, signal.SIG_DFL)

        @memory.cache
        def f(x):
            return x

        f(1)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            f(2)
            os.write(write, b"x")
            while True:
                signal.pause()
        os.read(read, 1)
        os.kill(child, signal.{name})
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.{name}, f(3))
        """,
    )
    assert out == ["True 3"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_of_multiprocessing_shares_the_store(tmp_path, method):
    out = run(
        tmp_path,
        f"""
        import multiprocessing

        @memory.cache
        def f(x):
            return x * x, os.getpid()

        if "again" in sys.argv:
            print([f(x)[0] for x in range(20)], memory.stats()["computed"])
        elif __name__ == "__main__":
            f(0)
            memory.checkpoint()
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                got = pool.map(f, range(20))
            print([x for x, _ in got] == [x * x for x in range(20)])
            print(got[0][1] == os.getpid())
            print(f.is_cached(19))
            import subprocess
            sys.stdout.flush()
            subprocess.run([sys.executable, "program.py", "again"], check=True)
        """,
    )
    assert out[:3] == ["True", "True", "True"]
    # A pool ends its processes with SIGTERM. What they computed is there.
    assert out[3] == f"{[x * x for x in range(20)]} 0"


def test_a_child_that_never_uses_the_store_ends(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            return x

        for x in range(1000):
            f(x)
        memory.checkpoint()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                del f, memory
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
        print("ended")
        """,
    )
    assert out == ["ended"]


@pytest.mark.parametrize("end", ["sys.exit(5)", "return 'of the child'"])
@pytest.mark.parametrize("is_main", [True, False])
def test_a_function_that_forks_ends_in_the_child_too(tmp_path, end, is_main):
    out = run(
        tmp_path,
        f"""
        parent = os.getpid()

        @memory.cache
        def other(x):
            return os.getpid()

        def forks(x):
            child = os.fork()
            if child == 0:
                {end}
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        inner = memory.cache(forks, version="1")
        outer = memory.cache(lambda x: inner(x), version="1")

        def go():
            try:
                found = outer(1)
            except SystemExit as stopped:
                found = stopped.code
            if os.getpid() != parent:
                assert found in (5, "of the child") and other(1) == os.getpid()
                if threading.current_thread() is threading.main_thread() and {is_main}:
                    sys.exit(5)
                memory.finish()
                os._exit(5)
            print(found, outer(1), other(1) != parent)

        if {is_main}:
            go()
        else:
            thread = threading.Thread(target=go)
            thread.start()
            thread.join()
        """,
    )
    assert out == ["5 5 True"]
