"""Cached coroutine functions: `await f(..)`."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path

import pytest
from programs import run
from test_signals import interrupted

import sde


def test_calls_give_results_and_exceptions_and_are_remembered(tmp_path):
    text = """
        import asyncio

        @memory.cache
        async def f(x, y=0):
            await asyncio.sleep(0)
            if y:
                raise ValueError(f"not {y}")
            return [x]

        async def main():
            print(f.is_cached(1), await asyncio.gather(f(1), f(2, y=3), memory.run(f, x=1), return_exceptions=True))
            print(f.is_cached(1), f.is_cached(2, 3), memory.stats()["computed"])

        asyncio.run(main())
        """
    result = "[[1], ValueError('not 3'), [1]]"
    assert run(tmp_path, text) == [f"False {result}", "True False 1"]
    assert run(tmp_path, text) == [f"True {result}", "True False 0"]


def test_awaits_of_one_call_share_one_run_and_the_loop_goes_on(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        async def compute(x):
            print("computed")
            began.set()
            await go.wait()
            return x + 1

        f = memory.cache(compute, version="1")

        async def main():
            global began, go
            began, go = asyncio.Event(), asyncio.Event()
            tasks = [asyncio.create_task(f(1)) for _ in range(4)]
            await began.wait()
            # Another loop, in another thread, waits for this one's run.
            others = []
            other = threading.Thread(target=lambda: others.append(asyncio.run(f(1))))
            other.start()
            go.set()
            results = await asyncio.gather(*tasks)
            await asyncio.to_thread(other.join)
            print(results, others)

        asyncio.run(main())
        """,
    )
    assert out == ["computed", "[2, 2, 2, 2] [2]"]


def test_calls_within_belong_to_the_run_and_a_call_of_itself_fails(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        @memory.cache
        async def inner(x):
            return x

        @memory.cache
        def plain(x):
            return memory._store.is_in_run()

        @memory.cache
        async def outer(x):
            return memory._store.is_in_run(), plain(x), await asyncio.gather(*(inner(x + i) for i in range(3)))

        @memory.cache
        async def itself(x):
            return await asyncio.create_task(itself(x))

        print(asyncio.run(outer(1)), memory._store.is_in_run())
        try:
            asyncio.run(itself(1))
        except sde.Error as error:
            print(error)
        """,
    )
    assert out[0] == "(True, True, [1, 2, 3]) False"
    assert "needs its own result" in out[1]


def test_more_calls_wait_than_the_default_executor_has_threads(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        @memory.cache
        async def f(x):
            return await asyncio.to_thread(lambda: x)

        async def main():
            return await asyncio.gather(*(f(x) for x in range(60)))

        print(asyncio.run(main()) == list(range(60)))
        """,
    )
    assert out == ["True"]


CANCELLED = """
        import asyncio

        async def compute(x):
            runs.append(x)
            began.set()
            try:
                await go.wait()
            finally:
                print("ended")
            return x + 1

        f, runs = memory.cache(compute, version="1"), []

        async def cancelled(task):
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                print("cancelled")

        async def main():
            global began, go
            began, go = asyncio.Event(), asyncio.Event()
            first = asyncio.create_task(f(1))
            await began.wait()
            second = asyncio.create_task(f(1))
            {}

        asyncio.run(main())
        """


def test_a_cancelled_task_cancels_its_coroutine_and_another_runs_it_then(tmp_path):
    out = run(
        tmp_path,
        CANCELLED.format(
            """
            began.clear()
            await cancelled(first)
            await began.wait()
            go.set()
            print(await second, runs, f.is_cached(1))
            """
        ),
    )
    assert out == ["ended", "cancelled", "ended", "2 [1, 1] True"]


def test_a_cancelled_task_that_waits_for_another_leaves_that_one_alone(tmp_path):
    out = run(
        tmp_path,
        CANCELLED.format(
            """
            await asyncio.sleep(0)  # it waits now
            await cancelled(second)
            go.set()
            print(await first, runs)
            """
        ),
    )
    assert out == ["cancelled", "ended", "2 [1]"]


