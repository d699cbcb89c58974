"""What code uses in ways that can't be seen in it."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

ATTRIBUTE = "__sde_uses__"
"""Where a function or class has the objects that it uses."""


class Uses:
    """Objects that a function uses; as a decorator it tells the function."""

    def __init__(self, objects: tuple[object, ...], is_in_function: bool) -> None:
        self._objects = objects
        self._has_effect = is_in_function

    def __call__(self, function: _F, /) -> _F:
        """Notes the objects in a function or class."""
        self._has_effect = True
        to = _plain(function)
        try:
            if to is None:
                raise TypeError
            # A function may have taken this over from the one that it wraps, and a class from its base.
            setattr(to, ATTRIBUTE, (*vars(to).get(ATTRIBUTE, ()), *self._objects))
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"sde.uses can't be noted in {function!r}: write `memory.cache(uses=[..])` where it is cached"
            ) from error
        return function

    def __del__(self) -> None:
        if not self._has_effect:
            warnings.warn(
                "sde.uses(..) had no effect: write it before a function, as a decorator, or in a function's body",
                RuntimeWarning,
                stacklevel=2,
            )


def _plain(function: object) -> Any:
    """The function or class below decorators, where the notes are looked for; `None` if it is not written in Python."""
    from ._code import _inner

    for _ in range(1000):
        if function is None or isinstance(function, (types.FunctionType, type)):
            return function
        function = _inner(function)
    return None


def uses(*objects: object) -> Uses:
    """Says that a function uses objects in a way that its code doesn't show.

    SDE follows the names in the code of a function. It can't see what `getattr`, `globals()`, `exec`, a registry or a
    patched package lead to. Named here, these objects count in the keys of all calls that reach the function: functions
    and classes by their code, others by their value.

    It is a decorator, for any function or class that a cached one reaches. In the body of a function it does nothing
    when it runs: what is named there is seen. Elsewhere it has no effect, and a `RuntimeWarning` says so.

    Args:
        objects: Functions, classes, modules of the project, or values that can be keyed.

    Raises:
        TypeError: If what is decorated is not written in Python, or is a property.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> def harmonic(r):
        ...     return (r - 1.4) ** 2
        >>> @memory.cache
        ... @sde.uses(harmonic)
        ... def energy(r, name):
        ...     return globals()[name](r)
        >>> energy(1.4, "harmonic")
        0.0
    """
    is_in_function = bool(sys._getframe(1).f_code.co_flags & inspect.CO_OPTIMIZED)
    return Uses(objects, is_in_function)
