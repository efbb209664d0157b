"""`apply --write` and `undo`: back to the bytes before, and never over somebody else's."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from apply_service.cli.main import main

OLD = "a = 1\r\nb = 2\r\n"
UPDATE = "a = 1\nb = 3\n"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("APPLY_SERVICE_URL", raising=False)
    return tmp_path / "state" / "apply-service" / "last-write.json"


@pytest.fixture
def file(tmp_path: Path, state: Path) -> Path:
    file, update = tmp_path / "a.py", tmp_path / "update"
    file.write_bytes(OLD.encode())
    file.chmod(0o640)
    update.write_text(UPDATE)
    assert main(["apply", str(file), "--update", str(update), "--write"]) == 0
    assert file.read_bytes() == b"a = 1\r\nb = 3\r\n"
    return file


def test_the_last_write_is_undone_once(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert main(["undo"]) == 0
    assert file.read_bytes() == OLD.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert "as it was before" in capsys.readouterr().out
    assert main(["undo"]) == 1
    assert "there is no write to undo" in capsys.readouterr().err


def test_a_file_that_changed_since_is_left_alone(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("mine\n")
    assert main(["undo"]) == 1
    assert "has changed since it was written" in capsys.readouterr().err
    assert file.read_text() == "mine\n"


def test_what_cannot_be_read_is_said(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.unlink()
    assert main(["undo"]) == 1
    assert "cannot read" in capsys.readouterr().err
    state.write_text("{")
    assert main(["undo"]) == 1
    assert "remove it" in capsys.readouterr().err


def test_a_write_counts_also_where_it_cannot_be_remembered(
    file: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state.unlink()
    state.parent.rmdir()
    state.parent.write_text("no folder")
    update = file.with_name("update")
    update.write_text("a = 1\nb = 4\n")
    assert main(["apply", str(file), "--update", str(update), "--write"]) == 0
    assert file.read_bytes() == b"a = 1\r\nb = 4\r\n"
    assert "undo will not know of this" in capsys.readouterr().err


def test_without_a_command_it_introduces_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == 10
    assert "apply-service up" in shown
