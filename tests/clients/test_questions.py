"""A question, its answer, and the right text: through both SDKs and both command lines."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from apply_client import (
    ApplyClient,
    ApplyOptions,
    ApplyResult,
    AsyncApplyClient,
    Edit,
    UnknownChoiceError,
    UnprocessableEditError,
)
from oracle_service import OracleService
from server_thread import serving

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"
MEANT = FILE[:-23] + "        log(self)\n        self.fd = None\n"
NO_MODEL = ApplyOptions(use_model="never", language="python")
EDIT = Edit(FILE, UPDATE, path="a.py", options=NO_MODEL)
COMMANDS = {"service": "apply_service", "client": "apply_client"}
WAIT_S = 60


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    with serving(OracleService(tiny_model_dir).service) as address:
        yield address


def symbols_of(result: ApplyResult[str]) -> list[str | None]:
    return [choice.where.symbol for choice in result.choices]


def test_the_python_client_asks_and_answers(url: str) -> None:
    with ApplyClient(url) as client:
        asked = client.apply_edit(EDIT)
        assert (asked.status, asked.is_sure) == ("needs_review", False)
        choice = asked.choices[symbols_of(asked).index("B.close")]
        resolved = client.resolve(EDIT, choice)
        assert (resolved.merged, resolved.status, resolved.source) == (MEANT, "applied", "resolved")
        assert client.resolve(EDIT, choice.id).merged == MEANT
        with pytest.raises(UnknownChoiceError) as caught:
            client.resolve(replace(EDIT, update=UPDATE.replace("log", "tell")), choice)
        assert len(caught.value.choices) == len(asked.choices)
        with pytest.raises(UnprocessableEditError) as refused:
            client.apply_edit(replace(EDIT, update="        self.fd = open_again()\n"))
        assert refused.value.choices


def test_the_asynchronous_client_asks_and_answers(url: str) -> None:
    async def answer() -> str:
        async with AsyncApplyClient(url) as client:
            asked = await client.apply_edit(EDIT)
            choice = asked.choices[symbols_of(asked).index("B.close")]
            return (await client.resolve(EDIT, choice)).merged

    assert asyncio.run(answer()) == MEANT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(FILE)
    (tmp_path / "update.py").write_text(UPDATE)
    return tmp_path


def command(name: str, *flags: str) -> list[str]:
    words = ["apply", "a.py", "--update", "update.py", "--use-model", "never", *flags]
    return [sys.executable, "-m", COMMANDS[name], *words]


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "APPLY_SERVICE_URL": url, "NO_COLOR": ""}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_is_asked(url: str, folder: Path, name: str) -> None:
    asker, terminal = pty.openpty()
    with subprocess.Popen(
        command(name, "--write"),
        cwd=folder,
        env=environment(url),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        shown = read_until(asker, "for none: ")
        number = next(
            match[1]
            for match in re.finditer(r" (\d)\. \d+% [^\n]*", shown)
            if "B.close" in match[0]
        )
        assert "\x1b[32m+        log(self)\x1b[0m" in shown
        os.write(asker, b"99\n")
        read_until(asker, "for none: ")
        os.write(asker, f"{number}\n".encode())
        assert process.wait(WAIT_S) == 0
    os.close(asker)
    assert (folder / "a.py").read_text() == MEANT


def read_until(terminal: int, end: str) -> str:
    """What a terminal shows up to a text."""
    shown = b""
    while end.encode() not in shown:
        shown += os.read(terminal, 4096)
    return shown.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_without_a_terminal_the_choices_are_told_and_taken_by_id(
    url: str, folder: Path, name: str
) -> None:
    def run(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(name, *flags),
            cwd=folder,
            env=environment(url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    asked = run("--write")
    assert (asked.returncode, (folder / "a.py").read_text()) == (3, FILE)
    chosen = re.search(r"B\.close[^\n]*\n +--resolve (\w+)", asked.stderr)
    assert chosen is not None
    told = json.loads(run("--json").stdout)
    assert chosen[1] in [choice["id"] for choice in told["choices"]]
    unknown = run("--write", "--resolve", "0000")
    assert unknown.returncode in (1, 4)
    assert chosen[1] in unknown.stderr
    assert "is no choice of this edit" in unknown.stderr
    assert run("--write", "--resolve", chosen[1]).returncode == 0
    assert (folder / "a.py").read_text() == MEANT
    (folder / "a.py").write_text(FILE)
    assert run("--write", "--on-doubt", "refuse").returncode == 4
    assert run("--write", "--on-doubt", "best").returncode == 0
    assert "log(self)" in (folder / "a.py").read_text()


EDITS = [{"old_string": "self.fd = None", "new_string": "self.fd = log(self)"}]


def test_the_python_client_sends_edits_of_strings(url: str) -> None:
    edit = Edit(FILE, EDITS, path="a.py", options=NO_MODEL)
    with ApplyClient(url) as client:
        asked = client.apply_edit(edit)
        assert symbols_of(asked) == ["A.close", "B.close"]
        resolved = client.resolve(edit, asked.choices[1])
    assert resolved.merged == FILE[:-5] + "log(self)\n"


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_command_line_takes_edits_of_strings_as_json(
    url: str, folder: Path, name: str, is_named: bool
) -> None:
    (folder / "update.py").write_text(json.dumps([{**EDITS[0], "replace_all": True}]))
    flags = ["--format", "old_new"] if is_named else []
    process = subprocess.run(
        command(name, *flags), cwd=folder, env=environment(url), capture_output=True, text=True
    )
    assert (process.returncode == 0) == is_named, process.stderr
    if is_named:
        assert process.stdout == FILE.replace("None", "log(self)")
