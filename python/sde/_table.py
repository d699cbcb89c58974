"""Tables of what a store has: the runs of a function, with what they were given and returned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _memory


class Table:
    """The runs of a function or a command, a row each, as the program `sde table` shows them.

    A column stands for each argument, and for each result, or field of one, that is a number, a truth value or a short
    text. Values are `int`, `float`, `bool` or `str`; `None` where a run has none. Of an array among the arguments the
    table has its short text. A run that failed, and has had no result since, has its error in the column `error`. The
    last column is `key`.

    Attributes:
        names: The titles of the columns.
        columns: The values of each column, by title.
        left_out: Results that have no column, as arrays; `memory.load(key)` gives them.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> @memory.cache
        ... def energy(r):
        ...     return (r - 1.5) ** 2
        >>> memory.map(energy, [1.0, 2.5])
        [0.25, 1.0]
        >>> table = memory.table(energy)
        >>> table["r"], table["result"], len(table)
        ([1.0, 2.5], [0.25, 1.0], 2)
        >>> float(table.to_pandas().result.sum())
        1.25
    """

    names: list[str]
    columns: dict[str, list[Any]]
    left_out: list[str]

    def __init__(
        self, names: list[str], columns: list[list[Any]], keys: list[str], text: list[str], left_out: list[str]
    ) -> None:
        self.names = [*names, "key"]
        self.columns = dict(zip(self.names, [*columns, keys], strict=True))
        self.left_out = left_out
        self._text = "\n".join(text)

    def __len__(self) -> int:
        return len(self.columns["key"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.names, values, strict=True))

    def __getitem__(self, which: str | int) -> Any:
        """The values of a column, by its title, or a row, by its number."""
        if isinstance(which, str):
            return self.columns[which]
        return {name: values[which] for name, values in self.columns.items()}

    def __repr__(self) -> str:
        """The first rows in at most 80 columns, and what the table does not show."""
        return self._text

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`.

        Raises:
            ImportError: If pandas is not installed.
        """
        import pandas  # type: ignore[import-untyped,unused-ignore]

        return pandas.DataFrame(self.columns, columns=self.names)


def read(memory: Any, function: Any, all_code: bool, code: str | None) -> Table:
    """Reads a table; what this process has computed is saved first."""
    if all_code and code is not None:
        raise ValueError("all_code=True has the runs of all code, and code= those of one: give one of them")
    store = memory._store
    if store is None:
        return Table([], [], [], ["no entries"], [])
    if isinstance(function, _memory.CachedFunction):
        if function._memory.location != memory.location:
            raise ValueError(f"{function!r} belongs to the store {function._memory.location}: ask that for its table")
        app: str | None = function.app_name()
    elif function is None or isinstance(function, str):
        app = function
    else:
        raise TypeError(f"{function!r} is no cached function of this store, nor the name of one")
    store.checkpoint()
    return Table(*store.table(app, all_code, code))
