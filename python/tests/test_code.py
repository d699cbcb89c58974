"""What counts as a function's code, case by case."""

from __future__ import annotations

import pytest
from conftest import Look, changed, differ, space

from sde import _code

SAME_BYTECODE = [
    ("0.0", "-0.0"),
    ("1", "True"),
    ("1", "1.0"),
    ("1.0", "1 + 0j"),
    ("'a'", "b'a'"),
    ("(1, 2)", "(1, (2,))"),
    ("x in {1, 2}", "x in {1, 3}"),
    ("lambda: 1", "lambda: 2"),
    ("[y + 'a' for y in x]", "[y + 'b' for y in x]"),
    ("x.a", "x.b"),
    ("math.sin(x)", "math.cos(x)"),
    ("x[1:2]", "x[1:3]"),
    ("f'{x!r}'", "f'{x!s}'"),
    ("10 ** 30", "10 ** 30 + 1"),
]


@pytest.mark.parametrize(("one", "other"), SAME_BYTECODE)
def test_what_is_computed_counts(one: str, other: str) -> None:
    text = "def f(x): return {}"
    assert differ(text.format(one), text.format(other)) == {"own"}
    assert differ(text.format(one), text.format(one)) == set()


def test_a_text_counts_though_it_is_the_docstring() -> None:
    assert differ("def f():\n 'a'\n return 'a'", "def f():\n 'b'\n return 'b'") == {"own"}
    assert differ("def f():\n 'a'\n return 1", "def f():\n return 1") == set()


def test_how_the_text_is_written_does_not_count() -> None:
    inner = "def f():\n class A:\n  'a'\n  def g(self): self.x = 1\n return A"
    assert differ(inner, inner.replace("'a'", "'b'").replace("\n", "\n\n")) == set()
    text = "def f(a: int, b) -> int: return a + b"
    assert differ(text, "from __future__ import annotations\n" + text) == set()
    text = "def f(a, b):\n for c in a:\n  try: c = b(a, c)\n  finally: b(1)\n while a: pass\n return c"
    spread = text.replace("try:", "try:\n   ").replace("finally:", "finally:\n   ")
    spread = spread.replace("pass", "\n  pass").replace("(a, c)", "(\n    a,\n    c,\n   )")
    assert differ(text, spread) == set()
    jump = "def f(a, b):\n while a:\n  {}if b: break\n  {}a -= 1\n return a"
    assert differ(jump.format("", "if a: continue\n  "), jump.format("if a: continue\n  ", "")) != set()


def test_where_a_name_leads_counts() -> None:
    text = "def a(x): return x\ndef b(x): return -x\ng, h = {}\ndef f(x): return g(h(x))"
    assert differ(text.format("a, b"), text.format("b, a")) == {"own"}
    text = "from math import {} as g\ndef f(x): return g(x)"
    assert differ(text.format("sin"), text.format("cos")) == {"own"}
    text = "from statistics import {} as g\ndef f(x): return g(x)"
    assert differ(text.format("mean"), text.format("median")) == {"own"}
    text = "g, h = {}\ndef f(x): return g(h(x))"
    assert differ(text.format("lambda x: 1, lambda x: 2"), text.format("lambda x: 2, lambda x: 1")) == {
        "__main__.<lambda>",
        "__main__.<lambda>#2",
    }


def test_two_modules_of_one_name_are_two() -> None:
    first, second = space("def f(x): return g(x), h(x)"), space("def h(x): return g(x)")
    found = set()
    for text in ("def g(x): return 1", "def g(x): return 2"):
        first["h"], first["g"] = second["h"], space(text)["g"]
        found.add(_code.code_of(first["f"]).helpers["__main__.g"])
    assert len(found) == 2


def test_objects_that_are_one_object_count_as_one() -> None:
    text = "a = []\nb = {}\ndef f(): a.append(1); return b"
    assert "own" in differ(text.format("a"), text.format("[]"))


