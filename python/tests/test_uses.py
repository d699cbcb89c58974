"""`sde.uses`: what code uses and does not show."""

from __future__ import annotations

import enum
import functools
import warnings

import pytest
from conftest import Look, changed, differ
from test_code_stable import NOT_SEEN

import sde
from sde import _code, _sde


@pytest.mark.parametrize("text", NOT_SEEN.values(), ids=NOT_SEEN)
@pytest.mark.parametrize("way", ["decorator", "body"])
def test_uses_adds_what_is_not_seen(look: Look, text: str, way: str) -> None:
    start = "from sde._uses import uses\n" + text
    if way == "decorator":
        start = start.replace("def f(", "@uses(g)\ndef f(")
    else:
        head, at, body = start.rpartition(": ")
        start = f"{head}:\n    uses(g)\n    {body}"
    one, other = ({"main.py": start.replace("{}", n)} for n in "12")
    assert changed(look(one), look(other)) == {"main.g"}


TEXT = """
from sde import uses
import functools
def g(): return {}
TABLE = [{}]
def deco(f):
    @functools.wraps(f)
    def w(*args): return f(*args)
    return w
@uses(g)
@uses(TABLE)
def helper(x): return x
@uses(g)
class A:
    @uses(g)
    def m(self): return 1
def f(x): return {}
"""


@pytest.mark.parametrize(
    ("reached", "changes"),
    [
        ("helper(x)", {"__main__.g", "__main__.helper.<use 0>"}),
        ("deco(helper)(x)", {"__main__.g", "__main__.helper.<use 0>"}),
        ("A()", {"__main__.g"}),
        ("A.m", {"__main__.g"}),
        ("x", set()),
    ],
)
def test_what_a_reached_function_or_class_uses_counts(reached: str, changes: set[str]) -> None:
    assert differ(TEXT.format(1, 1, reached), TEXT.format(2, 2, reached)) == changes


def test_uses_is_seen_on_either_side_of_cache_and_when_it_comes_later(tmp_path) -> None:
    memory = sde.Memory(tmp_path / "s")
    table = [1]

    def plain(x):
        return x + sum(eval("table", {"table": table}))

    below = memory.cache(sde.uses(table)(plain))
    assert below(1) == 2
    table.append(1)
    assert below(1) == 3
    later: list[int] = [5]
    before = _code.code_of(plain)
    above = sde.uses(later)(below)
    assert above is below and not _sde.Watched(before.watched).is_unchanged()
    key = above.key(1)
    later.append(6)
    assert above.key(1) != key


WRAPPED = """
import functools, sde
def g(): return {}
def plain(): return eval("g()")
class A:
    @sde.uses(g)
    @staticmethod
    def static(): return eval("g()")
    @sde.uses(g)
    @classmethod
    def of_class(cls): return eval("g()")
partial = sde.uses(g)(functools.partial(plain))
native = sde.uses(g)(functools.lru_cache(plain))
uncached = sde.uses(g)(sde.Memory(None).cache(plain))
def f(): return {}()
"""


@pytest.mark.parametrize("reached", ["A.static", "A.of_class", "partial", "native", "uncached"])
def test_uses_counts_over_objects_that_wrap_a_function(reached: str) -> None:
    assert differ(WRAPPED.format(1, reached), WRAPPED.format(2, reached)) == {"__main__.g"}


def test_a_function_that_was_run_takes_notes(tmp_path) -> None:
    memory = sde.Memory(tmp_path / "s")
    function = memory.cache(lambda: 1)
    key = function.key()
    sde.uses(2)(function)
    assert function.key() != key


def test_an_attribute_that_a_function_or_a_member_gets_later_counts(tmp_path) -> None:
    memory = sde.Memory(tmp_path / "s")

    class Kind(enum.Enum):
        ONE = 1

    def plain(x):
        return getattr(plain, "factor", 1) * getattr(Kind.ONE, "factor", 1) * x

    function = memory.cache(plain)
    assert function(1) == 1
    plain.factor = 2  # type: ignore[attr-defined]
    assert function(1) == 2
    Kind.ONE.factor = 3  # type: ignore[attr-defined]
    assert function(1) == 6


def test_uses_where_it_has_no_effect_is_told() -> None:
    with pytest.warns(RuntimeWarning, match="as a decorator, or in a function's body"):
        exec("import sde\nsde.uses(1)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("import sde\n@sde.uses(1)\ndef f():\n sde.uses(2)\nf()\nclass A:\n @sde.uses(3)\n def m(self): pass")
    with pytest.raises(TypeError, match="memory.cache"):
        sde.uses(1)(len)
    with pytest.raises(TypeError, match="memory.cache"):
        sde.uses(1)(functools.partial(len))
    with pytest.raises(TypeError, match="memory.cache"):
        sde.uses(1)(property(lambda self: 1))
