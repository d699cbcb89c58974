"""What the tests share: projects that fresh processes look at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

SOURCES = Path(__file__).resolve().parents[1] / "sde"
# It would write into the sources.
set_hypothesis_home_dir(SOURCES.parents[1] / "target" / "hypothesis")

LOOK = f"""
import sys, types
package = types.ModuleType("sde")
package.__path__ = [{str(SOURCES)!r}]
sys.modules["sde"] = package
from sde import _code

def show(code):
    import json
    print(json.dumps(dict(
        name=code.name,
        own=code.own.hex(),
        helpers={{name: made.hex() for name, made in code.helpers.items()}},
        values={{name: repr(value) for name, value in code.values.items()}},
        warnings=code.warnings,
    )))
"""

Look = Callable[..., dict[str, Any]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Writes files of a project, and gives what a fresh process finds the code of ``main.f`` to be."""

    def look(
        files: dict[str, str],
        ask: str = "import main; show(_code.code_of(main.f))",
        folder: str = "project",
        seed: str = "random",
        options: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        root = tmp_path / folder
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        env = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": seed}
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        run = subprocess.run(
            [sys.executable, *options, "-c", LOOK + textwrap.dedent(ask)],
            env=env,
            cwd=root,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout.splitlines()[-1])

    return look


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """Names what of a function's code differs."""
    names = {part for part in ("name", "own") if before[part] != after[part]}
    for part in ("helpers", "values"):
        old, new = before[part], after[part]
        names |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return names


Space = dict[str, Any]


def space(text: str, name: str = "__main__") -> Space:
    """Runs the text of a module, and gives what it made."""
    made: Space = {"__name__": name}
    exec(compile(text, "<test>", "exec", dont_inherit=True), made)
    return made


def everything(code: Any) -> dict[str, Any]:
    return {"name": code.name, "own": code.own, "helpers": code.helpers, "values": code.values}


def differ(one: str, other: str) -> set[str]:
    """Names what differs between the functions ``f`` of two texts."""
    from sde import _code

    return changed(*(everything(_code.code_of(space(text)["f"])) for text in (one, other)))
