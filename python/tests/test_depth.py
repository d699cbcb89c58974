"""Calls of cached functions within each other: as deep as the stack allows, and an error before it overflows."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import SOURCES

PROGRAM = """
import sys, threading
import sde

memory = sde.Memory(sys.argv[1])

@memory.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

@memory.cache
def count(n, start):
    return 0 if n == 0 else 1 + count(n - 1, start)

def show():
    a, b = 0, 1
    for _ in range(200):
        a, b = b, a + b
    print(fib(200) == a)
    sys.setrecursionlimit(10**6)
    try:
        count(100_000, 0)
    except RecursionError as error:
        print(type(error).__name__, "threading.stack_size" in str(error))
    print(count(50, 1))

"""


@pytest.mark.parametrize("place", ["main", "thread", "small", "limit"])
def test_calls_nest_as_deep_as_the_stack_allows(tmp_path: Path, place: str) -> None:
    ways = {
        "main": "show()",
        "thread": "thread = threading.Thread(target=show); thread.start(); thread.join()",
        "small": """
            threading.stack_size(1 << 20)
            def show_less():
                sys.setrecursionlimit(10**6)
                try:
                    count(100_000, 0)
                except RecursionError as error:
                    print(True)
                    print(type(error).__name__, "threading.stack_size" in str(error))
                print(count(10, 1) + 40)
            thread = threading.Thread(target=show_less); thread.start(); thread.join()
        """,
        # Python's own limit comes first, and the message is its own.
        "limit": """
            sys.setrecursionlimit(250)
            try:
                count(100_000, 0)
            except BaseException as error:
                print(True)
                print(type(error).__name__, "threading.stack_size" not in str(error))
            print(count(50, 1))
        """,
    }
    # The usual size. What takes most of it is Python's and, without optimization, ours.
    text = "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.RLIM_INFINITY))\n"
    script = tmp_path / "main.py"
    script.write_text(text + PROGRAM + textwrap.dedent(ways[place]))
    command = [sys.executable, str(script), str(tmp_path / "s")]
    env = {**os.environ, "PYTHONPATH": str(SOURCES.parent)}
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.split() == ["True", "RecursionError", "True", "50"]
