"""What keeps a digest from changing, what a hit compares, what is told, and what is not seen."""

from __future__ import annotations

import functools
import math
import sys
import threading
from types import FunctionType
from typing import Any

import pytest
from conftest import Look, changed, differ, everything, space

from sde import _code, _sde

MANY = """
import helpers
from dataclasses import dataclass, field, InitVar, KW_ONLY
from typing import ClassVar
@dataclass
class Fields:
    a: int
    b: ClassVar[int] = 1
    c: InitVar[int] = 2
    d: list = field(default_factory=list)
    _: KW_ONLY
    e: float = 0.5
NAMES = frozenset({"a", "b", "c", 1, 2.0, None})
class A:
    def __init__(self): self.a = self.b = self.c = 1
    def g(self, x): return x in {"u", "v", "w"}
def f(x):
    class Inner:
        def __init__(self): self.x = self.y = self.z = 1
    return NAMES, A().g(x), helpers.g(x), helpers.h(x), Inner, Fields
"""


def test_processes_agree(look: Look) -> None:
    files = {"main.py": MANY, "helpers.py": "def g(x): return {1, 2}\ndef h(x): return g(x)"}
    found = [look(files, seed=seed) for seed in ("0", "1", "2", "random")]
    assert all(each == found[0] for each in found)


def test_running_and_tracing_change_nothing() -> None:
    text = "def g(x): return x * 2.0\ndef f(x):\n t = 0\n for i in range(3): t += g(x).real\n return t"
    made = space(text)
    before = everything(_code.code_of(made["f"]))
    for _ in range(10_000):
        made["f"](1.0)
    assert everything(anew(made["f"])) == before
    sys.settrace(lambda *_: None)
    try:
        made["f"](1.0)
        assert everything(anew(made["f"])) == before
    finally:
        sys.settrace(None)
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "test")
        try:
            monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE | monitoring.events.CALL)
            made["f"](1.0)
            assert everything(anew(made["f"])) == before
        finally:
            monitoring.set_events(monitoring.COVERAGE_ID, 0)
            monitoring.free_tool_id(monitoring.COVERAGE_ID)


def anew(function: FunctionType) -> _code.Code:
    """Looks at the instructions again, though the code objects were read before."""
    from sde import _code_bytes

    _code_bytes._reads.clear()
    return _code.code_of(function)


def test_recursion_and_long_chains() -> None:
    text = "def f(x): return g(x)\ndef g(x): return f(x)"
    assert set(_code.code_of(space(text)["f"]).helpers) == {"__main__.g"}
    lines = [f"def g{i}(x): return g{i + 1}(x)" for i in range(10_000)]
    made = space("\n".join([*lines, "def g10000(x): return 1"]))
    before = everything(_code.code_of(made["g0"]))
    assert len(before["helpers"]) == 10_000
    made = space("\n".join([*lines, "def g10000(x): return 2"]))
    assert changed(before, everything(_code.code_of(made["g0"]))) == {"__main__.g10000"}


def test_deep_constants_are_values() -> None:
    deep: tuple[Any, ...] = ()
    for _ in range(10_000):
        deep = (deep,)
    made = space("def f(): return DEEP")
    made["DEEP"] = deep
    assert list(_code.code_of(made["f"]).values) == ["__main__.DEEP"]


# What a hit compares


REBOUND = """
import functools
import math
def g(x): return x
def other(x): return -x
def deco(f):
    @functools.wraps(f)
    def w(x): return f(x)
    return w
@deco
def h(x, a=1, *, b=2): return x
class A:
    def m(self): return 1
NOTHING = None
STEPS = [g]
def outer():
    n = 1
    def f(x):
        return g(x), h(x), A().m(), NOTHING, STEPS, later(), len(x), n
    def set_n(value):
        nonlocal n
        n = value
    return f, set_n
f, set_n = outer()
"""


@pytest.mark.parametrize(
    "change",
    [
        "g = other",
        "h = g",
        "g.__code__ = other.__code__",
        "h.__wrapped__.__defaults__ = (2,)",
        "h.__wrapped__.__kwdefaults__['b'] = 3",
        "A.m = other",
        "A.n = other",
        "del A.m",
        "NOTHING = 1",
        "del NOTHING",
        "later = 1",
        "len = 1",
        "STEPS[0] = other",
        "set_n(2)",
    ],
)
def test_a_change_in_the_process_is_noticed(change: str) -> None:
    made = space(REBOUND)
    before = _code.code_of(made["f"])
    assert _sde.Watched(before.watched).is_unchanged()
    exec(change, made)
    assert not _sde.Watched(before.watched).is_unchanged()
    assert changed(everything(before), everything(_code.code_of(made["f"]))) != set()


def test_modules_are_watched(look: Look) -> None:
    files = {"main.py": "import a\ndef f(x): return a.g(x)", "a.py": "def g(x): return x\ndef h(x): return 1"}
    ask = """
        import main, a, json
        from sde import _sde
        code = _code.code_of(main.f)
        before = _sde.Watched(code.watched).is_unchanged()
        {}
        print(json.dumps([before, _sde.Watched(code.watched).is_unchanged()]))
    """
    assert look(files, ask.format("a.g = a.h")) == [True, False]
    assert look(files, ask.format("a.later = 1")) == [True, False]
    assert look(files, ask.format("")) == [True, True]


