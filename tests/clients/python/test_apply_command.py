"""`apply-client apply` and `status` as processes' callers see them: output, exit codes, files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apply_client import ApplyOptions, ContentConflictError, EditRejectedError, WritePolicy
from apply_client.__main__ import main
from apply_client.workspace.open_file import open_file
from client_callers import CALLERS
from oracle_service import OracleService
from server_thread import serving

ORIGINAL = (
    "import sys\n\n\ndef greet(name):\n    print(name)\n\n\ndef main():\n    greet(sys.argv[1])\n"
)
MERGED = ORIGINAL.replace("greet(name)", "greet(name, mark)").replace("print(name)", "print(mark)")
UPDATE = (
    "# ... existing code ...\ndef greet(name, mark):\n    print(mark)\n# ... existing code ...\n"
)


LOST_DIFF = "@@ -1 +1 @@\n-nowhere\n+somewhere\n"
NO_MODEL = ApplyOptions(use_model="never")


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    with serving(OracleService(tiny_model_dir).service) as address:
        yield address


@pytest.fixture(autouse=True)
def _environment(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_SERVICE_URL", url)
    monkeypatch.chdir(tmp_path)
    Path("greet.py").write_text(ORIGINAL)
    Path("update.py").write_text(UPDATE)
    Path("lost.diff").write_text(LOST_DIFF)
    Path("review.py").write_text("class Gate:\n    # ...\n    def shut(self):\n        return 1\n")


def run(*arguments: str) -> int:
    return main(["apply", *arguments, "--use-model", "never"])


def test_the_result_goes_where_it_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("greet.py", "--update", "update.py") == 0
    assert capfd.readouterr() == (MERGED, "")
    assert run("greet.py", "--update", "update.py", "--diff") == 0
    assert capfd.readouterr().out.startswith("--- a/greet.py\n+++ b/greet.py\n")
    assert run("greet.py", "--update", "update.py", "--json") == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["status"], answer["merged"]) == ("applied", MERGED)
    assert Path("greet.py").read_text() == ORIGINAL
    Path("latin.py").write_bytes(b"# caf\xe9\na = 1\n")
    Path("latin.txt").write_text("# ... existing code ...\na = 2\n")
    assert run("latin.py", "--update", "latin.txt", "--json", "--accept-review") in (0, 3)
    answer = json.loads(capfd.readouterr().out)
    assert (list(answer["merged"]), answer["encoding"]) == (["base64"], "base64")
    assert run("greet.py", "--update", "update.py", "--write") == 0
    assert capfd.readouterr() == ("", "")
    assert Path("greet.py").read_text() == MERGED


@pytest.mark.parametrize("stdin_is", ["file", "update"])
def test_stdin(
    stdin_is: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = ORIGINAL if stdin_is == "file" else UPDATE
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    arguments = ["-", "update.py"] if stdin_is == "file" else ["greet.py", "-"]
    assert run(arguments[0], "--update", arguments[1]) == 0
    assert capfd.readouterr().out == MERGED


def test_what_needs_review_is_written_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("greet.py", "--update", "review.py", "--write") == 3
    error = capfd.readouterr().err
    assert "needs review\n  warning ambiguous_place: " in error
    assert "greet.py was not written: the result needs review" in error
    assert Path("greet.py").read_text() == ORIGINAL
    assert run("greet.py", "--update", "review.py", "--write", "--accept-review") == 3
    assert "class Gate" in Path("greet.py").read_text()


def test_a_rejected_result_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("greet.py", "--update", "lost.diff", "--write") == 4
    assert "rejected: the result failed its checks\n  error anchor_not_found" in (
        capfd.readouterr().err
    )
    assert run("greet.py", "--update", "lost.diff", "--json") == 4
    assert json.loads(capfd.readouterr().out)["findings"]
    Path("bare.py").write_text("x = 1")
    assert run("greet.py", "--update", "bare.py") == 4
    assert "refused: the update has 1 line " in capfd.readouterr().err
    assert Path("greet.py").read_text() == ORIGINAL


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["absent.py", "--update", "update.py"], 1, "absent.py does not exist"),
        (["greet.py", "--update", "absent.py"], 2, "No such file or directory; name another"),
        (["-", "--update", "-"], 2, "FILE is stdin"),
        (["greet.py", "--update", "latin.py"], 2, "no text in UTF-8: byte 0 is 0xe9"),
        (["greet.py", "--update", "update.py", "--timeout", "0"], 2, "--timeout 0"),
        (["greet.py", "--update", "empty.py"], 1, "the update has 0 lines"),
        (["greet.py", "--update", "update.py", "--url", "nowhere"], 2, "'nowhere' cannot be used"),
        (["greet.py", "--update", "update.py", "--model", "none"], 1, "'none' is not served"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], code: int, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("latin.py").write_bytes(b"\xe9t\xe9")
    Path("empty.py").write_text("")
    assert run(*arguments) == code
    error = capfd.readouterr().err
    assert words in error
    assert error.startswith("apply-client: ")
    assert "Traceback" not in error


def test_status(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert capfd.readouterr().out.startswith("ready\nmodel oracle: 4096 tokens, profile embedded\n")
    assert main(["--url", "http://127.0.0.1:9", "status"]) == 1
    assert main(["--url", "http://127.0.0.1:8", "status", "--url", "http://127.0.0.1:9"]) == 1
    assert main(["status", "--url", "http://127.0.0.1:9"]) == 1
    assert "Connection refused" in capfd.readouterr().err


@pytest.mark.parametrize("kind", sorted(CALLERS))
def test_apply_file(kind: str, url: str) -> None:
    caller: Any = CALLERS[kind](url)
    assert caller.apply_file("greet.py", UPDATE, options=NO_MODEL).merged == MERGED.encode()
    assert Path("greet.py").read_text() == ORIGINAL, "it is written only on request"
    Path("link.py").symlink_to("greet.py")
    result = caller.apply_file("link.py", UPDATE, policy=WritePolicy(), options=NO_MODEL)
    assert result.status == "applied"
    assert Path("link.py").is_symlink()
    assert Path("greet.py").read_text() == MERGED
    with pytest.raises(EditRejectedError):
        caller.apply_file("greet.py", LOST_DIFF, policy=WritePolicy(), options=NO_MODEL)


def test_a_file_that_changes_meanwhile_is_left_alone() -> None:
    opened = open_file("greet.py")
    Path("greet.py").write_text("somebody else\n")
    with pytest.raises(ContentConflictError, match=r"greet\.py has changed"):
        opened.replace(MERGED.encode())
    assert Path("greet.py").read_text() == "somebody else\n"
