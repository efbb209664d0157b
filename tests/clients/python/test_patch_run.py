"""A patch that cannot be written to its end: what was done of it is taken back, or said."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from apply_client.async_client import AsyncApplyClient
from apply_client.careful_files.file_rights import FileRights
from apply_client.workspace.edit_report import EditReport
from apply_client.workspace.edits import EditOrder, WorkspaceEditor
from apply_client.workspace.errors import FileAccessError
from apply_client.workspace.folder import Workspace
from apply_client.workspace.write_policy import WritePolicy

# New and removed files need no service, and there is none.
NO_SERVICE = "http://127.0.0.1:9"
PATCH = (
    "*** Begin Patch\n*** Add File: new.py\n+x = 1\n*** Delete File: a.py\n"
    "*** Delete File: b.py\n*** End Patch\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o640)
    return tmp_path


def carry_out(root: Path, *patches: str) -> list[EditReport]:
    async def work() -> list[EditReport]:
        async with AsyncApplyClient(NO_SERVICE) as client:
            editor = WorkspaceEditor(client, Workspace(root), WritePolicy())
            return await editor.carry_out([EditOrder("a.py", patch) for patch in patches])

    return asyncio.run(work())


def fail_at_last(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object]) -> None:
    """The disk fails when b.py is to be removed; `before` happens just then."""
    kept = Workspace.remove

    def remove(workspace: Workspace, name: str, *, expected_sha256: str) -> FileRights:
        if name == "b.py":
            before()
            raise FileAccessError(name, "cannot be used: Input/output error")
        return kept(workspace, name, expected_sha256=expected_sha256)

    monkeypatch.setattr(Workspace, "remove", remove)


def test_what_was_added_goes_and_what_was_removed_comes_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at_last(monkeypatch, lambda: None)
    added, removed, failed = carry_out(root, PATCH)
    assert sorted(os.listdir(root)) == ["a.py", "b.py"]
    assert (root / "a.py").read_text() == "a.py"
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o640
    assert "Input/output error" in str(failed.error)
    for report in (added, removed):
        assert (report.status, report.is_written) == ("failed", False)
        assert "because of 'b.py'" in str(report.error)


def test_what_cannot_be_taken_back_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at_last(monkeypatch, lambda: (root / "a.py").write_text("somebody else's"))
    _, stuck, _ = carry_out(root, PATCH)
    assert (stuck.fate, stuck.is_written) == ("was written and could not be taken back", True)
    assert "a.py exists already" in str(stuck.error)
    assert (root / "a.py").read_text() == "somebody else's"
    assert sorted(os.listdir(root)) == ["a.py", "b.py"]


def test_edits_that_share_a_file_follow_each_other(root: Path) -> None:
    again = "*** Begin Patch\n*** Add File: a.py\n+y = 2\n*** End Patch\n"
    reports = carry_out(root, PATCH, again)
    assert [report.status for report in reports] == ["added", "removed", "removed", "added"]
    assert (root / "a.py").read_text() == "y = 2\n"
    assert sorted(os.listdir(root)) == ["a.py", "new.py"]
