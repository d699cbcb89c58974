"""Runs of other programs, remembered by all that they were given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _sde

_Path = str | os.PathLike[str]
_Content = _Path | bytes


class CommandError(_sde.Error):
    """A command that gave no result.

    Attributes:
        key: The key of the run, if it came so far.
        status: The exit status that a shell would show: the program's own, 124 after the time limit, 128 + n after
            signal n, 126 or 127 if the program can't be run or found, 125 for all else.
    """

    key: str | None
    status: int

    def __init__(self, text: str, key: str | None, status: int) -> None:
        super().__init__(text)
        self.key, self.status = key, status

    def __reduce__(self) -> Any:
        return CommandError, (str(self), self.key, self.status)


class CommandRefused(CommandError):
    """A command or a rule that makes no sense, or whose result would depend on what nobody declared.

    The message says what to write.
    """


class CommandEnded(CommandError):
    """A run that did not end by itself: a signal, the time limit, a full disk."""


class CommandFailed(CommandError):
    """A run that ended by itself, and fails by its rules.

    Attributes:
        rules: The rules by which it fails, with what was found.
        ran: What it gave.
    """

    rules: list[str]
    ran: Ran


class CommandUntraced(CommandFailed):
    """A run that passes, and is not remembered: it read what nobody declared, and `trace="strict"` was asked for."""


class Ran:
    """What a run of a command gave.

    Attributes:
        app: The name under which `sde ls` and `memory.table` have it.
        key: The key of the run.
        was_computed: Whether this call ran the program.
        status: The exit status.
        values: What the rules of `get` took, by name: an `int`, a `float` or a text.
        outputs: The paths of the output files in the run's folder, sorted.
        attempts: Why attempts before it failed, with `retry`.
        is_resumed: Whether it went on from files that an attempt before it left, with `carry`.
        undeclared: Files that it wrote and nobody declared, if this call ran it. They are gone.
        left_behind: Processes that it left behind and that were ended, if this call ran it.
        unkept: Outputs that could not be stored, and why, if this call ran it.
        unshown: What could not be passed on of what it printed, with `echo`.
        traced: With `trace`, whether all that it read is declared, and what was not, as a text.

    Example:
        >>> import sde
        >>> ran = sde.command("sh", "-c", "echo 3 > list", outputs=["list"]).run(sde.open("scan.sde"))
        >>> ran.outputs, ran.read("list")
        (['list'], b'3\\n')
        >>> ran.put("list", "copy"); ran.put_all("all")
        >>> open("copy").read() == open("all/list").read()
        True
    """

    def __init__(self, ran: _sde.RanCommand) -> None:
        self._ran = ran
        self.app: str = ran.app
        self.key: str = ran.key
        self.was_computed: bool = ran.was_computed
        self.status: int = ran.status
        self.values: dict[str, Any] = ran.values
        self.outputs: list[str] = ran.outputs
        self.attempts: list[str] = ran.attempts
        self.is_resumed: bool = ran.is_resumed
        self.undeclared: list[str] = ran.undeclared
        self.left_behind: list[str] = ran.left_behind
        self.unkept: list[str] = ran.unkept
        self.unshown: str | None = ran.unshown
        self.traced: tuple[bool, str] | None = ran.traced

    def __getitem__(self, name: str) -> Any:
        """A value that a rule of `get` took."""
        return self.values[name]

    @property
    def stdout(self) -> str:
        """What it printed. Bytes that are no UTF-8 are replaced; `stdout_bytes` has them.

        Raises:
            OSError: If it can't be read.
        """
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """What it printed on its standard error, as `stdout`."""
        return self.stderr_bytes.decode(errors="replace")

    @property
    def stdout_bytes(self) -> bytes:
        """What it printed, byte by byte."""
        return self._ran.stdout()

    @property
    def stderr_bytes(self) -> bytes:
        """What it printed on its standard error, byte by byte."""
        return self._ran.stderr()

    def read(self, output: str) -> bytes:
        """What an output file holds.

        Raises:
            OSError: If there is none of this name, or it can't be read.
        """
        return self._ran.read(output)

    def put(self, output: str, path: _Path) -> None:
        """Writes an output file to a path, in one step, with its mode. A file that holds it already is left alone.

        Raises:
            OSError: If there is no such output, or it can't be read or written.
        """
        self._ran.put(output, os.fspath(path))

    def put_all(self, folder: _Path = ".") -> None:
        """Writes all output files below a folder. Each is written beside its place first; then all get their names.

        Raises:
            OSError: If one can't be read or written; nothing is changed then.
        """
        self._ran.put_all(os.fspath(folder))

    def __repr__(self) -> str:
        return f"<{self.app} [{self.key[:12]}] status {self.status}, {self.values}>"


class Command:
    """A run of another program. `sde.command` and `memory.command` make it.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> listing = memory.command("sh", "-c", "echo 3 > list", outputs=["list"])
        >>> print(listing.why())
        [...] would be computed: it was not run before
        >>> ran = listing.run()
        >>> ran.key == listing.key(), ran.read("list")
        (True, b'3\\n')
    """

    def __init__(self, memory: Any, program: str, args: tuple[_Path, ...], options: dict[str, Any]) -> None:
        self._memory = memory
        self._said = (program, args)
        self._command = _sde.Command(program, [os.fspath(arg) for arg in args], options)

    def run(self, memory: Any = None) -> Ran:
        """Gives the remembered run, or runs the program in a fresh folder; and judges it by the rules.

        A remembered run that fails by a rule by which it failed when it was made is made again. If it fails by others
        only, nothing runs, and the error names them: the expression may be mistyped. Other threads of Python go on
        meanwhile. Ctrl-C is passed on to the program; a second one sends it TERM, a third KILL.

        Args:
            memory: The store, for a command of `sde.command`.

        Raises:
            sde.CommandError: If the command is refused, can't be run, did not end by itself, or fails by its rules.
        """
        ran, wrong = self._command.run(self._store(memory))
        if ran is None:
            raise _error(*wrong)
        return Ran(ran)

    def key(self, memory: Any = None) -> str:
        """The key of the run, as the program `sde` takes it. It runs nothing.

        Raises:
            sde.CommandError: If the command is refused, or the program can't be found.
        """
        return self._peek(memory)[0]

    def why(self, memory: Any = None) -> str:
        """What `run` would do, and why: what differs from the nearest remembered run. It runs nothing.

        Raises:
            sde.CommandError: If the command is refused, or the program can't be found.
        """
        return self._peek(memory)[1]

    def _peek(self, memory: Any) -> tuple[str, str]:
        told, wrong = self._command.peek(self._store(memory))
        if told is None:
            raise _error(*wrong)
        return told

    def _store(self, memory: Any) -> Any:
        memory = self._memory if memory is None else memory
        if memory is None:
            raise TypeError("which store? Use memory.command(...), or give it: sde.command(...).run(memory)")
        return memory._store

    def __repr__(self) -> str:
        program, args = self._said
        return f"<command {' '.join([program, *map(str, args)])}>"


def _error(kind: str, text: str, key: str | None, status: int, rules: list[str], ran: Any) -> CommandError:
    kinds = {
        "refused": CommandRefused,
        "ended": CommandEnded,
        "failed": CommandFailed,
        "untraced": CommandUntraced,
    }
    error = kinds.get(kind, CommandError)(text, key, status)
    if isinstance(error, CommandFailed):
        error.rules, error.ran = rules, Ran(ran)
    return error


def command(
    program: _Path,
    *args: _Path,
    inputs: Mapping[str, _Content] | Iterable[_Path] = (),
    trees: Iterable[_Path] = (),
    stdin: _Content | None = None,
    outputs: Iterable[str] = (),
    compare: Iterable[str] = (),
    env: Mapping[str, str | None] | None = None,
    pass_env: Iterable[str] = (),
    uses: Iterable[_Path] = (),
    texts: Iterable[str] = (),
    get: Mapping[str, str] | None = None,
    require: Iterable[str] = (),
    reject: Iterable[str] = (),
    ok_status: Iterable[int] = (),
    timeout: float | None = None,
    grace: float | None = None,
    retry: int = 0,
    carry: Iterable[str] = (),
    carry_every: float | None = None,
    name: str | None = None,
    folder: _Path | None = None,
    scratch: _Path | None = None,
    program_is: str | None = None,
    image: _Path | None = None,
    trace: str | None = None,
    link: bool = False,
    echo: bool = False,
    keep_failures: bool = False,
    again: bool = False,
    rehash: bool = False,
    _memory: Any = None,
) -> Command:
    """A run of another program, which is remembered by all that it was given, as by `sde exec`.

    The key has the digests of the program, of its shared libraries and of all inputs, the arguments, the declared
    variables and the names of the outputs. Rules (`get`, `require`, `reject`, `ok_status`) are in no key. Not seen:
    files that a script reads besides, libraries that are loaded later, programs that it starts. An argument that is
    the relative path of a file is an input by itself. Expressions are those of Rust's crate `regex`, for a line;
    `FILE:` before one is for an output file.

    Args:
        program: A name that is looked for in `PATH`, or a path.
        args: The arguments.
        inputs: Files that it is given: the name in the run's folder, and the path of the file or its content as
            `bytes`; or only paths.
        trees: Folders that it is given.
        stdin: A file, or `bytes`, as its standard input, which is empty otherwise.
        outputs: Files, folders or patterns that it writes. One that begins with `?` need not be written.
        compare: Outputs of which two runs have the same bytes; if not, there is a warning.
        env: Variables, which count; `None` takes the value of this process.
        pass_env: Variables of this process that are passed on and don't count.
        uses: Programs, files or folders that it uses, which count by digest and are not copied.
        texts: Arguments, or paths in one, that are just text.
        get: Values to take out of what it writes: a name, and an expression with a group. The last match counts. With
            `?` before the name it need not be there.
        require: Expressions that must match a line of what it prints.
        reject: Expressions that must match none.
        ok_status: Exit statuses that are no failure, in place of 0.
        timeout: The seconds after which it is ended.
        grace: The seconds between TERM and KILL: 10 unless given.
        retry: How often a run that fails is run again.
        carry: Files, such as checkpoints, that an attempt that ended early leaves to the next one.
        carry_every: The seconds after which they are copied: 600 unless given.
        name: The name of the app, in place of the program's.
        folder: Where relative paths are, in place of the current folder.
        scratch: Where the run's folder is made, in place of `TMPDIR`.
        program_is: A text such as `"xtb 6.5.1"` in place of the digests of program and libraries.
        image: A container's image, in which it runs by apptainer.
        trace: `"warn"` or `"strict"`: run under strace, to see what was read and not declared.
        link: Input files are linked, not copied.
        echo: What it prints is passed on as it comes.
        keep_failures: A run that failed before is given as it is.
        again: The program runs even if the run is remembered.
        rehash: Programs and libraries are read anew.

    Raises:
        ValueError: If an option makes no sense.

    Example:
        >>> import sde
        >>> memory = sde.open("scan.sde")
        >>> count = memory.command("wc", "-l", "lines", inputs={"lines": b"1\\n2\\n"}, get={"lines": r"(\\d+)"})
        >>> count.run()["lines"]
        2
    """
    said: dict[str, Any] = {
        "name": name,
        "folder": folder,
        "scratch": scratch,
        "inputs": _inputs(inputs),
        "trees": _many("trees", trees),
        "stdin": stdin,
        "env": list(env.items()) if env is not None else None,
        "pass_env": _many("pass_env", pass_env),
        "uses": _many("uses", uses),
        "texts": _many("texts", texts),
        "program_is": program_is,
        "image": image,
        "trace": trace,
        "outputs": _many("outputs", outputs),
        "compare": _many("compare", compare),
        "ok_status": list(ok_status),
        "require": _many("require", require),
        "reject": _many("reject", reject),
        "get": list(get.items()) if get is not None else None,
        "timeout": timeout,
        "grace": grace,
        "retry": retry,
        "carry": _many("carry", carry),
        "carry_every": carry_every,
        "link": link,
        "echo": echo,
        "keep_failures": keep_failures,
        "again": again,
        "rehash": rehash,
    }
    # An option that is `False` or empty counts as left out; `timeout=0` does not.
    options = {
        option: value for option, value in said.items() if value is not None and value is not False and value != []
    }
    return Command(_memory, os.fspath(program), args, options)


def _many(name: str, values: Iterable[_Path]) -> list[str]:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name}={values!r} is one text: write [{values!r}]")
    return [os.fspath(value) for value in values]


def _inputs(inputs: Mapping[str, _Content] | Iterable[_Path]) -> list[tuple[str | None, _Content]]:
    if isinstance(inputs, Mapping):
        return [(name, content) for name, content in inputs.items()]
    return [(None, path) for path in _many("inputs", inputs)]
