"""The page of the guide: its code runs and gives what its comments say, and its table of edits is what the tests show."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import test_code_edits
from programs import SOURCES

PAGE = (SOURCES.parent / "docs/guide/13-python.md").read_text()
README = (SOURCES.parent / "README.md").read_text()
SECTIONS = re.split(r"^## ", PAGE, flags=re.M)

# Runs blocks as the cells of a notebook. An expression with a comment behind it has that value, or raises that error; ".."
# in the comment stands for any text.
RUN = """
import ast, json, re, sys, types, warnings
page = sys.modules["__main__"] = types.ModuleType("__main__")

def outcome(expression):
    try:
        return repr(eval(expression, vars(page)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def compare(block, statement):
    line = block.splitlines()[statement.end_lineno - 1][statement.end_col_offset:]
    wanted = line.partition("  # ")[2]
    got = outcome(ast.get_source_segment(block, statement))
    if wanted and not re.fullmatch(".*".join(map(re.escape, wanted.split(".."))), got, re.S):
        print(f"{ast.unparse(statement)}\\n  gives {got}\\n  the page says {wanted}")

for block in json.load(open("blocks.json")):
    for statement in ast.parse(block).body:
        if isinstance(statement, ast.Expr):
            compare(block, statement)
        else:
            exec(compile(ast.Module([statement], []), "<page>", "exec"), vars(page))
print("ended")
"""


def blocks(language: str, text: str = PAGE) -> list[str]:
    """The blocks of code in a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
    assert found
    return found


def python(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        [sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_code_gives_what_the_page_says(tmp_path: Path) -> None:
    run = [block for block in blocks("python") if not block.startswith("# scan.py")]
    run += [block for block in blocks("python", README) if block.startswith("import sde\n")]
    assert len(run) > 10
    (tmp_path / "blocks.json").write_text(json.dumps(run))
    (tmp_path / "page.py").write_text(RUN)
    ended = python(tmp_path, "page.py")
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stdout + ended.stderr


def script() -> str:
    return next(block for block in blocks("python") if block.startswith("# scan.py"))


def test_the_first_sweep_gives_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "scan.py").write_text(script().replace("sleep(0.02)", "sleep(0)"))
    told = re.search(r"^\$ python scan.py\n(.*?)^```", PAGE, re.M | re.S)
    assert told is not None
    for _ in range(2):
        assert python(tmp_path, "scan.py").stdout == told[1]


def test_the_program_reads_the_sweep_as_the_page_says(tmp_path: Path) -> None:
    program = shutil.which("sde") or SOURCES.parent / "target/debug/sde"
    if not Path(program).exists():
        pytest.skip("the program sde is not built")
    (tmp_path / "scan.py").write_text(script().replace("sleep(0.02)", "sleep(0)"))
    assert python(tmp_path, "scan.py").returncode == 0

    environment = {**os.environ, "PATH": f"{Path(program).parent}:{os.environ['PATH']}"}

    def told(command: str) -> str:
        return subprocess.check_output(command, shell=True, cwd=tmp_path, env=environment, text=True)

    key = told("sde ls scan.sde -n 1 --json").partition('"key":"')[2][:12]
    (transcript,) = [text for text in blocks("text") if text.startswith("$ sde")]
    for part in transcript.split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        lines = told(command.replace("54e9", key)).splitlines()
        # Keys, times and the order in which workers end vary.
        assert [words(line) for line in lines] == [words(line) for line in shown.splitlines()], command


def words(line: str) -> list[str]:
    """The words of a line, but for those that have digits, and units."""
    return [word for word in line.split() if len(word) > 2 and not re.search(r"\d", word)]


# Which edits of `test_code_edits` show each row of the table.
ROWS = {
    "helper": ["helper"],
    "constant": ["constant", "constant of another type"],
    "class": ["class", "method that is added", "metaclass", "other base class"],
    "base class": ["base class", "method of the base"],
    "method": ["method"],
    "decorator": ["decorator", "decorator that is taken off"],
    "default": ["own default", "default of a helper"],
    "import of another name": ["import of another name"],
    "package upgraded": ["package upgraded"],
    "docstring, comment, layout": ["docstring", "docstring of a helper", "comment", "layout"],
    "annotation": ["annotation"],
    "global list appended": ["global list"],
    "closure": ["closure", "code of a closure"],
    "lambda": ["lambda"],
    "partial": ["partial", "function of a partial"],
    "`if TYPE_CHECKING`": ["TYPE_CHECKING"],
    "second function of the name, above": ["second function of the name"],
    "second function of the name, below": ["second function of the name, after"],
}
# Rows that tests of their own show, with the names of these.
OTHERS = {
    "moved file": "test_a_moved_file_is_the_same",
    "renamed module": "test_a_renamed_module_is_another",
    "notebook cell, run again as it was": "test_a_notebook_counts_by_what_its_cells_made",
    "notebook cell, edited": "test_a_notebook_counts_by_what_its_cells_made",
}


def test_the_table_of_edits_is_what_the_tests_show() -> None:
    (section,) = [text for text in SECTIONS if text.startswith("What an edit computes again")]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", section, re.M)[1:]
    assert [name for name, _ in rows if name not in OTHERS] == list(ROWS)
    assert all(hasattr(test_code_edits, test) for test in OTHERS.values())
    edits = {edit.name: edit for edit in test_code_edits.EDITS}
    for name, again in rows:
        for edit in ROWS.get(name, []):
            assert bool(edits[edit].changes) == (again != "nothing"), edit
