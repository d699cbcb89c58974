"""Worker processes, as their parent sees them."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from . import _code, _pickling, _sde

if TYPE_CHECKING:
    from ._function import CachedFunction

_PATIENCE = 10.0
"""The seconds that workers have to save after Ctrl-C."""


class Setup:
    """What a worker is told at first: the function, and what its code is in this process."""

    def __init__(self, function: CachedFunction[..., Any]) -> None:
        from ._worker import described

        code = _code.code_of(function.func, function._options["uses"])
        memory = function._memory
        left = memory.time_left()
        # When the job ends, so that no worker asks the batch system, or counts from its own beginning.
        limit = "none" if left is None else f"@{int(time.time() + left)}"
        self.environment = {**os.environ, "SDE_TIME_LIMIT": limit}
        self.message = _pickling.dumps(
            {
                "function": _pickled(function),
                "location": memory.location,
                "mmap_mode": memory.mmap_mode,
                "verbose": memory.verbose,
                "own": code.own,
                "helpers": code.helpers,
                "code": described(code),
            }
        )


def _pickled(function: CachedFunction[..., Any]) -> bytes:
    try:
        return _pickling.dumps(function)
    except Exception as error:
        raise _sde.Error(
            f"{function.__qualname__} can't go to worker processes ({type(error).__name__}: {error}); "
            "move it with what it uses into a module, which workers import, or leave `processes` out"
        ) from error


class Worker:
    """A worker process. It is told one point at a time."""

    def __init__(self, setup: Setup) -> None:
        ours, theirs = socket.socketpair()
        start = (
            f"import sys; sys.path[:] = {sys.path!r}; from sde._worker import main; main({theirs.fileno()})"
        )
        command = [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", start]  # type: ignore[attr-defined]
        with theirs:
            # In a group of its own: Ctrl-C goes to the parent, which ends its workers.
            self.process = subprocess.Popen(
                command,
                env=setup.environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
        self.connection = Connection(ours.detach())
        self.task: Any = None
        self.is_ready = False
        # The connection stays open while a process that the worker started has it.
        self.sources: list[Any] = [self.connection]
        with contextlib.suppress(OSError, AttributeError):
            self.sources.append(os.pidfd_open(self.process.pid))
        self._send(setup.message)

    def give(self, task: Any, point: Any) -> None:
        """Sends a point; raises if it can't be pickled."""
        message = _pickling.dumps(point)
        self.task = task
        self._send(message)

    def _send(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # it has died, which is heard next
            self.connection.send_bytes(message)

    def received(self) -> tuple[Any, ...] | None:
        """The next message; `None` if the worker has died."""
        with contextlib.suppress(EOFError, OSError):
            if self.connection.poll():
                message: tuple[Any, ...] = pickle.loads(self.connection.recv_bytes())
                return message
        return None

    def ended(self) -> str:
        """How the worker died."""
        self.close()
        code = self.process.wait()
        by = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        return f"worker process {self.process.pid} {by}"

    def close(self) -> None:
        """Tells the worker to save and end."""
        self.connection.close()
        for descriptor in self.sources[1:]:
            os.close(descriptor)
        self.sources.clear()


def exception_of(worker: Worker, message: list[Any]) -> BaseException:
    """The exception of a worker, or one with its text, with the worker's traceback as a note."""
    pickled, short, text = message
    raised: BaseException = _sde.Error(f"a worker process failed: {short}")
    if pickled:
        with contextlib.suppress(Exception):
            raised = pickle.loads(pickled)
    raised.add_note(f"In worker process {worker.process.pid}:\n{text}")
    return raised


def close(workers: list[Worker], is_interrupted: bool) -> list[str]:
    """Ends workers, which save first, and tells which of them failed. After an interrupt they have 10 s."""
    try:
        for worker in workers:
            worker.close()
        end = time.monotonic() + _PATIENCE
        for worker in workers:
            worker.process.wait(max(0.0, end - time.monotonic()) if is_interrupted else None)
    except subprocess.TimeoutExpired:
        pass
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()
    return [worker.ended() for worker in workers if worker.process.returncode != 0]
