"""Functions whose results are remembered."""

from __future__ import annotations

import functools
import inspect
import time
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from . import _code, _joblib, _processes, _sde

if TYPE_CHECKING:
    from ._memory import Memory

_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")


class CachedFunction(_sde.Function, Generic[_P, _R]):
    """A function whose results are remembered. It is called as the function is.

    Attributes:
        func: The function itself.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> def square(x):
        ...     return x * x
        >>> square = memory.cache(square)
        >>> print(square.why(3))
        [...] would be computed: it was not run before
        >>> square.is_cached(3), square(3), square.is_cached(3)
        (False, 9, True)
        >>> square.key(3) == square.key(x=3), square.check_call_in_cache(3)
        (True, True)
        >>> square.call(3)[0], memory.stats()["computed"]
        (9, 2)
        >>> square.invalidate(3), square.is_cached(3)
        (True, False)
        >>> square.call_and_shelve(3).get()
        9
        >>> square.clear()
        >>> square.is_cached(3)
        False
    """

    func: Callable[_P, _R]
    _options: dict[str, Any]
    _memory: Memory
    _verbose: int
    __name__: str
    __qualname__: str

    if TYPE_CHECKING:

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

    @classmethod
    def _body(cls, func: Callable[..., Any]) -> Callable[..., Any]:
        """What the engine runs."""
        return func

    @classmethod
    def _made(
        cls,
        memory: Memory,
        func: Callable[..., Any],
        options: dict[str, Any],
        fixed: tuple[Any, ...] | None = None,
    ) -> CachedFunction[..., Any]:
        _refuse_generators(func)
        parameters = _signature(func).parameters
        for name in (*options["ignore"], *options["since"]):
            if name not in parameters:
                text = f"{_code.name_of(func)} has no parameter {name!r}"
                if hasattr(func, "__wrapped__"):
                    text += " of its own: cache the function, and decorate what that gives"
                raise ValueError(text)
        told = [_told(parameter, options) for parameter in parameters.values()]
        about = (inspect.getdoc(func) or "").partition("\n\n")[0]

        def code() -> Any:
            memory._declare()
            if fixed is not None:
                return fixed
            if options["version"] is not None:
                return bytes(32), [], [], _sde.Watched([])
            found = _code.code_of(func, options["uses"])
            for text in found.warnings:
                _warn_of(func, text)
            return found.own, sorted(found.helpers.items()), sorted(found.values.items()), _sde.Watched(found.watched)

        mode, verbose = options["mmap_mode"], memory._level(options)
        made = cls(
            memory._store,
            _joblib.announced(cls._body(func)) if verbose > 0 else cls._body(func),
            _code.name_of(func),
            about,
            told,
            options["tags"],
            options["version"],
            _joblib.is_writable(memory.mmap_mode if mode is False else mode),
            options["cache_validation_callback"] is None,
            code,
        )
        functools.update_wrapper(made, func)
        made.func = func
        made._options = options
        made._memory = memory
        made._verbose = verbose
        memory._functions.add(made)
        return made

    def is_cached(self, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Whether a call would compute nothing. It runs nothing, and looks for what other processes have saved."""
        self._note_asked(args, kwargs)
        if not self.glance(*args, **kwargs)[0]:
            self._memory._store.refresh()
        return self.glance(*args, **kwargs)[0]

    check_call_in_cache = is_cached

    def why(self, *args: _P.args, **kwargs: _P.kwargs) -> str:
        """What a call would do, and why: which argument or code differs from the nearest call that is remembered.

        It is held against the latest ten thousand calls of the function, which takes some tenths of a second.
        """
        self._memory._store.refresh()
        return self.explained(*args, **kwargs)

    def key(self, *args: _P.args, **kwargs: _P.kwargs) -> str:
        """The key of a call, as the program `sde` takes it."""
        return self.glance(*args, **kwargs)[1]

    def call(self, *args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, dict[str, Any]]:
        """Runs the function in any case, and remembers what it returns.

        Returns:
            The result, and its metadata, as a validation callback gets it.
        """
        began, clock = time.time(), time.perf_counter()
        result: _R = self.call_until(_sde.Cancel(), args, kwargs, anew=True)
        made = began, time.perf_counter() - clock
        return result, _joblib.metadata_of(self, made, args, kwargs)

    def call_and_shelve(self, *args: _P.args, **kwargs: _P.kwargs) -> _joblib.Reference:
        """Calls the function, and leaves the result in the store.

        Returns:
            A small object whose `get()` gives the result, in this process or in one that it is sent to. It holds the
            result itself if the store does not: because of a tag, or because it can't be stored.
        """
        if self._is_unsaved():
            return _joblib.HeldReference(_joblib.name_of(self.func), (self(*args, **kwargs),))
        return self._shelved(args, kwargs, _sde.Cancel())

    def _is_unsaved(self) -> bool:
        """Whether no result comes into the store, because of a tag."""
        return bool(_processes._UNSAVED & set(self._options["tags"]))

    def _shelved(self, args: tuple[Any, ...], kwargs: dict[str, Any], cancel: _sde.Cancel) -> _joblib.Reference:
        """Makes a call that another thread may give up, and gives a reference to its result."""
        name, mode = _joblib.name_of(self.func), self._options["mmap_mode"]
        key, held = self.shelve(cancel, args, kwargs, False)
        if key is None:
            return _joblib.HeldReference(name, held or ())
        return _joblib.Reference(self._memory, self._memory.mmap_mode if mode is False else mode, name, key.hex())

    def clear(self, warn: bool = True) -> None:
        """Has all results of functions of this name no longer given, whatever their code, and takes them out.

        It does what `memory.clear` does, for this name: module and qualified name. All lambdas of a module that lie in
        one place have one name.

        Args:
            warn: Whether to print a line, if `verbose` is above 0.

        Raises:
            sde.Error: If the store can't be read or written.
        """
        name = self.app_name()
        if warn and self._verbose > 0:
            print(f"[sde] {name} is cleared", flush=True)
        _sde.clear(self._memory._store, name)

    def invalidate(self, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Has the result of a call no longer given, in any program; says whether there was one."""
        self._note_asked(args, kwargs)
        return self.invalidate_call("invalidated from Python", args, kwargs)

    def _is_refused(self, args: tuple[Any, ...], kwargs: dict[str, Any], tells: bool = True) -> bool:
        """Whether there is a result that the user's callback doesn't want."""
        return False

    def _note_asked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Has the run that asks not looked up: because of the answer it may return something else."""
        if self._memory._store.is_in_run():
            self.explained(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> CachedFunction[_P, _R]: ...

    @overload
    def __get__(
        self: CachedFunction[Concatenate[Any, _Q], _R], instance: object, owner: type | None = None
    ) -> Callable[_Q, _R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        return _pickling.reduce(self)

    def __repr__(self) -> str:
        return f"<cached {self.__module__}.{self.__qualname__}>"


def _refuse_generators(func: Callable[..., Any]) -> None:
    kinds = {
        "an asynchronous generator": inspect.isasyncgenfunction(func),
        "a generator": inspect.isgeneratorfunction(func),
    }
    for kind, is_it in kinds.items():
        if is_it:
            raise TypeError(
                f"{_joblib.name_of(func)} can't be cached: it is {kind}, whose call returns before its code has run. "
                "Cache a function that returns a list"
            )


def _signature(func: Callable[..., Any]) -> inspect.Signature:
    """The parameters that a callable has itself. What it wraps may have others, and it may pass on what it likes.

    Native wrappers, as those of `functools.lru_cache` and Numba, pass on what they are given, and have none to be seen.
    """
    if isinstance(func, types.FunctionType):
        plain = types.FunctionType(func.__code__, {}, None, func.__defaults__, func.__closure__)
        plain.__kwdefaults__ = func.__kwdefaults__
        return inspect.signature(plain)
    is_native = not isinstance(func, (types.MethodType, functools.partial)) and not isinstance(
        getattr(type(func), "__call__", None), types.FunctionType
    )
    return inspect.signature(func, follow_wrapped=is_native)


def _warn_of(func: Any, text: str) -> None:
    """Warns where a function is defined, once, whichever function's call has looked at its code. Workers don't warn:
    their parent has."""
    if _worker.is_worker:
        return
    while not isinstance(func, types.FunctionType):
        func = _code._inner(func)
    place, known = func.__code__, func.__globals__.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, RuntimeWarning, place.co_filename, place.co_firstlineno, func.__module__, known)


def _told(parameter: inspect.Parameter, options: dict[str, Any]) -> Any:
    name, since = parameter.name, options["since"]
    default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
    return (
        name,
        int(parameter.kind),
        default or None,
        name in options["ignore"],
        (since[name],) if name in since else None,
    )


from . import _pickling, _worker  # noqa: E402  (they need the class above)
