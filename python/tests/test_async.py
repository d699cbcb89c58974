"""Calls from asyncio."""

from __future__ import annotations

import pytest
from programs import run

import sde


def test_calls_run_beside_each_other_and_give_results_and_exceptions(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        both = threading.Barrier(2)

        @memory.cache
        def f(x, y=0):
            both.wait()
            if y:
                raise ValueError(f"not {y}")
            return x

        async def main():
            return await asyncio.gather(memory.run(f, 1), memory.run(f, 2, y=3), return_exceptions=True)

        print(asyncio.run(main()))
        print(f.is_cached(1))
        """,
    )
    assert out == ["[1, ValueError('not 3')]", "True"]


def test_a_cancelled_task_gives_up_its_wait(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        began, go = threading.Event(), threading.Event()

        def compute(x):
            began.set()
            go.wait()
            return x

        f = memory.cache(compute, version="1")
        thread = threading.Thread(target=f, args=(1,))
        thread.start()
        began.wait()

        async def main():
            task = asyncio.create_task(memory.run(f, 1))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                print("cancelled")
            # The thread that waited is done, though the run goes on.
            await asyncio.get_running_loop().shutdown_default_executor()

        asyncio.run(main())
        print(go.is_set())
        go.set()
        thread.join()
        print(f(1), memory.stats()["computed"])
        """,
    )
    assert out == ["cancelled", "False", "1 1"]


def test_a_call_in_a_body_belongs_to_its_run(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        @memory.cache
        def inner(x):
            return x

        async def both():
            return await memory.run(memory._store.is_in_run), await memory.run(inner, 1)

        @memory.cache
        def outer(x):
            return asyncio.run(asyncio.wait_for(in_run(), 30))

        async def in_run():
            return await asyncio.to_thread(memory._store.is_in_run), await memory.run(inner, 1)

        print(outer(1))
        """,
    )
    assert out == ["(True, 1)"]


def test_what_a_body_leaves_for_later_is_in_no_run(tmp_path):
    out = run(
        tmp_path,
        """
        import contextvars
        later = []

        @memory.cache
        def inner(x):
            return x

        def leaves(x):
            later.append(contextvars.copy_context())
            return inner(x)

        outer = memory.cache(leaves, version="1")
        print(outer(1), later[0].run(inner, 2), later[0].run(inner, 1))
        """,
    )
    assert out == ["1 2 1"]


async def _asynchronous_generator(x):
    yield x


def _generator(x):
    yield x


@pytest.mark.parametrize("function", [_asynchronous_generator, _generator])
def test_functions_whose_calls_run_nothing_are_refused(tmp_path, function):
    memory = sde.open(tmp_path / "store.sde")
    with pytest.raises(TypeError, match=r"can't be cached: it is an? .*returns a list"):
        memory.cache(function)