def test_bare_objects_count_by_name_and_by_which_are_one() -> None:
    text = "A = object()\nB = {}\ndef f(x, y=A): return x is A, x is B, y"
    assert differ(text.format("object()"), text.format("A")) == {"own"}
    assert differ(text.format("object()"), text.format("object()")) == set()
    text = "A, B = object(), object()\ndef f(x, y={}): return y is A, y is B"
    assert differ(text.format("A"), text.format("B")) == {"own"}


@pytest.mark.parametrize(
    "text",
    [
        "import enum\nclass A(enum.Enum):\n a = {}\nB = A.a\ndef f(): return B",
        "import enum\nclass A(enum.IntFlag):\n a = {}\n c = 4\nB = A.a | A.c\ndef f(): return B",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n x: int = {}\ndef f(): return A()",
        "from dataclasses import dataclass, field\n@dataclass\nclass A:\n"
        " x: int = field(default_factory=lambda: {})\ndef f(): return A()",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n x: 'a{}'\ndef f(): return A(1)",
        "class M(type):\n def __call__(cls): return {}\nclass A(metaclass=M): pass\ndef f(): return A()",
        "class A:\n @property\n def x(self): return {}\ndef f(): return A().x",
        "class A:\n @staticmethod\n def x(): return {}\ndef f(): return A.x()",
        "class A:\n @classmethod\n def x(cls): return {}\ndef f(): return A.x()",
        "import functools\nclass A:\n @functools.cached_property\n def x(self): return {}\n"
        "def f(): return A().x",
        "class A:\n class B:\n  x = {}\ndef f(): return A.B()",
        "import functools\n@functools.lru_cache\ndef g(): return {}\ndef f(): return g()",
        "import functools\n@functools.singledispatch\ndef g(x): return 0\n"
        "@g.register(int)\ndef _(x): return {}\ndef f(): return g(1)",
        "import contextlib\n@contextlib.contextmanager\ndef g(): yield {}\ndef f(): return g()",
        "import contextlib\n@contextlib.contextmanager\ndef c(n): yield n\n"
        "@c({})\ndef g(): return 1\ndef f(): return g()",
        "import contextlib\nclass C(contextlib.ContextDecorator):\n def __enter__(self): return {}\n"
        " def __exit__(self, *_): pass\n@C()\ndef g(): return 1\ndef f(): return g()",
        "import contextvars\nV = contextvars.ContextVar('V')\ndef f(): return V.get({})",
        "import logging\nclass L(logging.Logger):\n def g(self): return {}\n"
        "LOG = L('a')\ndef f(): return LOG.g()",
        "def g(): return {}\ndef w(): return w.__wrapped__()\nw.__wrapped__ = g\ndef f(): return w()",
        "import enum\nclass A(enum.Enum):\n a = {}\ndef f(): return A['a'].value",
        "K = {}\ndef f():\n class A: x = K\n return A.x",
        "STEPS = (lambda: {}, 1)\ndef f(): return STEPS[0]()",
        "STEPS = dict(a=lambda: {})\ndef f(): return STEPS['a']()",
        "class A:\n def g(self): return {}\nrun = A().g\ndef f(): return run()",
        "class A:\n def g(self): return {}\na = A()\ndef f(): return a.g()",
        "def g(): return {}\ng.calls = 0\ndef f(): return g()",
        "def g(): pass\ng.rate = {}\ndef f(): return g.rate",
        "class A:\n def g(self): pass\n g.rate = {}\ndef f(): return getattr(A.g, 'rate')",
        "import enum\nclass A(enum.Enum):\n a = 1\nA.a.more = {}\ndef f(): return A.a.more",
        "import functools\n@functools.singledispatch\ndef g(x): return 0\n"
        "class C:\n def __call__(self, x): return {}\ng.register(int, C())\ndef f(): return g(1)",
        "from collections import namedtuple\nP = namedtuple('P', 'x{}')\ndef f(): return P(1)",
        "def g(a=({},)): return a\ndef f(): return g()",
        "def g(*, a={}): return a\ndef f(): return g()",
        "def g():\n def h(): return {}\n return h\ndef f(): return g()()",
        "class W:\n def __init__(self, f): self.__wrapped__ = f\n def __call__(self): return 0\n"
        "@W\ndef g(): return {}\ndef f(): return g()",
        "class W:\n def __init__(self, f): self._self_wrapper = f\n def __call__(self): return 0\n"
        "@W\ndef g(): return {}\ndef f(): return g()",
        "import functools\ng = functools.partial(functools.partial(lambda a, b: a, {}), 2)\n"
        "def f(): return g()",
        "X = None if {} == 1 else 1\ndef f(): return X",
    ],
)
def test_what_is_reached_counts(text: str) -> None:
    one, other, again = (text.format(n) if "{}" in text else text for n in (1, 2, 1))
    assert differ(one, other) != set()
    different = differ(one, again)
    assert not different or different <= set(_code.code_of(space(one)["f"]).values)  # new objects


