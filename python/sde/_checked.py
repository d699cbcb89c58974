"""Cached functions that look at each hit: whether it is still valid, or to tell of it."""

from __future__ import annotations

from typing import Any

from . import _joblib, _sde
from ._function import CachedFunction


class CheckedFunction(CachedFunction[..., Any]):
    """A cached function with a validation callback, or with messages of hits.

    Others don't pay for that: their hits don't pass through Python code.
    """

    def _is_refused(self, args: tuple[Any, ...], kwargs: dict[str, Any], tells: bool = True) -> bool:
        """Whether there is a result, and the user's callback doesn't want it."""
        made = self.remembered(args, kwargs)
        callback = self._options["cache_validation_callback"]
        if made is None:
            return False
        if callback is not None:
            metadata = _joblib.metadata_of(self, made, args, kwargs)
            if not callback(metadata):
                return True
        if tells and self._verbose > 10:
            print(f"[sde] {_joblib.called(self.func, args, kwargs)} is remembered", flush=True)
        return False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call_until(_sde.Cancel(), args, kwargs)

    def call_until(self, cancel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], anew: bool = False) -> Any:
        return super().call_until(cancel, args, kwargs, anew or self._is_refused(args, kwargs))

    def shelve(self, cancel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], anew: bool = False) -> Any:
        return super().shelve(cancel, args, kwargs, anew or self._is_refused(args, kwargs))

    def is_cached(self, *args: Any, **kwargs: Any) -> bool:
        return super().is_cached(*args, **kwargs) and not self._is_refused(args, kwargs, tells=False)

    check_call_in_cache = is_cached

    def explained(self, *args: Any, **kwargs: Any) -> str:
        is_remembered, key = self.glance(*args, **kwargs)
        if is_remembered and self._is_refused(args, kwargs, tells=False):
            return f"[{key[:8]}] would be computed: cache_validation_callback does not want the result"
        return super().explained(*args, **kwargs)