# What is told and refused


def test_a_logger_is_not_told_of() -> None:
    assert _code.code_of(space("import logging\nLOG = logging.getLogger('a')\ndef f(x): LOG.info(x)")["f"]).warnings == []


def test_warnings_name_what_they_are_about() -> None:
    text = "import threading\nLOCK = threading.Lock()\ndef f(x):\n global last\n last = x\n with LOCK: return x"
    one, two = _code.code_of(space(text)["f"]).warnings
    assert "__main__.f assigns the global last" in two
    assert one.startswith("__main__.LOCK is a lock")


@pytest.mark.parametrize("refused", [len, math.sin, int, 3, None, object(), [].append, functools.partial(len)])
def test_what_has_no_python_code_is_refused(refused: object) -> None:
    with pytest.raises(_code.CodeError, match="Write a function that calls it"):
        _code.code_of(refused)
    with pytest.raises(TypeError):
        _code.name_of(refused)


CACHED = """
class Cached:
    __module__ = "sde._memory"
    def __init__(self, function, **options):
        self.__wrapped__, self._options, self.calls = function, options, 0
    def __call__(self, *args):
        self.calls += 1
g = Cached(lambda x: x, version={}, uses=[lambda x: {}])
def f(x): return g(x)
"""


def test_a_cached_function_counts_with_its_version_and_uses() -> None:
    assert differ(CACHED.format(1, 1), CACHED.format(2, 1)) == {"__main__.g"}
    assert differ(CACHED.format(1, 1), CACHED.format(1, 2)) == {"__main__.<lambda>#2"}
    made = space(CACHED.format(1, 1))
    before = _code.code_of(made["f"])
    made["g"](1)
    assert changed(everything(before), everything(_code.code_of(made["f"]))) == set()
    made["g"].__wrapped__ = lambda x: -x
    assert not _sde.Watched(before.watched).is_unchanged()


def test_names() -> None:
    class A:
        def m(self) -> None: ...

    place = f"{__name__}.test_names.<locals>."
    assert _code.name_of(A.m) == _code.name_of(A().m) == place + "A.m"
    assert _code.name_of(functools.partial(A.m, 1)) == place + "A.m"
    assert _code.name_of(functools.lru_cache(A.m)) == place + "A.m"
    assert _code.class_code(A).name == place + "A"
    made = space("def f(): pass", "__mp_main__")["f"]
    assert _code.name_of(made) == "__main__.f"


def test_values_are_given_to_be_keyed() -> None:
    text = "T = {'a': 1}\nL = 2\ndef f(x, y=[]): return T, L"
    made = space(text)
    values = _code.code_of(made["f"]).values
    assert values["__main__.T"] is made["T"]
    assert [value for value in values.values()] == [made["f"].__defaults__[0], made["T"]]


def test_content_of_sdes_own_objects_is_keyed_but_of_handles() -> None:
    made = space(
        "import io\n"
        "class Memory: __module__ = 'sde._memory'\n"
        "class InputFile: __module__ = 'sde._values'\n"
        "A, B, C = InputFile(), Memory(), io.StringIO('text')\n"
        "def f(x): return A, B, C"
    )
    code = _code.code_of(made["f"])
    assert (list(code.values), code.warnings) == (["__main__.A", "__main__.C"], [])


def test_proxies_that_lie_about_their_class() -> None:
    class Proxy:
        __class__ = FunctionType  # type: ignore[assignment]

        def __getattr__(self, name: str) -> Any:
            return lambda *_: 1

    made = space("def f(x): return P")
    made["P"] = Proxy()
    assert list(_code.code_of(made["f"]).values) == ["__main__.P"]


def test_threads_may_ask_at_once() -> None:
    made = space(REBOUND)
    expected = everything(_code.code_of(made["f"]))
    found: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: found.append(everything(anew(made["f"])))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


# What is not seen: the guide says so, and ``uses`` adds it


NOT_SEEN = {
    "getattr": "import sys\ndef g(): return {}\n"
    "def f(): return getattr(sys.modules[__name__], 'g')()",
    "globals": "def g(): return {}\ndef f(): return globals()['g']()",
    "a registry in a package": "import atexit, statistics\ndef g(): return {}\n"
    "statistics.registry = [[g]]\ndef f(): return statistics.registry[0][0]()",
    "a patched package": "import statistics\ndef g(x): return {}\nstatistics.mean = g\n"
    "def f(): return statistics.mean([1])",
    "exec": "def g(): return {}\ndef f(): exec('g()')",
}


@pytest.mark.parametrize("text", NOT_SEEN.values(), ids=NOT_SEEN)
def test_what_is_not_seen(look: Look, text: str) -> None:
    one, other = ({"main.py": text.replace("{}", n)} for n in "12")
    assert changed(look(one), look(other)) == set()
    ask = "import main; show(_code.code_of(main.f, [main.g]))"
    assert changed(look(one, ask), look(other, ask)) == {"main.g"}
    assert changed(look(one), look(one, ask)) == {"own", "main.g"}
