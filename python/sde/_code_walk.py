"""Follows what a function reaches in the user's project.

The result is a graph: each object reached has a label and a digest of its own content, and refers
to others by label. A queue holds what is to be looked at, so chains may be of any length.
"""

from __future__ import annotations

import enum
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, cast

from ._code_bytes import constant, digest
from ._code_class import describe_class
from ._code_describe import (
    PARTS,
    describe_function,
    describe_parts,
    describe_wrapper,
    is_code,
    wrapped_of,
)
from ._code_import import library_digest
from ._code_owner import PROJECT, Owner, file_of, is_extension, module_name, owner_of
from ._code_watch import MISSING, Watched

_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None))

_DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)  # the first is of methods too
_ALIASES = (types.GenericAlias, types.UnionType, TypeVar, ParamSpec)

# Types whose objects have no value that could be compared, with those made from them.
_BY_TYPE = frozenset(
    """_thread.lock _thread.RLock _thread._local threading.Thread threading.Event threading.Condition
    threading.Semaphore threading.Barrier _io._IOBase _socket.socket
    builtins.generator builtins.coroutine builtins.async_generator _contextvars.ContextVar
    concurrent.futures._base.Executor subprocess.Popen sqlite3.Connection mmap.mmap
    multiprocessing.pool.Pool multiprocessing.process.BaseProcess asyncio.events.AbstractEventLoop
    """.split()
)
_BY_VALUE = frozenset({"_io.BytesIO", "_io.StringIO"})
# Caches, loggers and SDE's own handles, of which nobody needs to be told.
_SILENT = frozenset(
    """sde._memory.Memory sde._sde.Store weakref.WeakKeyDictionary weakref.WeakValueDictionary _weakrefset.WeakSet
    weakref.ReferenceType logging.Logger logging.LoggerAdapter _abc._abc_data importlib._bootstrap.ModuleSpec
    """.split()
)
# What a module has because it is one. ``x.__file__`` in code seldom means the module's.
_OF_MODULES = frozenset(
    """__name__ __file__ __doc__ __dict__ __path__ __spec__ __loader__ __package__ __cached__
    __builtins__ __class__ __annotations__""".split()
)


