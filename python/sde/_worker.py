"""A worker process of `memory.map`: it computes points that its parent sends, in a store of its own opening.

It begins with the parent's `sys.path`, not with the parent's script. When the parent closes the connection, or has
gone, the worker gives up what it is at, saves, and ends.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from . import _code, _memory, _pickling, _sde


is_worker = False
"""Whether this process is a worker."""
_OTHER, _LATE = object(), object()
"""Stand for the result of a point that has another key here, and of one that is not begun: the time is up."""
_UNMADE: dict[int, tuple[Any, ...]] = {id(_OTHER): ("other",), id(_LATE): ("late",)}


class _Worker:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.received: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.is_busy = False
        self.is_closed = False
        self.process = os.getpid()
        self.main = threading.main_thread().ident or 0

    def read(self) -> None:
        """Takes messages until the parent has closed; then interrupts what the main thread is at."""
        try:
            while True:
                self.received.put(self.connection.recv_bytes())
        except (EOFError, OSError):
            self.is_closed = True
            self.received.put(None)
            if self.is_busy:
                signal.pthread_kill(self.main, signal.SIGINT)

    def interrupted(self, *_: object) -> None:
        """Handles SIGINT: only users' code is interrupted, never the saving."""
        if self.is_busy:
            raise KeyboardInterrupt

    def guarded(self, message: bytes, what: Any) -> tuple[Any, ...]:
        """Runs users' code, and gives the message for the parent."""
        self.is_busy = True
        try:
            if self.is_closed:
                raise KeyboardInterrupt
            value = what(pickle.loads(message))
            if os.getpid() != self.process:
                raise SystemExit
            answer = _UNMADE.get(id(value)) or ("value", _pickling.dumps(value))
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            if os.getpid() != self.process:  # the function forked: one answer is the parent's to send
                raise
            answer = _raised(raised)
        finally:
            self.is_busy = False
        return answer

    def serve(self) -> None:
        message = self.received.get()
        if message is None:
            return
        made: list[_memory.CachedFunction[..., Any]] = []
        answer = self.guarded(message, lambda setup: made.append(function_of(setup)))
        self.connection.send_bytes(pickle.dumps(("ready" if made else "broken", *answer[1:])))
        while made and (message := self.received.get()) is not None:
            answer = self.guarded(message, lambda point: _computed(made[0], *point))
            self.connection.send_bytes(pickle.dumps(answer))


def _computed(function: _memory.CachedFunction[..., Any], key: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of a point, if it is the same call as in the parent."""
    if function.key(*args, **named) != key:
        return _OTHER
    # Somebody may have told this process alone to stop.
    if function._memory.time_left() == 0 and not function.is_cached(*args, **named):
        return _LATE
    return function(*args, **named)


def _raised(raised: BaseException) -> tuple[Any, ...]:
    """The message of an exception, with its text for a parent that can't make it again."""
    text = "".join(traceback.format_exception(raised))
    short = "".join(traceback.format_exception_only(raised)).strip()
    try:
        pickled = _pickling.dumps(raised)
        pickle.loads(pickled)
    except Exception:
        pickled = b""
    return "raised", pickled, short, text


def function_of(setup: dict[str, Any]) -> _memory.CachedFunction[..., Any]:
    """The function of the parent, whose calls have the parent's keys.

    Raises:
        sde.Error: If the code or a global has another value here than in the parent.
    """
    function: _memory.CachedFunction[..., Any] = pickle.loads(setup["function"])
    memory = _pickling.memory_at(setup["location"], setup["mmap_mode"], setup["verbose"])
    code = _code.code_of(function.func, function._options["uses"])
    here = described(code)
    differing = sorted(
        name
        for name in here.keys() | setup["code"].keys()
        if here.get(name) != setup["code"].get(name)
    )
    # What is in the parent's script has come by value, so it is the parent's whatever its digest.
    others = [name for name in differing if not name.startswith(("code __main__.", "own __main__."))]
    if others:
        names = ", ".join(name.partition(" ")[2] for name in others[:3])
        raise _sde.Error(
            f"a worker process would compute {code.name} with another {names} than this program has: a file was "
            "edited since it was imported, or a value was set at run time. Start the program anew, pass the value "
            "as an argument, or use processes=1"
        )
    if not differing and function._memory.location == memory.location:
        return function
    fixed = (setup["own"], sorted(setup["helpers"].items()), sorted(code.values.items()), _sde.Watched([]))
    return type(function)._made(memory, function.func, function._options, fixed)


def described(code: _code.Code) -> dict[str, bytes]:
    """The digests of all parts of a function's code, by kind and name."""
    described = {f"own {code.name}": code.own}
    described |= {f"code {name}": digest for name, digest in code.helpers.items()}
    described |= {f"value {name}": bytes(_sde.digest(value)) for name, value in code.values.items()}
    return described


def main(descriptor: int) -> None:
    """Runs a worker on a connection that the parent has given, and ends the process."""
    global is_worker
    is_worker = True
    worker = _Worker(Connection(descriptor))
    signal.signal(signal.SIGINT, worker.interrupted)
    threading.Thread(target=worker.read, daemon=True).start()
    try:
        worker.serve()
    except (KeyboardInterrupt, OSError):
        pass
    _memory._finish()
