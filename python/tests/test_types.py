"""Types: the package holds under `mypy --strict`, and tells the types of its users' functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import SOURCES

pytest.importorskip("mypy")
_CACHE = SOURCES.parent / "target" / "mypy"


def _run(*arguments: str) -> None:
    environment = {**os.environ, "MYPYPATH": str(SOURCES), "MYPY_CACHE_DIR": str(_CACHE)}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_and_what_users_have_of_it() -> None:
    _run("mypy", "sde", "tests/typed.py")


def test_the_stub_has_all_that_the_native_part_has(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    # The subclass in Python has the types of a call.
    allowed.write_text("sde._sde.__all__\nsde._sde.Function.__call__\n")
    options = ["--mypy-config-file", "pyproject.toml", "--allowlist", str(allowed), "--ignore-disjoint-bases"]
    _run("mypy.stubtest", "sde._sde", *options)
