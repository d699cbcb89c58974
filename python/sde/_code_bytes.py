"""Digests of constants and of code objects: what a function's own bytes are.

Nothing here looks outside the object that it is given; ``_code`` follows what a function reaches.
"""

from __future__ import annotations

import dis
import hashlib
import struct
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

# Flags that say how the text was written, and not what runs.
_CO_FUTURE_ANNOTATIONS = 0x1000000
_CO_HAS_DOCSTRING = 0x4000000
_TEXT_FLAGS = _CO_FUTURE_ANNOTATIONS | _CO_HAS_DOCSTRING

# What a class body stores about its text. The order of the static attributes is that of a set.
_TEXT_NAMES = frozenset({"__doc__", "__firstlineno__", "__static_attributes__"})

_STORED_NAMES = frozenset({"STORE_NAME", "DELETE_NAME"})
_ASSIGNED_GLOBALS = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_ATTRIBUTES = frozenset(
    {"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "IMPORT_FROM"}
)
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})

# What the compiler puts in by line, not by meaning: see ``_instructions``.
_NOTHING = frozenset({"NOP", "EXTENDED_ARG"})
_PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST_BORROW", "LOAD_FAST_BORROW"),
}

# A tuple that is nested deeper is no constant: it is keyed as a value.
_DEEPEST_CONSTANT = 50


def digest(*fields: str | bytes) -> bytes:
    """Gives the 32 bytes of a sequence of fields.

    Each field goes in with its type and length, so no two different sequences encode alike.

    >>> digest("a", "bc") == digest("ab", "c")
    False
    """
    state = hashlib.blake2b(digest_size=32)
    for field in fields:
        if isinstance(field, str):
            field, tag = field.encode("utf-8", "surrogatepass"), b"s"
        else:
            tag = b"b"
        state.update(tag + struct.pack("<Q", len(field)))
        state.update(field)
    return state.digest()