def test_modules_are_followed_by_the_names_in_the_code(look: Look) -> None:
    files = {
        "main.py": "import pack\nimport pack.part as p\nimport lazy, far, broken\n"
        "def f(x):\n m = pack\n return m.part.g(x) + p.h(x) + lazy.made() + far.distant() + broken.x",
        "pack/__init__.py": "SIZE = 1\n",
        "pack/part.py": "from . import SIZE\ndef g(x): return x + 1\ndef h(x): return SIZE\ndef i(x): return 1",
        "lazy.py": "def __getattr__(name):\n if name == 'made': return _made\n raise AttributeError\n"
        "def _made(): return 1",
        "far.py": "import importlib\n"
        "def __getattr__(name): return getattr(importlib.import_module('implementation'), name)",
        "implementation.py": "def distant(): return 1",
        "broken.py": "def __getattr__(name): raise ValueError(1)",
    }
    before = look(files)
    for file, old, new, changes in [
        ("pack/part.py", "x + 1", "x + 2", {"pack.part.g"}),
        ("pack/part.py", "return 1", "return 2", set()),
        ("pack/__init__.py", "SIZE = 1", "SIZE = 2", {"pack.part.SIZE"}),
        ("lazy.py", "_made(): return 1", "_made(): return 2", {"lazy._made"}),
        ("implementation.py", "return 1", "return 2", {"implementation.distant"}),
        ("broken.py", "(1)", "(2)", {"broken.__getattr__"}),
    ]:
        after = look({**files, file: files[file].replace(old, new)})
        assert changed(before, after) == changes, (file, old)


@pytest.mark.parametrize("statement", ["from . import b; b.g(x)", "from .b import g; g(x)", "import p.b; p.b.g(x)"])
def test_an_import_in_a_function_counts_loaded_or_not(look: Look, statement: str) -> None:
    files = {
        "p/__init__.py": "",
        "p/a.py": f"def f(x):\n {statement}\n return 1",
        "p/b.py": "def g(x): return 1",
    }
    ask = "import p.a; show(_code.code_of(p.a.f))"
    before = look(files, ask)
    assert changed(before, look(files, "import p.b;" + ask)) == set()
    assert changed(before, look(files, "import p.a; p.a.f(1);" + ask)) == set()
    files["p/b.py"] = "def g(x): return 2"
    assert changed(before, look(files, ask)) == {"p.b.g"}


def test_an_import_that_fails_is_told(look: Look) -> None:
    files = {
        "main.py": "def f(x):\n import b, not_there\n return b.x",
        "b.py": "raise ValueError('no')",
    }
    assert ["b, which fails: ValueError: no" in w for w in look(files)["warnings"]] == [True]


def test_a_package_that_a_function_imports_is_not_loaded(look: Look) -> None:
    files = {
        "main.py": "def f(x):\n import tool\n return tool.x",
        "tool.py": "raise SystemError",
        "tool-1.0.dist-info/METADATA": "Name: tool\nVersion: 1.0\n",
        "tool-1.0.dist-info/RECORD": "tool.py,,\n",
    }
    assert "package tool" in look(files)["helpers"]


