"""What to compare before digests that were made once are used again."""

from __future__ import annotations

import gc
import types
from collections.abc import Mapping
from types import CellType
from typing import Any

Watch = tuple[int, Any, Any, object]
"""A place: its kind, a container, and what the kind needs. The native part compares them."""

MISSING = object()
"""Stands for a name that nothing has."""

_ITEM, _ATTRIBUTE, _MISSING, _ITEMS, _LENGTH, _EMPTY = range(6)


class Watched(list[Watch]):
    """Places with the objects that were found there, each place once."""

    def __init__(self) -> None:
        super().__init__()
        self._places: set[tuple[int, str]] = set()

    def item(self, container: dict[str, object], name: str, value: object) -> None:
        """Notes what a dict has under a name, or that it has nothing there (``MISSING``)."""
        if not self._is_new(container, name):
            return
        if value is MISSING:
            self.append((_MISSING, container, name, None))
        else:
            self.append((_ITEM, container, name, value))

    def attribute(self, container: object, name: str, value: object) -> None:
        """Notes an attribute."""
        if self._is_new(container, name):
            self.append((_ATTRIBUTE, container, name, value))

    def items(self, container: Any) -> None:
        """Notes all that a container has, in its order."""
        container = _behind(container)
        values = list(container.values()) if isinstance(container, Mapping) else None
        self.append((_ITEMS, container, list(container), values))

    def length(self, container: dict[str, object]) -> None:
        """Notes how many items a dict has, since a name that is missing may be added."""
        self.append((_LENGTH, container, len(container), None))

    def empty(self, cell: CellType) -> None:
        """Notes that a variable of a closure has no value yet."""
        self.append((_EMPTY, cell, None, None))

    def _is_new(self, container: object, name: str) -> bool:
        place = (id(container), name)  # the container is kept in the list, so its address is too
        if place in self._places:
            return False
        self._places.add(place)
        return True


def _behind(container: Any) -> Any:
    """The dict that a proxy shows, such as a class's: to compare it is ten times as fast. It is only read."""
    if type(container) is types.MappingProxyType:
        shown = gc.get_referents(container)
        if len(shown) == 1 and type(shown[0]) is dict:
            return shown[0]
    return container


def is_empty(cell: CellType) -> bool:
    """Tells whether a variable of a closure has no value yet."""
    try:
        cell.cell_contents
    except ValueError:
        return True
    return False
