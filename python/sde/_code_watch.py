"""What to compare before digests that were made once are used again."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from operator import is_
from types import CellType

Watch = tuple[int, typing.Any, str, object]

MISSING = object()
"""Stands for a name that nothing has."""


class _Holds:
    """A watched condition: an attribute ``holds`` that is True while it does."""

    __slots__ = ("_test",)

    def __init__(self, test: Callable[[], bool]) -> None:
        self._test = test

    @property
    def holds(self) -> bool:
        """Whether the condition holds."""
        return self._test()


class Watched(list[Watch]):
    """Places with the objects that were found there."""

    def item(self, container: dict, name: str, value: object) -> None:
        """Notes what a dict has under a name, or that it has nothing there (``MISSING``)."""
        if value is None:  # None as the object means that nothing is there
            self._condition(lambda: container.get(name, MISSING) is None)
        else:
            self.append((0, container, name, None if value is MISSING else value))

    def attribute(self, container: object, name: str, value: object) -> None:
        """Notes an attribute."""
        if value is None:
            self._condition(lambda: getattr(container, name, MISSING) is None)
        else:
            self.append((1, container, name, value))

    def items(self, container: typing.Any) -> None:
        """Notes all that a container has, in its order."""
        kept = _objects(container)

        def are_same() -> bool:
            found = _objects(container)
            return len(found) == len(kept) and all(map(is_, found, kept))

        self._condition(are_same)

    def empty(self, cell: CellType) -> None:
        """Notes that a variable of a closure has no value yet."""
        self._condition(lambda: is_empty(cell))

    def _condition(self, test: Callable[[], bool]) -> None:
        self.append((1, _Holds(test), "holds", True))


def is_empty(cell: CellType) -> bool:
    """Tells whether a variable of a closure has no value yet."""
    try:
        cell.cell_contents
    except ValueError:
        return True
    return False


def _objects(container: typing.Any) -> list[object]:
    if isinstance(container, Mapping):
        return [*container.keys(), *container.values()]
    return list(container)
