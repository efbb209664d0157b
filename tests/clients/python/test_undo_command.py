"""`apply-client apply --write` and `undo`: back to the bytes before, and never over other work."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from apply_client.__main__ import main

OLD = "a = 1\r\nb = 2\r\n"
PATCH = """\
*** Begin Patch
*** Update File: a.py
@@
-b = 2
+b = 3
*** Update File: b.py
@@
-c = 1
+c = 2
*** End Patch
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state" / "apply-client" / "last-write.json"


@pytest.fixture
def written(embedded_url: str, state: Path) -> Path:
    """The folder of two files that one command has written; one is named by a link."""
    Path("real.py").write_bytes(OLD.encode())
    Path("real.py").chmod(0o640)
    Path("a.py").symlink_to("real.py")
    Path("b.py").write_text("c = 1\n")
    Path("update").write_text(PATCH)
    command = ["apply", "a.py", "b.py", "--update", "update", "--write", "--url", embedded_url]
    assert main(command) == 0
    assert Path("real.py").read_bytes() == b"a = 1\r\nb = 3\r\n"
    assert Path("b.py").read_text() == "c = 2\n"
    return Path()


def test_the_last_write_is_undone_once(
    written: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert main(["undo"]) == 0
    assert Path("real.py").read_bytes() == OLD.encode()
    assert stat.S_IMODE(Path("real.py").stat().st_mode) == 0o640
    assert Path("a.py").is_symlink()
    assert Path("b.py").read_text() == "c = 1\n"
    assert capsys.readouterr().out.count("is as it was before") == 2
    assert main(["undo"]) == 2
    assert "there is no write to undo" in capsys.readouterr().err


def test_no_file_is_undone_if_one_has_changed_since(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("b.py").write_text("mine\n")
    assert main(["undo"]) == 1
    assert "b.py has changed since it was written" in capsys.readouterr().err
    assert Path("b.py").read_text() == "mine\n"
    assert Path("real.py").read_bytes() == b"a = 1\r\nb = 3\r\n"


def test_what_cannot_be_read_is_said(
    written: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("b.py").unlink()
    assert main(["undo"]) == 1
    assert "b.py does not exist" in capsys.readouterr().err
    state.write_text("{")
    assert main(["undo"]) == 2
    assert "remove it" in capsys.readouterr().err
