"""Threads: one computation for all who ask, results that need each other, the end of Python."""

from __future__ import annotations

from programs import run


def test_threads_that_ask_for_one_result_compute_it_once(tmp_path):
    out = run(
        tmp_path,
        """
        began, go = threading.Event(), threading.Event()

        def compute(x):
            print("computed")
            began.set()
            go.wait()
            return x + 1

        f = memory.cache(compute, version="1")
        results = []
        threads = [threading.Thread(target=lambda: results.append(f(1))) for _ in range(4)]
        for thread in threads:
            thread.start()
        began.wait()
        go.set()
        for thread in threads:
            thread.join()
        print(results)
        """,
    )
    assert out == ["computed", "[2, 2, 2, 2]"]


def test_two_threads_that_need_each_others_results_fail_with_the_path(tmp_path):
    out = run(
        tmp_path,
        """
        both = threading.Barrier(2)

        @memory.cache
        def a(x):
            both.wait()
            return b(x)

        @memory.cache
        def b(x):
            both.wait()
            return a(x)

        errors = []

        def ask(function):
            try:
                function(1)
            except sde.Error as error:
                errors.append(str(error))

        other = threading.Thread(target=ask, args=(b,))
        other.start()
        ask(a)
        other.join()
        print(len(errors))
        print(errors[0])
        """,
    )
    assert out[0] == "2"
    assert "a run needs its own result" in out[1]
    assert "__main__.a" in out[1] and "__main__.b" in out[1] and "->" in out[1]


def test_a_function_that_needs_its_own_result_fails(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def f(x):
            return f(x)

        try:
            f(1)
        except sde.Error as error:
            print(error)
        """,
    )
    assert "needs its own result" in out[0]


def test_other_threads_run_while_one_computes_or_waits(tmp_path):
    out = run(
        tmp_path,
        """
        began, go = threading.Event(), threading.Event()

        def compute(x):
            began.set()
            go.wait()
            return x

        f = memory.cache(compute, version="1")
        thread = threading.Thread(target=f, args=(1,))
        thread.start()
        began.wait()
        # The main thread waits for the other one's run; only a third thread can let that go on.
        threading.Thread(target=lambda: (memory.stats(), go.set())).start()
        print(f(1))
        thread.join()
        """,
    )
    assert out == ["1"]


def test_calls_within_a_body_belong_to_its_run_and_those_of_a_thread_do_not(tmp_path):
    out = run(
        tmp_path,
        """
        @memory.cache
        def inner(x):
            return memory._store.is_in_run()

        @memory.cache
        def outer(x):
            found = []
            thread = threading.Thread(target=lambda: found.append(memory._store.is_in_run()))
            thread.start()
            thread.join()
            return inner(x), found[0], memory._store.is_in_run()

        print(outer(1), memory._store.is_in_run())
        """,
    )
    assert out == ["(True, False, True) False"]


def test_the_program_ends_while_a_daemon_thread_computes_and_another_waits(tmp_path):
    text = """
        began = threading.Event()

        @memory.cache(version="1")
        def quick(x):
            return x

        def for_ever(x):
            began.set()
            while True:
                time.sleep(0.001)

        slow = memory.cache(for_ever, version="1")
        print(quick.is_cached(1), quick(1))
        for _ in range(2):
            threading.Thread(target=slow, args=(1,), daemon=True).start()
        began.wait()
        """
    assert run(tmp_path, text) == ["False 1"]
    assert run(tmp_path, text) == ["True 1"]


def test_results_are_saved_at_exit_without_finish(tmp_path):
    text = """
        @memory.cache
        def f(x):
            return x

        print(f.is_cached(1), f(1))
        sys.exit(3)
        """
    assert run(tmp_path, text, status=3) == ["False 1"]
    assert run(tmp_path, text, status=3) == ["True 1"]


def test_an_object_whose_end_calls_a_cached_function_does_not_hang(tmp_path):
    out = run(
        tmp_path,
        """
        class Ends:
            def __del__(self):
                print(f(2))

        values = {"kept": [1]}
        helper = lambda: 1

        @memory.cache
        def f(x):
            return x + helper()

        f(1)
        ends = Ends()
        helper = lambda: 2
        print(f(1))
        del ends
        """,
    )
    assert out == ["3", "4"]


def test_threads_may_make_functions_while_others_call_them(tmp_path):
    out = run(
        tmp_path,
        """
        sys.setswitchinterval(1e-6)
        barrier = threading.Barrier(8, timeout=30)
        kept, failures = [], []

        def go(number):
            barrier.wait()
            try:
                for i in range(100):
                    kept.append(memory.cache(lambda x: x + number, version=str((number, i))))
                    assert kept[-1](i) == i + number
            except BaseException as failure:
                failures.append(repr(failure))

        threads = [threading.Thread(target=go, args=(number,)) for number in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(set(failures))
        """,
    )
    assert out == ["set()"]
