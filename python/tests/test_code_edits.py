"""Edits that a person makes, with what of a function's code they change."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from conftest import LOOK, Look, changed

MAIN = """
    from __future__ import annotations
    from typing import TYPE_CHECKING
    import functools
    import helpers
    import tool
    from helpers import scale, timed
    from models import Model
    if TYPE_CHECKING:
        from models import Unused

    LIMIT = 3
    TABLE = [1]
    halve = lambda x: x / 2
    third = functools.partial(helpers.divide, by=3)

    def make(step):
        def walk(x):
            return x + step
        return walk

    walk = make(2)

    @timed
    def slow(x, exponent=2):
        '''Raises x to a power.'''
        # by multiplication
        return x ** exponent

    def f(x: float, offset=1):
        '''Computes.'''
        total = Model().run(scale(x)) + LIMIT + helpers.shift(x) + len(TABLE)
        return total + halve(x) + third(x) + walk(x) + slow(x) + tool.VERSION
"""
HELPERS = """
    import functools

    RATE = 4

    def scale(x):
        return inner(x) * RATE

    def grow(x):
        return x * 5

    def inner(x):
        return x + 1

    def shift(x):
        return x - 1

    def divide(x, by):
        return x / by

    def not_reached(x):
        return x

    def timed(function):
        @functools.wraps(function)
        def timed_call(*args, **kwargs):
            return function(*args, **kwargs)
        return timed_call
"""
MODELS = """
    class Base:
        width = 1

        def area(self):
            return self.width ** 2

    class Model(Base):
        height = 2

        def run(self, x):
            return self.area() * self.height * x

    class Unused:
        pass