def test_a_coroutine_that_ends_well_when_it_is_cancelled_gives_its_result(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        async def compute(x):
            began.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                return x

        f = memory.cache(compute, version="1")

        async def main():
            global began
            began = asyncio.Event()
            task = asyncio.create_task(f(1))
            await began.wait()
            task.cancel()
            print(await task, f.is_cached(1))

        asyncio.run(main())
        """,
    )
    assert out == ["1 True"]


def test_ctrl_c_cancels_the_coroutine(tmp_path):
    out = interrupted(
        tmp_path,
        """
        import asyncio

        @memory.cache
        async def f(x):
            pathlib.Path("ready").touch()
            try:
                await asyncio.sleep(3600)
            finally:
                print("ended")

        try:
            asyncio.run(f(1))
        except KeyboardInterrupt:
            print("interrupted", f.is_cached(1))
        """,
    )
    assert out == ["ended", "interrupted False"]


def test_the_end_of_its_loop_is_an_error_for_who_waits_and_no_hang(tmp_path):
    out = run(
        tmp_path,
        """
        import asyncio

        async def compute(x):
            if x not in began:
                began.append(x)
                loop.stop()
                await asyncio.sleep(3600)
            return x + 1

        f, began = memory.cache(compute, version="1"), []
        loop = asyncio.new_event_loop()
        task = loop.create_task(f(1))
        loop.run_forever()
        other = threading.Thread(target=lambda: print(asyncio.run(f(1))))
        other.start()
        loop.close()
        other.join()
        """,
    )
    assert out == ["2"]


async def _coroutine(x: int) -> int:
    return x


def test_it_is_a_coroutine_function_with_all_methods(tmp_path) -> None:
    class Model:
        @sde.Memory(tmp_path / "s").cache
        async def at(self, x: int) -> int:
            return x

    memory = sde.Memory(tmp_path / "s")
    f = memory.cache(_coroutine)
    assert isinstance(f, sde.CachedFunction)
    assert asyncio.run(f.call(1))[0] == asyncio.run(f(1)) == asyncio.run(memory.eval(_coroutine, 1)) == 1
    assert memory.stats()["computed"] == 1 and asyncio.run(f.call(1))[0] == 1 and memory.stats()["computed"] == 2
    assert asyncio.run(Model().at(2)) == 2
    assert inspect.iscoroutinefunction(f.__call__)
    if sys.version_info >= (3, 12):
        assert inspect.iscoroutinefunction(f) and inspect.iscoroutinefunction(Model().at)
    with pytest.raises(TypeError, match="asyncio.gather"):
        memory.map(f, [1])
    with pytest.raises(TypeError):
        asyncio.run(f(1, 2))
    nothing = sde.Memory(None)
    assert asyncio.run(nothing.run(_coroutine, 1)) == 1


@pytest.mark.parametrize("tags", [(), ("no_cache",)])
@pytest.mark.parametrize("looks", [False, True])
def test_a_coroutine_functions_result_is_shelved(tmp_path: Path, tags: tuple[str, ...], looks: bool) -> None:
    memory = sde.Memory(tmp_path / "s")
    callback = sde.expires_after(hours=1) if looks else None

    @memory.cache(tags=tags, cache_validation_callback=callback)
    async def double(x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x

    async def use() -> list[int]:
        shelved = await asyncio.gather(double.call_and_shelve(2), double.call_and_shelve(2))
        return [one.get() for one in shelved]

    assert asyncio.run(use()) == [4, 4]


def test_a_coroutine_function_without_a_store_is_awaited() -> None:
    @sde.Memory(None).cache
    async def double(x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x

    async def use() -> object:
        return await double(1), await double.call(2), (await double.call_and_shelve(3)).get()

    assert asyncio.run(use()) == (2, (4, {}), 6)
    if sys.version_info >= (3, 12):
        assert inspect.iscoroutinefunction(double)
