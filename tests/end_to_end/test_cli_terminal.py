"""`apply` of service and client at a terminal: colours, pages, and changes one by one."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from serve_process import ROOT
from terminal import run_at_terminal

RED, GREEN, CYAN = "\x1b[31m", "\x1b[32m", "\x1b[36m"
ORIGINAL = "".join(f"line_{number} = {number}\r\n" for number in range(60))
UPDATE = "\n".join(
    [
        "# ... existing code ...",
        *(f"line_{at} = {at if at != 10 else 'ten'}" for at in range(8, 13)),
        "# ... existing code ...",
        *(f"line_{at} = {at if at != 50 else 'fifty'}" for at in range(48, 53)),
        "# ... existing code ...",
        "",
    ]
)


def changed(*numbers: int) -> str:
    words = {10: "ten", 50: "fifty"}
    text = ORIGINAL
    for number in numbers:
        text = text.replace(f"line_{number} = {number}\r", f"line_{number} = {words[number]}\r")
    return text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lines.py"
    path.write_bytes("é = 1\r\n".encode("utf-16") + ORIGINAL.encode("utf-16-le"))
    (tmp_path / "update.py").write_text(UPDATE)
    return path


Run = Callable[..., tuple[int, str, bytes]]


@pytest.fixture(params=["apply_service", "apply_client"])
def run(request: pytest.FixtureRequest, file: Path) -> Run:
    """Runs the command of a package at a terminal; the client's asks a server."""
    package = request.param
    flags = ["--url", request.getfixturevalue("embedded_url")] if package == "apply_client" else []

    def at_terminal(
        *more: str, typed: str = "", stdout_too: bool = False, **environment: str
    ) -> tuple[int, str, bytes]:
        update = str(file.with_name("update.py"))
        command = [sys.executable, "-m", package, "apply", str(file), "--update", update]
        return run_at_terminal(
            [*command, *flags, *more],
            typed,
            environment={
                "PYTHONPATH": f"{ROOT}:{ROOT / 'clients/python'}",
                "PATH": os.environ["PATH"],
                "HOME": str(file.parent),
                **environment,
            },
            stdout_too=stdout_too,
        )

    return at_terminal


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("y\ny\n", (10, 50)),
        ("y\nn\n", (10,)),
        ("n\ny\n", (50,)),
        ("a\n", (10, 50)),
        ("?\nnonsense\ny\nd\n", (10,)),
        ("q\n", ()),
        ("n\n\x04", ()),  # the end of the input
    ],
)
def test_changes_are_taken_one_by_one(
    run: Run, file: Path, typed: str, taken: tuple[int, ...]
) -> None:
    code, shown, _ = run("--write", "--review", typed=typed)
    assert code == 0, shown
    assert file.read_bytes().decode("utf-16") == "é = 1\r\n" + changed(*taken)
    assert f"{GREEN}+line_10 = ten" in shown
    assert "Take this change (1 of 2) [y,n,a,d,q,?]?" in shown
    assert ("was not written: no change was taken" in shown) == (not taken)
    assert ("a - take it and all that follow" in shown) == ("?" in typed)


def test_a_review_needs_somebody_to_ask(run: Run) -> None:
    code, shown, _ = run("--review")
    assert code == 2
    assert "--review asks at a terminal what to write; add --write" in shown


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_diff_has_colours_at_a_terminal(run: Run, environment: dict[str, str]) -> None:
    code, shown, _ = run("--diff", stdout_too=True, PAGER="cat", **environment)
    assert code == 0
    assert ("\x1b[" in shown) == (not environment)
    assert "line_10 = ten" in shown
    if not environment:
        assert f"{RED}-line_10 = 10" in shown
        assert f"{CYAN}@@ -" in shown


@pytest.mark.parametrize(
    ("environment", "is_shown"), [({}, True), ({"NO_COLOR": "1"}, True), ({"TERM": "dumb"}, False)]
)
def test_a_batch_shows_how_far_it_is(
    file: Path, embedded_url: str, environment: dict[str, str], is_shown: bool
) -> None:
    folder = file.parent
    edits = [{"path": f"{name}.py", "update": "a = 2\n"} for name in "xyz"]
    for edit in edits:
        (folder / edit["path"]).write_text("a = 1\n")
    (folder / "edits.jsonl").write_text("".join(json.dumps(edit) + "\n" for edit in edits))
    command = ["batch", str(folder / "edits.jsonl"), "--root", str(folder), "--url", embedded_url]
    code, shown, _ = run_at_terminal(
        [sys.executable, "-m", "apply_client", *command],
        "",
        environment={
            "PYTHONPATH": f"{ROOT}:{ROOT / 'clients/python'}",
            "PATH": os.environ["PATH"],
            **environment,
        },
    )
    assert code == 0, shown
    assert ("3/3" in shown) == is_shown
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9;]*m", shown)) == (not environment)
    assert shown.endswith("3 edits: 3 applied\n")


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_a_terminal_obeys_nothing_in_a_text(
    run: Run, file: Path, environment: dict[str, str]
) -> None:
    file.write_text("a = 1\nb = 1\n")
    file.with_name("update.py").write_text("a = 1\nb = '\x1b[2J\u202e'\n")
    _, shown, _ = run("--diff", stdout_too=True, PAGER="cat", **environment)
    assert "+b = '\\x1b[2J\\u202e'" in shown
    assert "\x1b[2J" not in shown
    _, shown, _ = run("--write", "--review", typed="y\n")
    assert "+b = '\\x1b[2J\\u202e'" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b[2J" in file.read_text()


def test_a_diff_in_a_pipe_is_for_programs(run: Run) -> None:
    code, shown, stdout = run("--diff")
    assert (code, shown) == (0, "")
    assert b"\x1b" not in stdout
    assert b"+line_10 = ten\r\n" in stdout


def test_a_long_diff_goes_through_the_pager(run: Run, file: Path) -> None:
    pager = file.with_name("pager.sh")
    pager.write_text("#!/bin/sh\necho paged\nwc -l\n")
    pager.chmod(0o755)
    code, shown, _ = run("--diff", stdout_too=True, PAGER=str(pager), LINES="5")
    assert code == 0
    assert shown.startswith("paged\n")
    _, short, _ = run("--diff", stdout_too=True, PAGER=str(pager), LINES="200")
    assert "paged" not in short
