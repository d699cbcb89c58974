"""What a type checker makes of the package: checked by mypy, never run."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

import sde

memory = sde.open("store.sde")


@memory.cache
def plain(x: int, y: float = 0.0) -> str:
    return ""


@memory.cache(ignore=["y"], tags="expendable")
def with_options(x: int, *, y: float) -> list[str]:
    return []


@memory.cache
async def coroutine(x: int) -> str:
    return ""


class Model:
    @memory.cache
    def at(self, x: int) -> float:
        return 0.0


@sde.uses(plain)
def uses(x: int) -> bytes:
    return b""


assert_type(plain(1, y=2.0), str)
assert_type(with_options(1, y=2.0), list[str])
assert_type(plain.func(1), str)
assert_type(plain.is_cached(1), bool)
assert_type(plain.why(1), str)
assert_type(plain.key(1), str)
assert_type(plain.invalidate(1), bool)
assert_type(memory.cache(plain)(1), str)
assert_type(memory.cache(uses)(1), bytes)
assert_type(memory.map(plain, [1, 2], processes=2), list[str])
assert_type(memory.try_map(plain, [1, 2], time_limit=60.0), list[str | BaseException])
assert_type(memory.eval(plain, 1), str)
assert_type(memory.time_left(), float | None)
assert_type(Model().at(1), float)
method: Callable[[int], float] = Model().at
function: sde.CachedFunction[[int], Coroutine[Any, Any, str]] = coroutine


async def main() -> None:
    assert_type(await coroutine(1), str)
    assert_type(await memory.run(plain, 1), str)
    assert_type(await memory.run(coroutine, 1), str)


def refused() -> None:
    plain("1")  # type: ignore[arg-type]
    plain(1, z=2)  # type: ignore[call-arg]
    plain.is_cached()  # type: ignore[call-arg]
    Model().at("1")  # type: ignore[arg-type]
    memory.cache(plain, tag="expendable")  # type: ignore[call-overload]
