"""An edit that needs no model imports no model and no web framework."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ORIGINAL = "def name(path):\n    return path\n"
HEAVY = (
    *("torch", "transformers", "tokenizers", "litestar", "uvicorn", "httpx", "pydantic"),
    *("redis", "ssl", "asyncio", "apply_service.apply.confidence", "apply_service.service"),
)
PROGRAM = f"""
import sys
from apply_service.cli.main import main
code = main(sys.argv[1:])
loaded = sorted(set({HEAVY!r}) & set(sys.modules))
assert not loaded, loaded
sys.exit(code)
"""


BETWEEN = "def name(path):\n    path = path.strip()\n    return path\n"


@pytest.mark.parametrize(
    ("original", "update", "flags", "exit_code", "said"),
    [
        (ORIGINAL, "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n", "", 4, "anchor_not"),
        (ORIGINAL, "def name(path):\n    return path.lower()\n", "", 0, "path.lower()"),
        (ORIGINAL, "# ... existing code ...\n", "", 0, "return path\n"),
        ("", "a = 1\n", "", 0, "a = 1\n"),
        (ORIGINAL, "\n\n", "", 1, "lines and no text"),
        ("\0", "a = 1\n", "", 1, "NUL"),
        (ORIGINAL, BETWEEN, "--use-model=auto", 0, "path.strip()"),
        (ORIGINAL, "# ...\n" + BETWEEN, "--use-model=never", 0, "path.strip()"),
        (ORIGINAL * 2, "# ...\n    print(path)\n# ...\n", "--use-model=never", 3, "_place"),
    ],
    ids=["impossible", "whole", "markers", "new", "empty", "binary", "auto", "never", "open"],
)
def test_no_model_no_torch(
    tmp_path: Path, original: str, update: str, flags: str, exit_code: int, said: str
) -> None:
    file, snippet = tmp_path / "name.py", tmp_path / "update.txt"
    file.write_text(original)
    snippet.write_text(update)
    arguments = ["--update", str(snippet), *flags.split()]
    environment = {name: value for name, value in os.environ.items() if "APPLY_SERVICE" not in name}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "apply", str(file), *arguments],
        capture_output=True,
        check=False,
        env=environment,
        text=True,
        timeout=60,
    )
    assert "AssertionError" not in run.stderr, run.stderr
    assert run.returncode == exit_code, run.stderr
    assert said in run.stdout + run.stderr


def test_findings_follow_the_diff(tmp_path: Path) -> None:
    file, snippet = tmp_path / "name.py", tmp_path / "update.txt"
    file.write_text(ORIGINAL * 2)
    snippet.write_text("# ...\n    print(path)\n# ...\n")
    command = ["apply", str(file), "--update", str(snippet), "--diff", "--use-model=never"]
    run = subprocess.run(
        [sys.executable, "-m", "apply_service", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        timeout=60,
    )
    assert run.returncode == 3
    assert -1 < run.stdout.index("+    print(path)") < run.stdout.index("needs review")


def test_listing_keys_leaves_no_trace(tmp_path: Path) -> None:
    places = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [sys.executable, "-m", "apply_service", "key", "list"]
    run = subprocess.run(
        command, env=os.environ | places, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0
    assert "no keys" in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_reading_a_command_line_reads_no_texts() -> None:
    program = "import sys, apply_service.cli.main; print(*sys.modules, sep='\\n')"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    loaded = set(run.stdout.split())
    assert "apply_service.apply.errors" in loaded
    assert loaded & {"numpy", "tree_sitter", "rapidfuzz", "apply_service.apply.choices"} == set()
