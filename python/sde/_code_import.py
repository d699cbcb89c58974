"""Modules that functions import, and shared libraries of the project."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ._code_bytes import digest
from ._code_owner import attributes, find_spec

_libraries: dict[str, bytes] = {}


def imported_name(name: str, level: int, space: dict[str, object]) -> str | None:
    """Gives the full name of a module that a function imports, or None if there can't be one.

    ``level`` is the number of dots, ``space`` the globals of the function.
    """
    if level == 0:
        return name
    package = space.get("__package__")
    if not isinstance(package, str):
        package = str(space.get("__name__", ""))
        if "__path__" not in space:
            package = package.rpartition(".")[0]
    try:
        return importlib.util.resolve_name("." * level + name, package)
    except ImportError:
        return None


def import_project(name: str) -> tuple[ModuleType | None, str | None]:
    """Imports a module of the project, as the function would when it runs.

    Gives the module or None, and why the import failed if there is a module to import.
    """
    module = sys.modules.get(name)
    if module is not None:
        return module, None
    parent = sys.modules.get(name.rpartition(".")[0])
    if "." in name and parent is None:
        return None, None
    if find_spec(name, attributes(parent).get("__path__")) is None:
        return None, None
    try:
        return importlib.import_module(name), None
    except (Exception, SystemExit) as error:
        return None, f"{type(error).__name__}: {error}"


def library_digest(path: str) -> tuple[bytes, str | None]:
    """Gives the digest of a shared library's file, and a warning if it can't be read.

    The file is read once: a process goes on with the library that it has loaded.
    """
    if path not in _libraries:
        try:
            with Path(path).open("rb") as file:
                content = hashlib.file_digest(file, "blake2b").digest()
        except OSError as error:
            return digest("unreadable"), (
                f"The library {path!r} counts by its name, not by its content: "
                f"reading it failed ({error})."
            )
        _libraries[path] = digest("file", content)
    return _libraries[path], None
