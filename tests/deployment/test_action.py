"""The action's script, on a folder of updates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from editor_cases import DOUBT, DOUBTFUL, GREETING, UPDATE, merged_of

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "deploy/action"

pytestmark = pytest.mark.dist


def apply_updates(folder: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the script."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("APPLY_")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(ACTION / "apply_updates.sh"), *arguments],
        cwd=folder,
        env={**kept, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def put(path: Path, text: str, update: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.with_name(f"{path.name}.update").write_bytes(update.encode())
    return path


def test_what_is_sure_is_applied_and_the_rest_stays(tmp_path: Path) -> None:
    sure = put(tmp_path / "a folder/greet me.py", GREETING, UPDATE)
    doubtful = put(tmp_path / "doubt.py", DOUBTFUL, DOUBT)
    (tmp_path / "gone.py.update").write_text(UPDATE)
    code, out, err = apply_updates(tmp_path, GITHUB_ACTIONS="true")
    assert code == 1
    assert out.splitlines()[-1] == "1 applied, 2 left"
    assert "::error file=./doubt.py::the update is not applied: needs review" in out
    assert "./gone.py: failed with" in err
    assert sure.read_bytes().decode() == merged_of(GREETING, UPDATE, "greet me.py")
    assert doubtful.read_text() == DOUBTFUL
    assert sorted(path.name for path in tmp_path.rglob("*.update")) == [
        "doubt.py.update",
        "gone.py.update",
    ]


def test_named_updates_alone_are_applied(tmp_path: Path) -> None:
    for name in ("first.py", "second.py"):
        put(tmp_path / name, GREETING, UPDATE)
    code, out, _err = apply_updates(tmp_path, "first.py.update")
    assert (code, out) == (0, "1 applied, 0 left\n")
    assert (tmp_path / "second.py").read_bytes().decode() == GREETING


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    code, _out, err = apply_updates(tmp_path, "nowhere")
    assert code == 1
    assert "nowhere" in err


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    """Whoever sends the folder may not change what lies beside it."""
    outside = put(tmp_path / "outside.py", GREETING, UPDATE)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.py").symlink_to(outside)
    (folder / "link.py.update").write_text(UPDATE)
    code, out, err = apply_updates(folder)
    assert (code, out) == (1, "0 applied, 1 left\n")
    assert err == "./link.py: is a symbolic link; put the update beside the file itself\n"
    assert outside.read_bytes().decode() == GREETING
    assert (folder / "link.py.update").exists()