def constant(
    value: Any, other: Callable[[object], bytes | None] | None = None, depth: int = 0
) -> bytes | None:
    """Gives the digest of an immutable value, or None if the value is not one.

    Types are exact: ``True``, ``1`` and ``1.0`` differ, and so do ``0.0`` and ``-0.0``. Of an
    element that is of no built-in type, ``other`` gives the digest.

    >>> constant(0.0) == constant(-0.0), constant([1])
    (False, None)
    """
    kind = type(value)
    if value is None or value is Ellipsis or value is NotImplemented:
        return digest("singleton", repr(value))
    if kind is bool:
        return digest("bool", b"\1" if value else b"\0")
    if kind is int:
        return digest("int", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    if kind is float:
        return digest("float", struct.pack("<d", value))
    if kind is complex:
        return digest("complex", struct.pack("<dd", value.real, value.imag))
    if kind is str or kind is bytes:
        return digest(kind.__name__, value)
    if kind is tuple or kind is frozenset:
        return _elements(value, other, depth)
    if kind is CodeType:
        return read(value).digest
    return None if other is None else other(value)


def _elements(
    value: tuple[object, ...] | frozenset[object], other: Callable[[object], bytes | None] | None, depth: int
) -> bytes | None:
    if depth == _DEEPEST_CONSTANT:
        return None
    parts = []
    for element in value:
        part = constant(element, other, depth + 1)
        if part is None:
            return None
        parts.append(part)
    if type(value) is frozenset:
        parts.sort()  # the order in a set differs from process to process
    return digest(type(value).__name__, *parts)


@dataclass(frozen=True, slots=True)
class Read:
    """A code object with those nested in it: its digest, and the names it uses."""

    digest: bytes
    globals: tuple[str, ...]
    attributes: tuple[str, ...]
    imports: tuple[tuple[str, int, tuple[str, ...]], ...]
    assigned: tuple[str, ...]


class _Names:
    """Names in the order in which the code uses them."""

    def __init__(self) -> None:
        self.globals: dict[str, None] = {}
        self.attributes: dict[str, None] = {}
        self.imports: dict[tuple[str, int, tuple[str, ...]], None] = {}
        self.assigned: dict[str, None] = {}

    def use(self, at: int, instructions: list[dis.Instruction]) -> None:
        operation, name = instructions[at].opname, instructions[at].argval
        if operation in _STORED_NAMES:
            return
        if operation in _ASSIGNED_GLOBALS:
            self.assigned[name] = None
        elif operation == "IMPORT_NAME":
            level, names = instructions[at - 2].argval, instructions[at - 1].argval
            self.imports[
                name,
                level if type(level) is int else 0,
                names if type(names) is tuple else (),
            ] = None
        elif operation in _GLOBALS:
            self.globals[name] = None
        elif operation in _ATTRIBUTES:
            self.attributes[name] = None
        else:  # an instruction of a later Python: either may be meant
            self.globals[name] = None
            self.attributes[name] = None

    def take(self, nested: Read) -> None:
        self.globals.update(dict.fromkeys(nested.globals))
        self.attributes.update(dict.fromkeys(nested.attributes))
        self.imports.update(dict.fromkeys(nested.imports))
        self.assigned.update(dict.fromkeys(nested.assigned))


# Code objects never change. They compare by content, so their addresses are the keys.
_reads: dict[int, tuple[weakref.ref[CodeType], Read]] = {}


def read(code: CodeType) -> Read:
    """Reads a code object: about 2 microseconds for each instruction, once in a process.

    What counts is what runs. Line numbers, file names, unused constants (docstrings) and what the
    interpreter notes in its own copy of the instructions do not.
    """
    kept = _reads.get(id(code))
    if kept is not None and kept[0]() is code:
        return kept[1]
    result = _read(code)
    key = id(code)
    _reads[key] = (weakref.ref(code, lambda _: _reads.pop(key, None)), result)
    return result


def _read(code: CodeType) -> Read:
    names = _Names()
    body = _instructions(code, names)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    made = digest(
        "code",
        code.co_name,
        struct.pack("<4q", *counts, code.co_flags & ~_TEXT_FLAGS),
        digest(*code.co_names),
        digest(*code.co_varnames),
        digest(*code.co_cellvars),
        digest(*code.co_freevars),
        body,
    )
    return Read(
        made,
        tuple(names.globals),
        tuple(names.attributes),
        tuple(names.imports),
        tuple(names.assigned),
    )


def _instructions(code: CodeType, names: _Names) -> bytes:
    """Encodes the instructions and the exception table as the text's layout does not change them.

    - A constant stands in place of its number, which an added docstring shifts.
    - Two instructions in one, which the compiler makes of neighbours on one line, are two again.
    - Instructions that do nothing are left out, so jumps go to a number in what remains.
    """
    bytecode = dis.Bytecode(code)
    instructions = list(bytecode)
    kept = [i for i in instructions if i.opname not in _NOTHING]
    number, at = {}, 0
    for instruction in instructions:
        number[instruction.offset] = at
        if instruction.opname not in _NOTHING:
            at += 2 if instruction.opname in _PAIRS else 1
    number[len(code.co_code)] = at

    body = bytearray()
    for at, instruction in enumerate(kept):
        operation = instruction.opcode
        argument = -1 if instruction.arg is None else instruction.arg
        if operation in dis.hasconst and argument >= 0:
            body += struct.pack("<q", operation) + _loaded(code, kept, at, names)
        elif instruction.opname in _PAIRS:
            first, second = _PAIRS[instruction.opname]
            body += _encode(dis.opmap[first], argument >> 4)
            body += _encode(dis.opmap[second], argument & 15)
        elif operation in dis.hasjrel or operation in dis.hasjabs:
            body += _encode(operation, number[instruction.argval])
        else:
            body += _encode(operation, argument)
        if operation in dis.hasname:
            names.use(at, kept)
    table = bytearray()
    for entry in bytecode.exception_entries:  # type: ignore[attr-defined]
        places = (number[entry.start], number[entry.end], number[entry.target])
        table += struct.pack("<5q", *places, entry.depth, entry.lasti)
    return digest(bytes(body), bytes(table))


def _encode(operation: int, argument: int) -> bytes:
    return struct.pack("<qq", operation, argument)


def _loaded(code: CodeType, kept: list[dis.Instruction], at: int, names: _Names) -> bytes:
    """Gives the digest of the constant that an instruction loads."""
    after = kept[at + 1] if at + 1 < len(kept) else None
    if after and after.opname == "STORE_NAME" and after.argval in _TEXT_NAMES:
        return digest("text")
    return _code_constant(code.co_consts[kept[at].arg or 0], names)


def _code_constant(value: object, names: _Names) -> bytes:
    if isinstance(value, CodeType):
        nested = read(value)
        names.take(nested)
        return nested.digest
    made = constant(value)
    if made is None:  # a slice, from Python 3.14 on, or what tools that rewrite code put there
        kind = type(value)
        return digest("object", kind.__module__, kind.__qualname__, repr(value))
    return made
