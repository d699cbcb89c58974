"""The examples in docstrings run, and each public function has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import sde

MODULES = [f"sde.{module.name}" for module in pkgutil.iter_modules(sde.__path__) if module.name != "_sde"]


@pytest.mark.parametrize("name", ["sde", *MODULES])
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in finder.find(module, name):
        folder = tmp_path / example.name
        folder.mkdir()
        monkeypatch.chdir(folder)
        # What it defines is of a script.
        example.globs = vars(module) | {"__name__": "__main__", "__package__": None}
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


def _public() -> dict[str, object]:
    found: dict[str, object] = {}
    for name in sde.__all__:
        thing = getattr(sde, name)
        found[name] = thing
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            methods = {f"{name}.{of}": made for of, made in vars(thing).items() if inspect.isfunction(made)}
            found |= {of: made for of, made in methods.items() if not of.rpartition(".")[2].startswith("_")}
    return {name: thing for name, thing in found.items() if not (inspect.isclass(thing) and issubclass(thing, Exception))}


@pytest.mark.parametrize("name", _public())
def test_each_public_function_has_an_example(name: str) -> None:
    """Of its own, or in that of its class."""
    public = _public()
    of, _, method = name.rpartition(".")
    texts = [inspect.getdoc(public[name]) or "", (inspect.getdoc(public[of]) or "") if of else ""]
    assert ">>> " in texts[0] or f".{method}(" in texts[1].partition(">>> ")[2], f"{name} has no example"