"""
TOOL = {
    "tool.py": "VERSION = 1\n",
    "tool-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n",
    "tool-1.0.dist-info/RECORD": "tool.py,sha256=abc,12\ntool-1.0.dist-info/METADATA,,\n",
}
PROJECT = {"main.py": MAIN, "helpers.py": HELPERS, "models.py": MODELS, **TOOL}


@dataclass
class Edit:
    """Texts that are replaced in a file, and the parts of the code that differ then."""

    name: str
    file: str
    old: str
    new: str
    changes: set[str] = field(default_factory=set)


EDITS = [
    Edit("helper", "helpers.py", "x + 1", "x + 2", {"helpers.inner"}),
    Edit("helper that is not reached", "helpers.py", "return x\n", "return -x\n"),
    Edit("constant", "helpers.py", "RATE = 4", "RATE = 5", {"helpers.RATE"}),
    Edit("constant of another type", "main.py", "LIMIT = 3", "LIMIT = 3.0", {"main.LIMIT"}),
    Edit("class", "models.py", "height = 2", "height = 3", {"models.Model"}),
    Edit("base class", "models.py", "width = 1", "width = 2", {"models.Base"}),
    Edit("other base class", "models.py", "Model(Base)", "Model(Base, float)", {"models.Model"}),
    Edit("method", "models.py", "* x", "* x * x", {"models.Model.run"}),
    Edit("method of the base", "models.py", "** 2", "** 3", {"models.Base.area"}),
    Edit("metaclass", "models.py", "class Base:", "import abc\nclass Base(abc.ABC):",
         {"models.Base", "models.Model"}),
    Edit("method that is added", "models.py", "height = 2", "height = 2\n\n    def area(self): return 1",
         {"models.Model", "models.Model.area"}),
    Edit("decorator", "helpers.py", "return function(*args, **kwargs)", "return 2 * function(*args)",
         {"helpers.timed.<locals>.timed_call"}),
    Edit("decorator that is taken off", "main.py", "@timed", "",
         {"helpers.timed.<locals>.timed_call", "own"}),
    Edit("own default", "main.py", "offset=1", "offset=2", {"own"}),
    Edit("default of a helper", "main.py", "exponent=2", "exponent=3", {"main.slow"}),
    Edit("import of another name", "main.py", "import scale,", "import grow as scale,",
         {"own", "helpers.scale", "helpers.grow", "helpers.inner", "helpers.RATE"}),
    Edit("docstring", "main.py", "'''Computes.'''", "'''Computes\n    more.'''"),
    Edit("docstring that is taken off", "main.py", "'''Computes.'''", ""),
    Edit("docstring of a helper", "main.py", "'''Raises x", "'''Lifts x"),
    Edit("comment", "main.py", "# by multiplication", "# by multiplying\n"),
    Edit("layout", "main.py", "helpers.shift(x) +", "helpers.shift(\n        x,\n    ) +"),
    Edit("annotation", "main.py", "x: float", "x: int"),
    Edit("global list", "main.py", "TABLE = [1]", "TABLE = [1]\nTABLE.append(2)", {"main.TABLE"}),
    Edit("closure", "main.py", "make(2)", "make(3)", {"main.make.<locals>.walk"}),
    Edit("code of a closure", "main.py", "x + step", "x - step", {"main.make.<locals>.walk"}),
    Edit("lambda", "main.py", "x / 2", "x / 4", {"main.<lambda>"}),
    Edit("partial", "main.py", "by=3", "by=4", {"partial main.third"}),
    Edit("function of a partial", "helpers.py", "x / by", "x // by", {"helpers.divide"}),
    Edit("TYPE_CHECKING", "main.py", "from models import Unused", "from models import Base"),
    Edit("second function of the name", "helpers.py", "def shift(x):", "def shift(x):\n    return 7\ndef shift(x):"),
    Edit("second function of the name, after", "helpers.py", "def divide(", "def shift(x): return 7\ndef divide(",
         {"helpers.shift"}),
    Edit("package that is edited", "tool.py", "VERSION = 1", "VERSION = 2"),
    Edit("package upgraded", "tool-1.0.dist-info/METADATA", "Version: 1.0", "Version: 1.1", {"package tool"}),
    Edit("order of functions", "helpers.py", "RATE = 4\n", "RATE = 4\n\n\ndef first(x): return 1\n"),
]  # fmt: skip


def unindent(text: str) -> str:
    return text.replace("\n    ", "\n")


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_an_edit_changes_what_it_reaches(look: Look, edit: Edit) -> None:
    files = {name: unindent(text) for name, text in PROJECT.items()}
    before = look(files, folder="before")
    text = files[edit.file]
    assert edit.old in text
    files[edit.file] = text.replace(edit.old, edit.new)
    after = look(files, folder="after")
    assert changed(before, after) == edit.changes


def test_a_moved_file_is_the_same(look: Look) -> None:
    files = {name: unindent(text) for name, text in PROJECT.items()}
    before = look(files, folder="here")
    assert changed(before, look(files, folder="far/away")) == set()


def test_a_renamed_module_is_another(look: Look) -> None:
    files = {"main.py": "import a\ndef f(x): return a.g(x)", "a.py": "def g(x): return x"}
    before = look(files, folder="before")
    files = {"main.py": "import b as a\ndef f(x): return a.g(x)", "b.py": "def g(x): return x"}
    after = look(files, folder="after")
    assert changed(before, after) == {"own", "a.g", "b.g", "module a", "module b"}
    renamed = look({"other.py": MAIN_OF_RENAMED}, "import other; show(_code.code_of(other.f))")
    same = look({"main.py": MAIN_OF_RENAMED})
    assert changed(renamed, same) == {"name"}


MAIN_OF_RENAMED = "def f(x): return x"


def test_a_script_counts_by_content(look: Look) -> None:
    script = LOOK + "\ndef g(x): return x\ndef f(x): return g(x) + LIMIT\nshow(_code.code_of(f))\n"
    run = "import runpy; runpy.run_path('{}', run_name='__main__')"
    one = look({"scan.py": script.replace("LIMIT", "1")}, run.format("scan.py"))
    moved = look({"sub/other.py": script.replace("LIMIT", "1")}, run.format("sub/other.py"))
    edited = look({"scan.py": script.replace("LIMIT", "2")}, run.format("scan.py"))
    assert one["name"] == "__main__.f"
    assert changed(one, moved) == set()
    assert changed(one, edited) == {"own"}


NOTEBOOK = """
    space = {{"__name__": "__main__", "__builtins__": __builtins__}}
    def cell(number, text):
        exec(compile(text, f"<cell {{number}}>", "exec"), space)
    cell(1, "def g(x): return x + 1")
    cell(2, "def f(x): return g(x)")
    {}
    show(_code.code_of(space["f"]))
"""


@pytest.mark.parametrize(
    ("more", "changes"),
    [
        ("cell(3, 'def g(x): return x + 1')", set()),
        ("cell(3, 'def g(x): return x + 2')", {"__main__.g"}),
        ("cell(3, 'h = 3')", set()),
        ("cell(3, 'def f(x): return g(x) + 1')", {"own"}),
    ],
)
def test_a_notebook_counts_by_what_its_cells_made(look: Look, more: str, changes: set[str]) -> None:
    before = look({"a.py": ""}, NOTEBOOK.format(""))
    assert changed(before, look({"a.py": ""}, NOTEBOOK.format(more))) == changes