def test_a_packages_function_counts_by_name_if_it_has_that_name(look: Look) -> None:
    files = {
        "main.py": "from tool import {} as h\ndef f(x): return h(x)",
        "tool.py": "def g(x): return 1\nold = g\ndef g(x): return 2",
        "tool-1.0.dist-info/METADATA": "Name: tool\nVersion: 1.0\n",
        "tool-1.0.dist-info/RECORD": "tool.py,,\n",
    }
    one, other = (look({**files, "main.py": files["main.py"].format(name)}) for name in ("g", "old"))
    assert changed(one, other) == {"own", "tool.g"}


def test_packages_that_may_change_under_one_version_count_by_their_files(look: Look) -> None:
    files = {
        "main.py": "import tool\ndef f(x): return tool.x",
        "tool.py": "x = 1",
        "tool-1.0.dist-info/METADATA": "Name: tool\nVersion: 1.0\n",
        "tool-1.0.dist-info/RECORD": "tool.py,sha256=a,1\n",
        "tool-1.0.dist-info/direct_url.json": '{"url": "file:///tool", "dir_info": {}}',
    }
    before = look(files)
    after = look({**files, "tool-1.0.dist-info/RECORD": "tool.py,sha256=b,1\n"})
    assert changed(before, after) == {"package tool"}
    files["tool-1.0.dist-info/direct_url.json"] = '{"dir_info": {"editable": true}}'
    before = look(files)
    assert "package tool" not in before["helpers"]
    assert changed(before, look({**files, "tool.py": "x = 2"})) == {"tool.x"}


def test_a_project_that_is_built_in_place_is_no_package(look: Look) -> None:
    files = {
        "main.py": "import tool\ndef f(x): return tool.x",
        "tool.py": "x = 1",
        "tool.egg-info/PKG-INFO": "Name: tool\nVersion: 1.0\n",
        "tool.egg-info/top_level.txt": "tool\n",
        "statistics.py": "x = 1",
    }
    assert "package tool" not in look(files)["helpers"]


def test_a_module_with_a_name_of_pythons_is_the_projects(look: Look) -> None:
    files = {"main.py": "import code\ndef f(x): return code.x", "code.py": "x = 1"}
    assert changed(look(files), look({**files, "code.py": "x = 2"})) == {"code.x"}


def test_an_extension_counts_by_its_file(look: Look) -> None:
    import _heapq  # any extension that Python has as a file

    if not getattr(_heapq, "__file__", None):
        pytest.skip("this Python has no extensions in files")
    ask = """
        import importlib.util, sys, shutil, _heapq
        del sys.modules["_heapq"]
        shutil.copy(_heapq.__file__, "./_heapq.so")
        with open("./_heapq.so", "ab") as file:
            file.write(b"{}")
        spec = importlib.util.spec_from_file_location("_heapq", "./_heapq.so")
        sys.modules["_heapq"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["_heapq"])
        import main
        show(_code.code_of(main.f))
    """
    for main in ("from _heapq import heappush as g\ndef f(x): return g(x)", "import _heapq\ndef f(x): return _heapq.x"):
        before = look({"main.py": main}, ask.replace("{}", "a"), str(len(main)) + "a")
        after = look({"main.py": main}, ask.replace("{}", "b"), str(len(main)) + "b")
        assert changed(before, after) == {"extension _heapq"}


def test_a_library_that_ctypes_loads_counts_by_its_file(look: Look) -> None:
    ask = """
        import ctypes, main
        class CDLL(ctypes.CDLL):
            def __init__(self, path): self._name = path
        main.lib = CDLL("lib.so")
        show(_code.code_of(main.f))
    """
    files = {"main.py": "def f(x): return lib.f(x)", "lib.so": "a"}
    before = look(files, ask)
    assert changed(before, look({**files, "lib.so": "b"}, ask)) == {"library lib.so"}
