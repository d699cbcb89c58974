"""Code whose instructions differ between versions of Python: names in it are followed, and its layout does not count."""

from __future__ import annotations

import sys

import pytest
from conftest import changed, differ, everything, space

from sde import _code

SYNTAX = {
    "comprehension": "def f(x): return [g(y) for y in x if g(y)]",
    "nested comprehension": "def f(x): return {y: {g(z) for z in y} for y in x}",
    "comprehension in a class": "def f(x):\n class A:\n  y = [g(z) for z in x]\n return A",
    "generator": "def f(x): return sum(g(y) for y in x)",
    "super": "class A:\n def m(self): return g(1)\nclass B(A):\n def m(self): return super().m()\ndef f(x): return B().m()",
    "pairs of locals": "def f(x, y, z):\n a, b = x, y\n b, a = a, z\n return g(a, b) + a + b",
    "match": "def f(x):\n match x:\n  case {'a': y, **z}: return g(y)\n  case _: return x",
    "try": "def f(x):\n try: return x\n except* ValueError: g(x)\n finally: x()",
    "asynchronous": "def f(x):\n async def h():\n  async with x as y: return [g(z) async for z in y]\n return h",
    "global of a class": "def f(x):\n class A:\n  y = g\n  def __init__(self): self.a = self.b = 1\n return A",
    "f-string": "def f(x): return f'{g(x)!r:{g(x)}}'",
}
if sys.version_info >= (3, 12):
    SYNTAX |= {
        "generic function": "def f[T: int](x: T) -> T: return g(x)",
        "generic class": "class A[T]:\n def m(self, x: T): return g(x)\ndef f(x): return A[int]().m(x)",
        "function in a generic function": "def f[T](x: T):\n def h[U](y: U) -> T: return g(y)\n return h(x)",
        "nested f-string": "def f(x): return f'{g(f'{x}')}'",
    }
if sys.version_info >= (3, 13):
    SYNTAX["type parameter with a default"] = "def f[T = int](x: T) -> T: return g(x)"


@pytest.mark.parametrize("text", SYNTAX.values(), ids=SYNTAX)
def test_names_are_followed_and_layout_does_not_count(text: str) -> None:
    one, other = (f"def g(*x): return {n}\n{text}" for n in "12")
    assert differ(one, other) == {"__main__.g"}
    assert differ(one, one.replace("def f", "\n\n\ndef f").replace("[g(", "[\n  g(")) == set()
    f = space(one)["f"]
    before = everything(_code.code_of(f))
    assert changed(before, everything(_code.code_of(f))) == set()
