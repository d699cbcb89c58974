"""Where the program ``sde`` is that was built beside the package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def sde_program() -> str:
    """The path of the program; the test is skipped without it."""
    target = os.environ.get("CARGO_TARGET_DIR") or Path(__file__).resolve().parents[2] / "target"
    for build in ("debug", "release"):
        path = Path(target) / build / "sde"
        if path.exists():
            return str(path)
    pytest.skip("the program sde is not built: cargo build -p sde-cli")
