"""Who owns a module: the user's project, Python itself, or an installed package.

A module is the project's unless it is proved to be another's, so that nothing is left out.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ._code_bytes import digest

_SITES = frozenset({"site-packages", "dist-packages"})
OURSELVES = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a module is. ``name`` and ``version`` are a package's, else empty."""

    kind: str  # "project", "python" or "package"
    name: str = ""
    version: str = ""


PROJECT = Owner("project")
_PYTHON = Owner("python")
_owners: dict[tuple[str, str | None], Owner] = {}


def module_name(name: object) -> str:
    """Gives a module's name; a worker process has the parent's script under another one."""
    return "__main__" if name == "__mp_main__" else str(name or "")


def owner_of(name: str) -> Owner:
    """Tells whose the module of a name is, without importing it.

    The first question for a package reads the list of its files: about a millisecond.

    >>> owner_of("os.path").kind, owner_of("__main__").kind
    ('python', 'project')
    """
    if module_name(name) in ("__main__", ""):
        return PROJECT
    top = name.partition(".")[0]
    if top == OURSELVES:
        return _PYTHON  # SDE keeps what its own functions mean, or changes the format of keys
    part, file = _first_file(name)
    found = _owners.get((part, file))
    if found is None:
        found = _owners[part, file] = _find(part, top, file)
    return found


def _first_file(name: str) -> tuple[str, str | None]:
    """Finds the outermost package of a module that has a file: a namespace has none."""
    parts = name.split(".")
    path = None
    for count in range(1, len(parts) + 1):
        part = ".".join(parts[:count])
        file, path = _file_and_path(part, path)
        if file is not None or path is None:
            return part, file
    return name, None


def _file_and_path(name: str, path: object) -> tuple[str | None, object]:
    module = sys.modules.get(name)
    if module is not None:
        return file_of(module), attributes(module).get("__path__")
    spec = find_spec(name, path)
    if spec is None:
        return None, None
    file = spec.origin if spec.has_location else None
    return file, spec.submodule_search_locations


def find_spec(name: str, path: object) -> importlib.machinery.ModuleSpec | None:
    """Finds a module without importing what it lies in. ``path`` is that package's."""
    for finder in list(sys.meta_path):
        try:
            spec = finder.find_spec(name, path, None)  # type: ignore[arg-type]
        except Exception:  # a finder of somebody else's
            continue
        if spec is not None:
            return spec
    return None


def attributes(module: object) -> dict[str, object]:
    """Gives what a module has, without what its ``__getattr__`` makes up or fails at."""
    return getattr(module, "__dict__", None) or {}


def file_of(module: ModuleType) -> str | None:
    """Gives the path of a module's file, or None if the module has none."""
    file = attributes(module).get("__file__")
    return file if isinstance(file, str) else None


def is_extension(module: object) -> bool:
    """Tells whether a module was loaded from a shared library."""
    file = file_of(module) if isinstance(module, ModuleType) else None
    return file is not None and file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


def _find(part: str, top: str, file: str | None) -> Owner:
    if file is None:
        return _PYTHON if top in sys.stdlib_module_names else PROJECT
    path = Path(os.path.realpath(file))
    depth = part.count(".") + (2 if path.stem == "__init__" else 1)
    root = Path(file).absolute()
    for _ in range(depth):
        root = root.parent
    if not _SITES & set(path.parts) and _in_library(path):
        return _PYTHON
    return _installed(part.replace(".", "/"), root) or PROJECT


def _in_library(path: Path) -> bool:
    for key in ("stdlib", "platstdlib"):
        library = sysconfig.get_path(key)
        if library and path.is_relative_to(os.path.realpath(library)):
            return True
    return False


def _installed(inside: str, root: Path) -> Owner | None:
    """Finds the distribution in a folder that owns a module. ``inside`` is its path there."""
    by_name = importlib.metadata.distributions(name=inside.partition("/")[0], path=[str(root)])
    for distributions in (by_name, importlib.metadata.distributions(path=[str(root)])):
        for distribution in distributions:
            if _owns(distribution, inside, root):
                return _package(distribution)
    return None


def _owns(distribution: importlib.metadata.Distribution, inside: str, root: Path) -> bool:
    record = distribution.read_text("RECORD")
    if record is not None:
        return any(line.startswith((inside + "/", inside + ".")) for line in record.splitlines())
    # Without a record, a project that is built in place looks like one that is installed.
    names = (distribution.read_text("top_level.txt") or "").split()
    return root.name in _SITES and inside.partition("/")[0] in names


def _package(distribution: importlib.metadata.Distribution) -> Owner:
    """Names a distribution. One that is installed from a folder or file of the user's counts by
    its files: people install such a one again and again under one version."""
    name, version = distribution.metadata["Name"], distribution.version
    origin = distribution.read_text("direct_url.json")
    if origin is None:
        return Owner("package", name, version)
    if json.loads(origin).get("dir_info", {}).get("editable"):
        return PROJECT
    files = [
        line.rpartition(",")[0]  # path and hash, without the size
        for line in (distribution.read_text("RECORD") or "").splitlines()
        if "=" in line and not line.startswith("..") and ".dist-info/" not in line
    ]
    return Owner("package", name, f"{version}, {digest(*sorted(files)).hex()}")
