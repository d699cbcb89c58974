"""Runs of other programs: one key with the program ``sde``, values, files, errors, Ctrl-C."""

from __future__ import annotations

import os
import pickle
import signal
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

import sde

from programs import begin, end
from sde_program import sde_program


@pytest.fixture
def memory(tmp_path: Path) -> sde.Memory:
    return sde.open(tmp_path / "runs.sde")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that sums the lines of a file, and notes each of its runs."""
    path = tmp_path / "sum.sh"
    path.write_text(
        f"#!/bin/sh\necho ran >> {tmp_path}/runs\n"
        "n=0; while read -r line; do n=$((n + line)); done < numbers\n"
        'echo "TOTAL $n"; echo "to stderr" >&2; echo "$n" > total.txt; test "$n" -lt 100\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def runs(tmp_path: Path) -> int:
    path = tmp_path / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def asked(memory: Any, program: Path, numbers: bytes = b"1\n2\n", **options: Any) -> sde.Command:
    said: dict[str, Any] = dict(inputs={"numbers": numbers}, outputs=["total.txt"], get={"total": r"TOTAL (\d+)"})
    return memory.command(program, **{**said, **options})


def test_a_run_is_remembered_with_values_and_files(memory: sde.Memory, program: Path, tmp_path: Path) -> None:
    command = asked(memory, program)
    ran = command.run()
    assert ran.was_computed and ran.status == 0 and ran.values == {"total": 3} and ran["total"] == 3
    assert ran.stdout == "TOTAL 3\n" and ran.stderr_bytes == b"to stderr\n"
    assert ran.outputs == ["total.txt"] and ran.read("total.txt") == b"3\n"
    again = asked(memory, program).run()
    assert not again.was_computed and again.values == ran.values and again.stdout == ran.stdout
    assert again.key == ran.key == command.key() and runs(tmp_path) == 1
    again.put_all(tmp_path / "out")
    assert (tmp_path / "out" / "total.txt").read_text() == "3\n"
    again.put("total.txt", tmp_path / "other")
    assert (tmp_path / "other").read_text() == "3\n"
    assert asked(memory, program, b"4\n").run()["total"] == 4
    with pytest.raises(FileNotFoundError, match="no output"):
        again.read("none")
    assert [row["total"] for row in memory.table("sum.sh")] == [3, 4]


def test_a_store_may_be_given_at_the_run(memory: sde.Memory, program: Path) -> None:
    command = sde.command(program, inputs={"numbers": b"1\n"})
    assert command.run(memory).was_computed and not command.run(memory).was_computed
    assert "remembered" in command.why(memory) or command.why(memory)
    assert command.run(sde.Memory(None)).was_computed
    with pytest.raises(TypeError, match="which store"):
        command.run()


def test_the_program_sde_and_python_have_one_key(memory: sde.Memory, program: Path, tmp_path: Path) -> None:
    (tmp_path / "numbers").write_bytes(b"5\n6\n")
    options = [
        "-i", "numbers", "-o", "total.txt", "--get", r"total=TOTAL (\d+)", "--require", "TOTAL", "--env", "A=1",
        "--pass", "B", "--timeout", "1m", "--retry", "1",
    ]  # fmt: skip
    said: dict[str, Any] = dict(
        inputs=["numbers"], outputs=["total.txt"], get={"total": r"TOTAL (\d+)"}, require=["TOTAL"], env={"A": "1"},
        pass_env=["B"], timeout=60, retry=1, folder=tmp_path,
    )  # fmt: skip

    def by_sde(*args: str) -> None:
        environment = {**os.environ, "SDE_STORE": str(memory.location)}
        line = [sde_program(), "exec", *options, "--", str(program), *args]
        subprocess.run(line, check=True, capture_output=True, cwd=tmp_path, env=environment)

    by_sde("first")
    ran = memory.command(program, "first", **said).run()
    assert not ran.was_computed and ran["total"] == 11 and runs(tmp_path) == 1
    ran = memory.command(program, "second", **said).run()
    assert ran.was_computed and runs(tmp_path) == 2
    memory.checkpoint()
    by_sde("second")
    assert runs(tmp_path) == 2


def test_errors_have_their_types(memory: sde.Memory, program: Path, tmp_path: Path) -> None:
    with pytest.raises(sde.CommandFailed, match="status 1") as failed:
        asked(memory, program, b"200\n").run()
    error = failed.value
    assert error.status == 1 and error.key == error.ran.key and error.rules and error.ran.stdout == "TOTAL 200\n"
    assert isinstance(error, sde.CommandError) and isinstance(error, sde.Error)
    assert asked(memory, program, b"200\n", ok_status=[1]).run()["total"] == 200
    with pytest.raises(sde.CommandFailed, match="converged"):
        asked(memory, program, require=["converged"]).run()
    with pytest.raises(sde.CommandEnded) as ended:
        memory.command("sleep", "1000", timeout=0.1, grace=0.1).run()
    assert ended.value.status == 124 and ended.value.key
    with pytest.raises(sde.CommandRefused, match="uses|text"):
        memory.command("cat", str(program)).run()
    with pytest.raises(sde.CommandRefused):
        memory.command("echo", require=["("]).run()
    with pytest.raises(sde.CommandError) as missing:
        memory.command("no-such-program").run()
    assert missing.value.status == 127
    copied = pickle.loads(pickle.dumps(missing.value))
    assert (copied.status, str(copied)) == (127, str(missing.value))


def test_options_that_make_no_sense(memory: sde.Memory) -> None:
    for options in ({"timeout": -1}, {"timeout": float("nan")}, {"trace": "yes"}):
        with pytest.raises(ValueError):
            memory.command("echo", **options)
    for options in ({"outputs": "one"}, {"nothing": 1}, {"get": {"a": 1}}, {"retry": -1}):
        with pytest.raises((TypeError, OverflowError)):
            memory.command("echo", **options)


def test_each_option_reaches_the_program(memory: sde.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_HERE", "here")
    monkeypatch.setenv("PASSED", "passed")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "leaf").write_text("a leaf")
    script = 'cat; echo "$A $FROM_HERE $PASSED"; cat tree/leaf; echo out > made; echo more > undeclared'
    ran = memory.command(
        "sh", "-c", script, stdin=b"input\n", env={"A": "a", "FROM_HERE": None}, pass_env=["PASSED"], trees=[tmp_path / "tree"],
        outputs=["made", "?missing"], compare=["made"], name="named", texts=[script], keep_failures=True, link=True,
        rehash=True, scratch=tmp_path, carry=["state"], carry_every=1, uses=["true"], grace=1, reject=["never"],
    ).run()  # fmt: skip
    assert ran.stdout == "input\na here passed\na leaf" and ran.app == "named"
    assert ran.undeclared == ["undeclared"] and ran.outputs == ["made"]
    assert not ran.is_resumed and ran.attempts == [] and ran.traced is None and ran.left_behind == []
    other = memory.command("sh", "-c", script, env={"A": "b"}, texts=[script], program_is="a shell", name="named")
    assert other.key() != ran.key
    assert memory.command("echo", again=True).run().was_computed
    assert memory.command("echo", again=True).run().was_computed


def test_a_command_in_a_function_is_called_by_its_run(memory: sde.Memory) -> None:
    @memory.cache
    def total(n: int) -> int:
        return int(memory.command("echo", str(n)).run().stdout)

    assert total(5) == 5
    assert len(memory.table(total)) == 1
    assert memory.table("echo").names[-1] == "key"


def test_other_threads_go_on_while_a_program_runs(memory: sde.Memory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    go = str(tmp_path / "go")

    def release() -> None:
        with open(go, "w") as to:
            to.write("released\n")

    thread = threading.Thread(target=release)
    thread.start()
    ran = memory.command("sh", "-c", f"cat {go}", texts=[f"cat {go}"]).run()
    thread.join()
    assert ran.stdout == "released\n"


def test_a_command_runs_on_another_thread(memory: sde.Memory) -> None:
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(memory.command("echo", "x").run().stdout))
    thread.start()
    thread.join()
    assert said == ["x\n"]


@pytest.mark.parametrize("interrupts", [1, 2])
def test_ctrl_c_ends_the_program_and_is_raised(tmp_path: Path, interrupts: int) -> None:
    """A program that ignores the first is sent TERM by the second."""
    os.mkfifo(tmp_path / "noted")
    # The shell notes what it is sent; `read` waits for ever.
    script = f"""
        trap 'echo INT > {tmp_path}/noted; test {interrupts} = 1 && exit 0' INT
        trap 'echo TERM > {tmp_path}/noted; exit 0' TERM
        echo begun > {tmp_path}/noted
        while :; do sleep 0.01; done
    """
    process = begin(
        tmp_path,
        f"""
        script = {script!r}
        try:
            memory.command("sh", "-c", script, texts=[script]).run()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print(memory.command("echo", "goes on").run().stdout, end="")
        """,
    )
    assert (tmp_path / "noted").read_text() == "begun\n"
    for told in ["INT", "TERM"][:interrupts]:
        process.send_signal(signal.SIGINT)
        assert (tmp_path / "noted").read_text() == f"{told}\n"
    assert end(process) == ["interrupted", "goes on"]
