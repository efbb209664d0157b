"""The command lines of the service and of the client behave alike where that needs no model."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import apply_client.cli
import pytest
from apply_client.__main__ import main as client_main

import apply_service.cli
from apply_service.cli import main as service_module
from apply_service.cli.main import main as service_main

Main = Callable[[Sequence[str]], int]
MAINS = {"apply-service": service_main, "apply-client": client_main}
NOBODY = "http://127.0.0.1:1"

programs = pytest.mark.parametrize("main", MAINS.values(), ids=MAINS)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("APPLY_SERVICE_URL", raising=False)
    monkeypatch.delenv("APPLY_API_KEY", raising=False)
    Path("a.py").write_text("a = 1\n")
    Path("empty").write_text("")


def test_both_share_these_modules() -> None:
    shared = ("standard_streams.py", "suggesting_parser.py", "named_files.py", "last_write.py")
    for name in (*shared, "shown_diff.py", "../shown_text.py", "../regular_file.py"):
        texts = {
            Path(package.__path__[0], name).read_text().replace(package.__name__[:-4], "…")
            for package in (apply_service.cli, apply_client.cli)
        }
        assert len(texts) == 1, f"{name} differs between the service and the client"


@programs
def test_the_version_is_printed(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    name = next(name for name, one in MAINS.items() if one is main)
    assert capsys.readouterr().out == f"{name} {version(name)}\n"


@programs
def test_check_and_write_exclude_each_other(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "a.py", "--update", "a.py", "--check", "--write"]) in (1, 2)
    assert "--check writes nothing" in capsys.readouterr().err


@programs
def test_without_an_update_a_terminal_is_told(
    main: Main, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["apply", "a.py"]) in (1, 2)
    assert "there is no update; name its file" in capsys.readouterr().err


@programs
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["aply"], "there is no 'aply', did you mean 'apply'?"),
        (["apply", "a.py", "--update", "a.py", "--wirte"], "did you mean --write?"),
        (["apply", "a.py", "--update", "a.py", "--scope", "regon"], "did you mean 'region'?"),
        (["apply", "a.py", "--update", "a.py", "--max-tokens", "-1"], "-1 is less than 1"),
    ],
    ids=["command", "flag", "choice", "number"],
)
def test_the_usage_is_short_and_names_what_was_meant(
    main: Main, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) <= 10


@programs
def test_a_flag_that_is_like_no_other_gets_no_guess(
    main: Main, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["apply", "a.py", "--update", "a.py", "--server", "http://localhost:1"])
    error = capsys.readouterr().err
    assert "unrecognized arguments: --server" in error
    assert "did you mean" not in error


@programs
@pytest.mark.parametrize(
    ("files", "update", "said"),
    [
        ("a.py", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n--- a/b.py\n+++ b/b.py\n"
         "@@ -1 +1 @@\n-b = 1\n+b = 2\n", "name all of them: apply a.py b.py"),
        ("a.py b.py", "*** Begin Patch\n*** Update File: a.py\n@@\n-a = 1\n+a = 2\n"
         "*** Update File: gone.py\n@@\n-a = 1\n+a = 2\n*** End Patch\n", "gone.py is not there"),
        ("a.py", "*** Begin Patch\n*** Update File: a.py\n@@\n-a = 1\n+a = 2\n"
         "*** Add File: new.py\n+n = 1\n*** End Patch\n", "new.py is new, so create it, empty"),
    ],
    ids=["diff", "absent", "new"],
)  # fmt: skip
def test_an_update_of_files_that_are_not_named(
    main: Main, files: str, update: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("b.py").write_text("b = 1\n")
    Path("update").write_text(update)
    assert main(["apply", *files.split(), "--update", "update", "--diff"]) == 2
    error = capsys.readouterr().err
    assert "the update changes a.py, " in error
    assert said in error
    assert "request" not in error


def test_a_service_that_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert client_main(["status", "--url", NOBODY]) == 1
    assert "`apply-service up` starts one here" in capsys.readouterr().err


@programs
def test_a_file_that_is_not_there(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "nowhere.py", "--update", "a.py"]) == 1
    error = capsys.readouterr().err
    assert "nowhere.py does not exist" in error
    assert "create it, empty" in error


@pytest.mark.parametrize(
    ("program", "arguments", "exit_code", "said"),
    [
        ("apply_service", ["apply", "-", "--update", "a.py"], 0, ""),
        ("apply_service", ["apply", "a.py", "--update", "-"], 1, "lines and no text"),
        ("apply_service", ["key", "list"], 0, ""),
        (
            "apply_client",
            ["apply", "-", "--update", "a.py", "--url", NOBODY, "--timeout=0.1"],
            1,
            "",
        ),
        ("apply_client", ["batch", "empty", "--root", ".", "--patch", "-"], 0, "nothing to do"),
    ],
    ids=["file", "update", "output", "client's file", "client's output"],
)
def test_closed_streams_are_empty(
    program: str, arguments: list[str], exit_code: int, said: str
) -> None:
    command = [sys.executable, "-m", program, *arguments]
    run = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *command],
        stderr=subprocess.PIPE,
        check=False,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in run.stderr
    assert said in run.stderr
    assert run.returncode == exit_code, run.stderr


def test_output_is_utf_8_in_any_locale() -> None:
    Path("a.py").write_text('name = "é"\n')
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "POSIX"}
    run = subprocess.run(
        [sys.executable, "-m", "apply_service", "apply", "a.py", "--update", "a.py", "--json"],
        env=os.environ | ascii_only,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(run.stdout)["status"] == "unchanged"


def test_a_name_that_is_no_utf_8_is_shown_with_a_mark(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = os.fsdecode(b"\xff.py")
    Path(name).write_text("a = 1\n")
    Path("update").write_text("a = 2\n")
    assert service_main(["apply", name, "--update", "update", "--diff", "--write"]) == 0
    assert "--- a/\N{REPLACEMENT CHARACTER}.py" in capsys.readouterr().out
    assert Path(name).read_text() == "a = 2\n"


@programs
def test_an_instruction_that_is_no_text(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["apply", "a.py", "--update", "a.py", "--instruction", os.fsdecode(b"\xff")]
    assert main(arguments) == 2
    assert "--instruction has bytes that are not UTF-8" in capsys.readouterr().err


def test_a_host_that_is_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert service_main(["serve", "--host", os.fsdecode(b"\xff")]) == 1
    error = capsys.readouterr().err
    assert "choose another --host" in error
    assert "Traceback" not in error


def test_ctrl_c_is_no_error_of_what_was_being_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def parser_is_interrupted(_arguments: object) -> None:
        raise KeyboardInterrupt

    def import_is_interrupted(_args: object, _environment: object) -> int:
        try:
            raise KeyboardInterrupt
        except BaseException as error:
            raise ImportError("cannot import a module") from error

    with monkeypatch.context() as patch:
        patch.setattr(service_module, "build_parser", parser_is_interrupted)
        assert service_main(["config"]) == 130
    monkeypatch.setattr(service_module, "_run", import_is_interrupted)
    assert service_main(["config"]) == 130
    assert capsys.readouterr().err == "interrupted\n" * 2


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("nonsense", "", "APPLY_SERVICE_URL is 'nonsense'; it must look like http://"),
        ("ftp://host", "", "APPLY_SERVICE_URL is 'ftp://host'"),
        ("http://[", "", "APPLY_SERVICE_URL is 'http://['"),
        (NOBODY, "secret\nkey", "APPLY_API_KEY has a character that no header can carry"),
        (NOBODY, "schlüssel", "APPLY_API_KEY has a character that no header can carry"),
    ],
)
def test_an_address_or_a_key_that_cannot_be_used(
    url: str,
    key: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("APPLY_SERVICE_URL", url)
    monkeypatch.setenv("APPLY_API_KEY", key)
    assert service_main(["apply", "a.py", "--update", "a.py"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "secret" not in error


@pytest.mark.timeout(30)
@programs
@pytest.mark.parametrize("role", ["file", "update", "several"])
@pytest.mark.parametrize("kind", ["pipe", "link", "socket", "device", "folder", "large"])
def test_only_regular_files_of_a_moderate_size_are_read(
    main: Main, role: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    Path("device").symlink_to("/dev/zero")
    Path("large").touch()
    os.truncate("large", 1 << 42)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        arguments = {
            "file": [kind, "--update", "a.py"],
            "update": ["a.py", "--update", kind],
            "several": ["a.py", kind, "--update", "a.py", "--diff"],
        }
        assert main(["apply", *arguments[role]]) in (1, 2)
    error = capsys.readouterr().err
    reasons = ("no regular file", "folder", "Is a directory", "more than 4000000 bytes", "at most")
    assert any(reason in error for reason in reasons), error
    assert "Traceback" not in error


@pytest.mark.timeout(30)
def test_a_batch_reads_regular_files_alone(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    commands: list[tuple[Main, list[str]]] = [
        (client_main, ["batch", "pipe", "--root", "."]),
        (client_main, ["batch", "empty", "--root", ".", "--answers", "pipe"]),
        (service_main, ["batch", "pipe", "--out", "results"]),
    ]
    for main, arguments in commands:
        assert main(arguments) in (1, 2)
        assert "no regular file" in capsys.readouterr().err


@programs
def test_names_and_lines_are_shown_without_their_control_characters(
    main: Main, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-a = 1\n+a = 2\n"
    patch += f"*** Update File: \x1b[2J{'b' * 10_000}\n@@\n-a = 1\n+a = 2\n*** End Patch\n"
    Path("update").write_text(patch)
    for arguments in (
        ["apply", "\x1b[2Jno\nwhere.py", "--update", "a.py"],
        ["apply", "a.py", "--update", "\x1b[2Jnowhere\n"],
        ["apply", "a.py", "--update", "update"],
    ):
        assert main(arguments) in (1, 2)
        error = capsys.readouterr().err
        assert "\\x1b[2J" in error
        assert "\x1b" not in error
        assert len(error.splitlines()) == 1
        assert len(error) < 1500
    with pytest.raises(SystemExit):
        main(["apply", "a.py", "--\x1b[2J"])
    assert "\x1b" not in capsys.readouterr().err


@programs
def test_two_names_of_one_file_are_not_several(
    main: Main, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    Path("link.py").symlink_to("a.py")
    for name in ("./a.py", "folder/../a.py", ".//a.py", "link.py", str(Path("a.py").resolve())):
        assert main(["apply", "a.py", name, "--update", "empty", "--diff"]) == 2
        assert "several FILEs are different ones" in capsys.readouterr().err