class Walk:
    """One look at a function with all that it reaches."""

    def __init__(self) -> None:
        self.helpers: dict[str, bytes] = {}
        self.values: dict[str, object] = {}
        self.watched = Watched()
        self.warnings: dict[str, None] = {}
        self._root: object = None
        self._labels: dict[object, str] = {}
        self._taken: dict[str, int] = {}
        self._alive: list[object] = []  # addresses are in the labels' keys
        self._queue: deque[tuple[str, Callable[[], list[bytes]]]] = deque()
        self._names: dict[str, None] = {}
        self._spaces: list[_Space] = []

    def run(self, root: object, uses: Iterable[object]) -> bytes:
        """Looks at everything, and gives the digest of the root itself."""
        self._root = root
        made = self.refer(root, "")
        fields = self._queue.popleft()[1]() if self._queue else [made]
        fields += [digest("use", self.refer(use, f"uses[{i}]")) for i, use in enumerate(uses)]
        while self._queue or self._look_in_spaces():
            while self._queue:
                label, describe = self._queue.popleft()
                self.helpers[label] = digest("node", *describe())
        for space in self._spaces:
            edges = [digest(name, edge) for name, edge in sorted(space.edges.items())]
            self.helpers[space.label] = digest("space", *edges)
        return digest("root", *fields)

    # References

    def refer(self, value: object, label: str) -> bytes:
        """Gives what stands for an object where another one refers to it.

        ``label`` is the object's name if it has no better one.
        """
        made = constant(value, lambda element: self._refer_to_code(element, label))
        return self.refer_to_value(value, label) if made is None else made

    def _refer_to_code(self, value: Any, label: str) -> bytes | None:
        """Refers to anything that can't change; gives None for a value that can.

        The type is asked, and not the object: proxies lie about their class.
        """
        kind = type(value)
        if issubclass(kind, type):
            return self._refer_to_class(value)
        if kind is types.FunctionType:
            return self._refer_to_function(value)
        if issubclass(kind, types.ModuleType):
            return self._refer_to_module(value)
        if isinstance(kind, enum.EnumMeta):
            number = constant(value._value_) or b""
            return digest("member", self.refer(kind, ""), str(value._name_), number)
        if kind in _DESCRIPTORS:
            return digest("descriptor", self.refer(value.__objclass__, ""), value.__name__)
        if kind in _BOUND:
            return self._refer_to_builtin(value, label)
        if kind in _ALIASES or kind.__module__ == "typing":
            return self._refer_to_alias(value, label)
        if issubclass(kind, tuple(PARTS)):
            name = f"{kind.__name__} {label}"  # the function in it has the plain name
            return self._node(value, name, lambda: describe_parts(self, value, label))
        outside = self._outside_by_name(value)
        if outside is None and wrapped_of(value) is not None:
            return self._node(value, label, lambda: describe_wrapper(self, value, label))
        return outside or self._by_type(value, label)

    def _refer_to_class(self, cls: type) -> bytes:
        outside = self._outside(cls, cls.__module__, cls.__qualname__)
        if outside is not None:
            return outside
        label = f"{module_name(cls.__module__)}.{cls.__qualname__}"
        return self._node(cls, label, lambda: describe_class(self, cls, label))

    def _refer_to_function(self, function: types.FunctionType) -> bytes:
        # A decorator of a package gives its function the name of the project's: the code tells.
        module = function.__globals__.get("__name__")
        name = function.__code__.co_qualname
        outside = self._outside(function, module, name)
        if outside is not None:
            return outside
        label = f"{module_name(module)}.{name}"
        return self._node(function, label, lambda: describe_function(self, function, label))

    def _refer_to_module(self, module: types.ModuleType) -> bytes:
        name = module.__name__
        if self.owner(name).kind != "project":
            return digest("module", name)
        if is_extension(module):
            self._extension(module)
            return digest("module", name)
        if ("space", id(module)) in self._labels:
            return digest("space", self._label("", module, "space"))
        label = self.add_space(f"module {module_name(name)}", module_name(name), module)
        self.watched.length(vars(module))
        self.add_names(["__getattr__"])  # which runs for a name that the module doesn't have
        return digest("space", label)

    def _refer_to_builtin(self, function: Any, label: str) -> bytes:
        bound = getattr(function, "__self__", None)
        if bound is not None and not isinstance(bound, types.ModuleType):
            return digest("method", function.__name__, self.refer(bound, label))
        module = getattr(function, "__module__", None)
        outside = self._outside(function, module, function.__qualname__)
        return outside or digest("builtin", str(module), function.__qualname__)

    def _refer_to_alias(self, alias: Any, label: str) -> bytes:
        parts = [getattr(alias, "__origin__", None), *(getattr(alias, "__args__", None) or ())]
        edges = [self.refer(part, label) for part in parts if isinstance(part, type)]
        return digest("alias", repr(alias), *edges)

    def _outside_by_name(self, value: Any) -> bytes | None:
        """Refers to a package's object that is called as a function, such as a ufunc."""
        if not callable(value) or self.owner(type(value).__module__).kind == "project":
            return None
        try:
            name = getattr(value, "__qualname__", None) or value.__name__
            return self._outside(value, value.__module__, name)
        except Exception:  # the object makes up its attributes
            return None

    def _by_type(self, value: object, label: str) -> bytes | None:
        """Refers by its type to an object that has no value to compare."""
        kind = type(value)
        if kind is object:  # a sentinel, which is what its name says
            return digest("sentinel", self._label(label, value, "sentinel"))
        names = {f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__}
        if "ctypes.CDLL" in names:
            path = str(getattr(value, "_name", ""))
            self._library(f"library {path}", path)
        elif names & _BY_TYPE and not names & _BY_VALUE:
            what = label or "An object that is reached"
            self.warn(f"{what} is a {kind.__qualname__}: it counts by its type, not by its value.")
        elif not names & _SILENT:
            return None
        return digest("type", self.refer(kind, ""))

    def refer_to_value(self, value: object, label: str) -> bytes:
        """Refers to an object whose content counts at each call, and notes it in ``values``."""
        new = ("value", id(value)) not in self._labels
        label = self._label(label, value, "value")
        if new:
            self.values[label] = value
            kind = self.refer(type(value), "")
            edges = self.codes_in(value, label)
            if edges or self.owner(type(value).__module__).kind == "project":
                self.helpers[f"{label}: code"] = digest("codes", kind, *edges)
        return digest("value", label)

    def codes_in(
        self, value: Any, label: str, is_followed: Callable[[object], bool] = is_code
    ) -> list[bytes]:
        """Follows the functions and classes that a container has as elements."""
        kind = type(value)
        if issubclass(kind, (dict, types.MappingProxyType)):
            items = list(value.items())
        elif issubclass(kind, (list, tuple)):
            items = list(enumerate(value))
        elif issubclass(kind, (set, frozenset)):
            items = [(None, element) for element in value]
        else:
            return []
        edges = []
        for key, element in items:
            if is_followed(element):
                key = constant(key, lambda other: self._refer_to_code(other, label)) or b""
                edges.append(digest("element", key, self.refer(element, f"{label}[..]")))
        if edges:
            self.watched.items(value)
        return sorted(edges)

    def _outside(self, value: object, module: object, name: object) -> bytes | None:
        """Refers by name to what Python, a package or an extension has under that name."""
        if not isinstance(module, str) or not isinstance(name, str):
            return None
        owner, found = self.owner(module), sys.modules.get(module)
        if owner.kind == "project" and not is_extension(found):
            return None
        at: object = found
        try:
            for part in name.split("."):
                at = getattr(at, part)
        except Exception:
            return None
        if at is not value:
            return None
        if owner.kind == "project":
            self._extension(cast(types.ModuleType, found))
        return digest("outside", module, name)

    # Names

    def named(self, space: object, name: str, label: str, value: object) -> bytes:
        """Refers to what has a name in a module. Constants have their own place in ``helpers``."""
        made = constant(value, lambda element: self._refer_to_code(element, label))
        if made is None:
            return self.refer_to_value(value, label)
        if type(value) not in _CONSTANTS and not isinstance(type(value), enum.EnumMeta):
            return made
        label = self._label(label, space, f"constant {name}")
        self.helpers[label] = made
        return digest("constant", label)

    def undefined(self, space: object, name: str, label: str) -> str:
        """Notes a global that is not there, and gives its label."""
        label = self._label(label, space, f"constant {name}")
        self.helpers[label] = digest("undefined")
        return label

    def add_names(self, names: Iterable[str]) -> None:
        """Notes names that reached code uses as attributes."""
        self._names.update(dict.fromkeys(names))

    def add_space(self, name: str, place: str, value: Any) -> str:
        """Has names looked up in a module or function, and gives the label of what is found."""
        label = self._label(name, value, "space")
        self._spaces.append(_Space(label, place, value))
        return label

    def warn(self, text: str) -> None:
        """Tells the user something, once for each look."""
        self.warnings[text] = None

    def _look_in_spaces(self) -> bool:
        """Follows names that occur in reached code as attributes in all reached modules.

        Which object has the attribute is not known before the code runs: so each may.
        """
        names = list(self._names)
        for space in self._spaces:
            for name in names[space.seen :]:
                value = space.find(name)
                if value is MISSING:
                    continue
                if space.items.get(name, MISSING) is value:
                    self.watched.item(space.items, name, value)
                else:
                    self.watched.attribute(space.owner, name, value)
                place = f"{space.place}.{name}"
                space.edges[name] = self.named(space.items, name, place, value)
            space.seen = len(names)
        return bool(self._queue) or len(self._names) > len(names)

    def _node(self, value: object, name: str, describe: Callable[[], list[bytes]]) -> bytes:
        new = ("node", id(value)) not in self._labels
        label = self._label("" if value is self._root else name, value, "node")
        if new:
            self._queue.append((label, describe))
        return digest("node", label)

    def _label(self, name: str, value: object, kind: str) -> str:
        """Gives an object its label: its name, with a number if another one has that name."""
        key = (kind, id(value))
        label = self._labels.get(key)
        if label is None:
            count = self._taken[name] = self._taken.get(name, 0) + 1
            label = name if count == 1 else f"{name}#{count}"
            self._labels[key] = label
            self._alive.append(value)
        return label

    def owner(self, module: object) -> Owner:
        """Tells whose a module is, and notes a package's version."""
        owner = owner_of(module) if isinstance(module, str) else PROJECT
        if owner.kind == "package":
            self.helpers[f"package {owner.name}"] = digest("version", owner.version)
        return owner

    def _extension(self, module: types.ModuleType) -> None:
        self._library(f"extension {module.__name__}", file_of(module) or "")

    def _library(self, name: str, path: str) -> None:
        made, failure = library_digest(path)
        self.helpers[name] = made
        if failure is not None:
            self.warn(failure)


class _Space:
    """A module, or a function with attributes, in which names are looked up."""

    __slots__ = ("edges", "items", "label", "lazy", "owner", "place", "seen")

    def __init__(self, label: str, place: str, owner: Any) -> None:
        self.label, self.place, self.owner = label, place, owner
        self.items: dict[str, object] = vars(owner)
        self.lazy = issubclass(type(owner), types.ModuleType) and "__getattr__" in self.items
        self.seen = 0
        self.edges: dict[str, bytes] = {}

    def find(self, name: str) -> object:
        if name in _OF_MODULES or name == "__wrapped__":
            return MISSING
        value = self.items.get(name, MISSING)
        if value is MISSING and self.lazy:
            try:
                value = getattr(self.owner, name)
            except Exception:
                value = MISSING
        return value
