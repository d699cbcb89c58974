"""Results taken out of a store: all, or those used least recently."""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING

from . import _sde

if TYPE_CHECKING:
    from ._memory import Memory

_BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def clear(self: Memory, warn: bool = True) -> None:
    """Has all results in the store no longer given, and takes them out: those of other programs, too.

    Results in a file that another process writes, or wrote until ten minutes ago, or that another user owns can't be
    taken out yet: they are marked as invalid. Other processes go on with what they have in memory, and stores that
    `SDE_ALSO` names keep what they have. The disk is free once a later save or `sde gc` removes the old files, ten
    minutes later at the earliest. It takes as long as reading the metadata of all results.

    Args:
        warn: Whether to print a line, if `verbose` is above 0.

    Raises:
        sde.Error: If the store can't be read or written.
    """
    if warn and self.verbose > 0:
        print(f"[sde] {self.location} is cleared", flush=True)
    if self._store is not None:
        _sde.clear(self._store, None)


def reduce_size(
    self: Memory,
    bytes_limit: int | str | None = None,
    items_limit: int | None = None,
    age_limit: datetime.timedelta | None = None,
) -> None:
    """Removes the results that were used least recently, until the store is within all limits that are given.

    Results of other programs count, too, but none that another user has saved. What goes is cleared as by `clear`, and
    memory lets go of all: what stays is read from the store again. It takes as long as reading the metadata of all
    results.

    Args:
        bytes_limit: The bytes of all results; `"500K"`, `"1M"` or `"2G"` are of 1024, 1024² and 1024³.
        items_limit: The number of results.
        age_limit: The time since the last use. With zero all go.

    Raises:
        ValueError: If a limit is no number, or negative.
        sde.Error: If the store can't be read or written.
    """
    most, seconds = _number_of_bytes(bytes_limit), _number_of_seconds(age_limit)
    if items_limit is not None and items_limit < 0:
        raise ValueError(f"items_limit is {items_limit}; it has to be 0 or more")
    if self._store is not None and (most, items_limit, seconds) != (None, None, None):
        _sde.reduce_size(self._store, most, items_limit, seconds, os.geteuid())


def _number_of_bytes(limit: int | str | None) -> int | None:
    """The number that a limit such as `"1M"` means.

    Raises:
        ValueError: If it means none.
    """
    if not isinstance(limit, str):
        return limit if limit is None else max(0, int(limit))
    unit = _BYTES.get(limit[-1:])
    try:
        return max(0, int(float(limit[:-1]) * unit)) if unit else int(limit)
    except (ValueError, OverflowError):
        raise ValueError(f"bytes_limit is {limit!r}; it can be a number of bytes, or as '500K', '1M', '2G'") from None


def _number_of_seconds(limit: datetime.timedelta | None) -> float | None:
    """The seconds of an age.

    Raises:
        ValueError: If it is negative.
    """
    seconds = None if limit is None else limit.total_seconds()
    if seconds is not None and seconds < 0:
        raise ValueError(f"age_limit is {limit}; it has to be a positive timedelta")
    return seconds
