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
    """Places with the objects that were found there, each place once."""

    def __init__(self) -> None:
        super().__init__()
        self._places: set[tuple[int, str]] = set()

    def item(self, container: dict[str, object], name: str, value: object) -> None:
        """Notes what a dict has under a name, or that it has nothing there (``MISSING``)."""
        if not self._is_new(container, name):
            return
        if value is None:  # None as the object means that nothing is there
            self._condition(lambda: container.get(name, MISSING) is None)
        else:
            self.append((0, container, name, None if value is MISSING else value))

    def attribute(self, container: object, name: str, value: object) -> None:
        """Notes an attribute."""
        if not self._is_new(container, name):
            return
        if value is None:
            self._condition(lambda: getattr(container, name, MISSING) is None)
        else:
            self.append((1, container, name, value))

    def items(self, container: typing.Any) -> None:
        """Notes all that a container has, in its order."""
        mapped = isinstance(container, Mapping)
        first = list(container)
        values = list(container.values()) if mapped else []

        def are_same() -> bool:
            if len(container) != len(first) or not all(map(is_, container, first)):
                return False
            return not mapped or all(map(is_, container.values(), values))

        self._condition(are_same)

    def length(self, container: dict[str, object]) -> None:
        """Notes how many items a dict has, since a name that is missing may be added."""
        count = len(container)
        self._condition(lambda: len(container) == count)

    def empty(self, cell: CellType) -> None:
        """Notes that a variable of a closure has no value yet."""
        self._condition(lambda: is_empty(cell))

    def _is_new(self, container: object, name: str) -> bool:
        place = (id(container), name)  # the container is kept in the list, so its address is too
        if place in self._places:
            return False
        self._places.add(place)
        return True

    def _condition(self, test: Callable[[], bool]) -> None:
        self.append((1, _Holds(test), "holds", True))


def is_empty(cell: CellType) -> bool:
    """Tells whether a variable of a closure has no value yet."""
    try:
        cell.cell_contents
    except ValueError:
        return True
    return False

