"""Which calls are the same call: arguments are bound as Python does it."""

from __future__ import annotations

import functools
import inspect
import pathlib
import threading
from typing import Any

import pytest

import sde


@pytest.fixture
def memory(tmp_path: pathlib.Path) -> Any:
    return sde.Memory(tmp_path / "s")


def test_ways_to_write_one_call(memory: Any) -> None:
    @memory.cache(version="1")
    def f(a, /, b, c=3, *rest, d=4, **more):
        return None

    one = f.key(1, 2)
    assert one == f.key(1, b=2) == f.key(1, 2, 3) == f.key(1, c=3, b=2) == f.key(1, 2, d=4)
    others = [
        f.key(2, 1), f.key(1, 2, 4), f.key(1, 2, 3, 4), f.key(1, 2, 3, 4, 5), f.key(1, 2, d=5), f.key(1, 2, e=4),
        f.key(1, 2, a=1), f.key(1, 2, rest=(3,)), f.key(1, 2, 3, (4, 5)), f.key(True, 2), f.key(1, 2, e=4, g=5),
        f.key(1, 2, more={"e": 4}),
    ]  # fmt: skip
    assert len({one, *others}) == 1 + len(others)


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1,), {}), ((1, 2, 3, 4), {}), ((1, 2), {"b": 2}), ((1, 2), {"x": 1}), ((), {"a": 1, "b": 2})],
)
def test_arguments_that_do_not_fit_are_errors_of_python(memory: Any, args: Any, named: Any) -> None:
    @memory.cache(version="1")
    def f(a, /, b, c=3):
        return None

    with pytest.raises(TypeError) as raised:
        f(*args, **named)
    assert type(raised.value) is TypeError
    assert f"{__name__}.test_arguments_that_do_not_fit_are_errors_of_python.<locals>.f() " in str(raised.value)


def _by_default(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(x=5):
        return function(x)

    return wrapper


def _by_name(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args, **named):
        return function(*args, **(named if args else {"x": 5} | named))

    return wrapper


def _with_a_signature(function: Any) -> Any:
    def wrapper(*args, **named):
        return function(*args, **named) if args or named else 5

    wrapper.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return wrapper


class _Object:
    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)

    def __call__(self, x=5):
        return self.__wrapped__(x)  # type: ignore[attr-defined]


@pytest.mark.parametrize("decorate", [_by_default, _by_name, _with_a_signature, _Object])
def test_a_decorated_function_has_the_parameters_of_what_is_called(memory: Any, decorate: Any) -> None:
    def f(x=1):
        return x

    cached = memory.cache(decorate(f))
    assert [cached(), cached(1), cached(x=1)] == [5, 1, 1]
    by_native = memory.cache(functools.lru_cache(f))
    assert by_native.key() == by_native.key(1) == by_native.key(x=1)


def test_a_mutable_default_counts_as_it_is(memory: Any) -> None:
    @memory.cache(version="1")
    def f(x, seen=[]):  # noqa: B006
        seen.append(x)
        return list(seen)

    assert f(1) == [1] and f(1) == [1, 1] and f.func.__defaults__ == ([1, 1],)
    assert f(1, []) == [1]


def test_ignored_and_added_parameters(memory: Any) -> None:
    def before(a):
        return None

    def after(a, c=0.0, verbose=False):
        return None

    before.__qualname__ = after.__qualname__ = "f"
    old = memory.cache(before, version="1")
    new = memory.cache(after, version="1", since={"c": 0.0}, ignore=["verbose"])
    assert old.key(1) == new.key(1) == new.key(1, verbose=threading.Lock())
    assert len({new.key(1), new.key(1, -0.0), new.key(1, 0), new.key(1, 1.0)}) == 4


def test_an_error_names_the_parameter_first(memory: Any) -> None:
    @memory.cache(version="1")
    def f(a, *args, **named):
        return None

    lock = threading.Lock()
    for call, place in [
        (lambda: f(lock), "a:"),
        (lambda: f(1, 2, {"model": [lock]}), "args[1]['model'][0]:"),
        (lambda: f(1, x={"y": lock}), "named['x']['y']:"),
    ]:
        with pytest.raises(sde.KeyingError) as raised:
            call()
        assert str(raised.value).startswith(place)


def test_methods_are_keyed_with_their_object(memory: Any) -> None:
    class Solver:
        def __init__(self, tolerance):
            self.tolerance = tolerance

        @memory.cache(version="1")
        def solve(self, x):
            return self.tolerance * x

    assert [Solver(2).solve(3), Solver(2).solve(3), Solver(4).solve(3), Solver(2).solve(x=3)] == [6, 6, 12, 6]
    assert memory.stats()["computed"] == 2


_LIST: list[object] = []


def test_a_version_takes_the_place_of_all_code(tmp_path: pathlib.Path) -> None:
    memory = sde.Memory(tmp_path / "s")

    def f(x: int) -> int:
        return x + len(_LIST)

    by_code, by_version = memory.cache(f), memory.cache(f, version="1")
    assert (by_code(1), by_version(1)) == (1, 1)
    _LIST.append(1)
    assert (by_code(1), by_version(1)) == (2, 1)
    _LIST.clear()


_LOCK = [threading.Lock()]


def test_a_global_that_cannot_be_keyed_counts_by_its_type_and_is_told(tmp_path: pathlib.Path) -> None:
    memory = sde.Memory(tmp_path / "s")

    @memory.cache
    def f(x: int) -> int:
        with _LOCK[0]:
            return x

    with pytest.warns(RuntimeWarning, match="counts .*_LOCK.* by its type only"):
        assert f(1) == 1
    with pytest.warns(RuntimeWarning, match="by its type only"):
        assert f.is_cached(1)


_MISSING, _OTHER = object(), object()


def test_a_bare_object_is_an_argument_only_as_the_default(memory: Any) -> None:
    @memory.cache
    def f(x, given=_MISSING):
        return "none" if given is _MISSING else given

    assert f(1) == f(1, _MISSING) == f(1, given=_MISSING) == "none"
    assert memory.stats()["computed"] == 1
    for call, place in [(lambda: f(1, _OTHER), "given:"), (lambda: f(_MISSING), "x:"), (lambda: f([_OTHER]), "x[0]:")]:
        with pytest.raises(sde.KeyingError, match="pass a member of an enum, or None") as raised:
            call()
        assert str(raised.value).startswith(place)


_OPTIONS = {"size": 1, "missing": _MISSING}


def test_bare_objects_that_code_reaches_are_what_their_names_say(
    memory: Any, recwarn: pytest.WarningsRecorder
) -> None:
    def reads(x):
        return _OPTIONS["size"], x is _OTHER

    f, apply = memory.cache(reads), memory.cache(lambda function: function(1), version="1")
    assert f(1) == apply(reads) == (1, False)
    _OPTIONS["size"] = 2
    assert f(1) == apply(reads) == (2, False)
    _OPTIONS["size"] = 1
    assert [str(told.message) for told in recwarn] == []
