"""Programs that tests run in processes of their own, with a watchdog: a hang ends with the stacks of all threads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1]
PATIENCE = 40

_HEAD = f"""
import faulthandler, os, pathlib, signal, sys, threading, time
# An alarm, for `dump_traceback_later` hangs in a child of `fork`.
faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)
signal.alarm({PATIENCE})
# Whoever runs the tests in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.register_at_fork(after_in_child=lambda: signal.alarm({PATIENCE}))
import sde

def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.002)

memory = sde.open("store.sde")
"""


def begin(folder: Path, text: str, name: str = "program.py") -> subprocess.Popen[str]:
    """Starts a program in a folder."""
    (folder / name).write_text(_HEAD + textwrap.dedent(text))
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.Popen(
        [sys.executable, name],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str], status: int = 0) -> list[str]:
    """Waits for the end of a program, and gives the lines that it printed."""
    try:
        out, err = process.communicate(timeout=2 * PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == status, f"status {process.returncode}\n{out}\n{err}"
    return out.splitlines()


def run(folder: Path, text: str, status: int = 0) -> list[str]:
    """Runs a program, and gives the lines that it printed."""
    return end(begin(folder, text), status)
