"""SDE remembers what functions return: within a program, after a crash, and in the next one.

>>> import sde
>>> memory = sde.open("scan.sde")
>>> @memory.cache
... def energy(r, grid):
...     return (r - 1.4) ** 2 / grid
>>> energy(1.5, 10)
0.001...

A second call with these arguments gives the result at once, in this program and in any that opens `scan.sde`. A call is
the same if its arguments are, and the code of the function with all that it reaches in your project.
"""

import sysconfig as _sysconfig

if _sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError(
        "sde is not tested without Python's global lock, and may give wrong results there: "
        "use the ordinary build of Python (python3, not python3t)"
    )

from ._command import (
    Command,
    CommandEnded,
    CommandError,
    CommandFailed,
    CommandRefused,
    CommandUntraced,
    Ran,
    command,
)
from ._joblib import Reference, expires_after
from ._memory import CachedFunction, Memory, open
from ._sde import Error, KeyingError
from ._table import Table
from ._time import NotStarted, OutOfTime
from ._uses import uses
from ._values import InputFile, register

__all__ = [
    "CachedFunction",
    "Command",
    "CommandEnded",
    "CommandError",
    "CommandFailed",
    "CommandRefused",
    "CommandUntraced",
    "Error",
    "InputFile",
    "KeyingError",
    "Memory",
    "NotStarted",
    "OutOfTime",
    "Ran",
    "Reference",
    "Table",
    "command",
    "expires_after",
    "open",
    "register",
    "uses",
]
