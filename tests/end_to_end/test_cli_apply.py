"""`apply-service apply`: what goes where, which exit code, and what happens to the file."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from oracle_service import OracleService
from server_thread import serving

from apply_service.cli import local
from apply_service.cli.main import main

ORIGINAL = "import os\r\n\r\n\r\ndef name(path):\r\n    return os.path.basename(path)"
MERGED = ORIGINAL.replace("basename(path)", "basename(path).lower()")
UPDATE = "# ... existing code ...\ndef name(path):\n    return os.path.basename(path).lower()\n"
MERGED_LINES = MERGED.split("\r\n")
# Both ends of the update stand once in the file, so nothing is left to the model.
CERTAIN = "def shout(path):\n    base = clean(path)\n    return base.upper()\n"
CERTAIN_UPDATE = "# ...\n    base = clean(path)\n    print(base)\n    return base.upper()\n"
CERTAIN_MERGED = CERTAIN.replace("    return", "    print(base)\n    return")
# The new line may belong behind either of two equal ones.
UNSURE = "a = 1\nb = 1\n\na = 1\nc = 1\n"
UNSURE_UPDATE = "# ...\na = 1\nprint(a, end=None)\n# ...\n"
UNSURE_MERGED = "a = 1\nb = 1\n\na = 1\nprint(a, end=None)\nc = 1\n"
IMPOSSIBLE_UPDATE = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


@pytest.fixture
def oracle(request: pytest.FixtureRequest, tiny_model_dir: Path) -> OracleService:
    """Its parameter, if it has one, is the longest context in tokens."""
    max_position = getattr(request, "param", 4096)
    oracle = OracleService(tiny_model_dir, max_position=max_position, num_blocks=max_position // 8)
    oracle.will_answer(MERGED_LINES)
    return oracle


@pytest.fixture(params=["local", "remote"])
def _way(
    request: pytest.FixtureRequest, oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The oracle answers in this process, or behind a running server."""
    monkeypatch.delenv("APPLY_SERVICE_URL", raising=False)
    if request.param == "local":
        monkeypatch.setattr(local, "load_served_model", lambda _settings, report: oracle.load())
        yield
        return
    with serving(oracle.service) as url:
        monkeypatch.setenv("APPLY_SERVICE_URL", url)
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "name.py"
    path.write_bytes(ORIGINAL.encode())
    path.chmod(0o750)
    (tmp_path / "update.py").write_text(UPDATE)
    return path


def run(file: Path, *flags: str) -> int:
    return main(["apply", str(file), "--update", str(file.with_name("update.py")), *flags])


def ask(file: Path, *flags: str) -> int:
    """As `run`, by the model's word."""
    return run(file, "--use-model", "always", *flags)


@pytest.mark.usefixtures("_way")
def test_stdout_is_the_merged_file(file: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(file) == 0
    assert capfdbinary.readouterr() == (MERGED.encode(), b"")
    assert file.read_bytes() == ORIGINAL.encode()


@pytest.mark.usefixtures("_way")
def test_diff_and_json(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(file, "--diff") == 0
    assert "+    return os.path.basename(path).lower()" in capfd.readouterr().out
    assert ask(file, "--json", "--speculation", "off") == 0
    result = json.loads(capfd.readouterr().out)
    assert result["status"] == "applied"
    assert result["speculation"]["drafted"] == 0


@pytest.mark.usefixtures("_way")
def test_write_replaces_the_file(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(file, "--write") == 0
    assert file.read_bytes() == MERGED.encode()
    assert file.stat().st_mode & 0o777 == 0o750
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("_way")
def test_needs_review_is_written_only_when_accepted(
    file: Path, oracle: OracleService, capfd: pytest.CaptureFixture[str]
) -> None:
    file.write_text(UNSURE)
    file.with_name("update.py").write_text(UNSURE_UPDATE)
    oracle.will_answer(UNSURE_MERGED.splitlines())
    assert ask(file, "--write") == 3
    assert file.read_text() == UNSURE
    errors = capfd.readouterr().err
    assert "needs review" in errors
    assert "ambiguous_place" in errors
    assert "was not written" in errors
    assert ask(file, "--write", "--accept-review") == 3
    assert file.read_text() == UNSURE_MERGED


@pytest.mark.usefixtures("_way")
def test_an_impossible_update_is_rejected_and_nothing_written(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.with_name("update.py").write_text(IMPOSSIBLE_UPDATE)
    assert run(file, "--write", "--accept-review") == 4
    output = capfd.readouterr()
    assert output.out == ""
    assert "anchor_not_found" in output.err
    assert file.read_bytes() == ORIGINAL.encode()
    assert run(file, "--json") == 4
    assert json.loads(capfd.readouterr().out)["code"] == "rejected"


@pytest.mark.usefixtures("_way")
def test_a_rejected_answer_is_printed_with_checks_off_but_never_written(
    file: Path, oracle: OracleService, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    oracle.will_answer(["# ... existing code ...", *MERGED_LINES])
    assert ask(file, "--checks", "off", "--write") == 4
    assert b"marker_left" in capfdbinary.readouterr().err
    assert file.read_bytes() == ORIGINAL.encode()
    assert ask(file, "--checks", "off") == 4
    assert capfdbinary.readouterr().out.startswith(b"# ... existing code ...")


@pytest.mark.usefixtures("_way")
def test_a_wrong_answer_gives_way_to_the_certain_merge(
    file: Path, oracle: OracleService, capfd: pytest.CaptureFixture[str]
) -> None:
    file.write_text(CERTAIN)
    file.with_name("update.py").write_text(CERTAIN_UPDATE)
    oracle.will_answer(["# ... existing code ...", *CERTAIN.splitlines()])
    assert ask(file, "--json", "--write") == 0
    result = json.loads(capfd.readouterr().out)
    assert (result["status"], result["source"]) == ("applied", "merge")
    assert result["speculation"]["target_passes"] > 0
    assert file.read_text() == CERTAIN_MERGED


@pytest.mark.usefixtures("_way")
def test_a_merge_that_only_the_model_could_confirm_is_for_review(
    file: Path, oracle: OracleService, capfd: pytest.CaptureFixture[str]
) -> None:
    twice = "a = 1\nb = 1\n\na = 1\nc = 1\n"
    file.write_text(twice)
    file.with_name("update.py").write_text("# ...\na = 1\nprint(a)\n# ...\n")
    oracle.will_answer(["# ... existing code ...", *twice.splitlines()])
    assert run(file, "--write") == 3
    assert "ambiguous_place" in capfd.readouterr().err
    assert file.read_text() == twice


@pytest.mark.usefixtures("_way")
def test_the_certain_merge_is_written_without_a_model(
    file: Path,
    oracle: OracleService,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file.write_text(CERTAIN)
    file.with_name("update.py").write_text(CERTAIN_UPDATE)
    oracle.runner.gate.clear()
    assert run(file, "--json", "--use-model", "auto") == 0
    result = json.loads(capfd.readouterr().out)
    assert (result["source"], result["speculation"]["target_passes"]) == ("merge", 0)
    monkeypatch.setenv("APPLY_SERVICE_USE_MODEL", "always")
    assert run(file, "--write", "--use-model", "never") == 0
    assert file.read_text() == CERTAIN_MERGED
    file.write_text(UNSURE)
    file.with_name("update.py").write_text(UNSURE_UPDATE)
    assert run(file, "--use-model", "never") == 3
    assert "ambiguous_place" in capfd.readouterr().err
    assert run(file, "--use-model", "sometimes") == 2
    assert "use_model is 'sometimes'" in capfd.readouterr().err


@pytest.mark.usefixtures("_way")
def test_json_has_the_decisions(
    file: Path,
    oracle: OracleService,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oracle.profile, "default_constraint", "merge")
    file.write_text(UNSURE)
    file.with_name("update.py").write_text(UNSURE_UPDATE)
    oracle.will_answer(UNSURE_MERGED.splitlines())
    oracle.runner.sureness = 0.99
    assert ask(file, "--json") == 0
    result = json.loads(capfd.readouterr().out)
    assert [decision["line"] for decision in result["decisions"]] == [2]
    assert 0.5 < result["confidence"] < 0.99, "perhaps none of the merges is meant"


@pytest.mark.parametrize("oracle", [16_000], indirect=True)
@pytest.mark.usefixtures("_way")
def test_a_try_that_is_thrown_away_leaves_no_trace(
    file: Path, oracle: OracleService, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Narrow tries are answered with what is no merge; the whole file is answered well."""
    lines = [f"step_{number}({number}, {number * 7})" for number in range(200)]
    lines[40] = lines[140] = "check(value)"
    file.write_text("\n".join([*lines, ""]))
    file.with_name("update.py").write_text("# ...\ncheck(value)\nprint(value)\n# ...\n")
    merged = [*lines[:141], "print(value)", *lines[141:]]
    oracle.will_answer(["this is no merge"])
    oracle.will_rewrite(0, 200, merged)
    assert ask(file) == 3
    output = capfdbinary.readouterr()
    assert output.out.decode().splitlines() == merged
    assert b"no merge" not in output.err


@pytest.mark.usefixtures("_way")
def test_the_update_comes_from_stdin(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(UPDATE.encode())))
    assert main(["apply", str(file), "--update", "-"]) == 0
    assert capfdbinary.readouterr().out == MERGED.encode()


@pytest.mark.usefixtures("_way")
def test_the_update_may_be_piped_without_a_flag(
    file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert main(["apply", str(file)]) == 0
    assert capfd.readouterr().out == file.read_bytes().decode()


def test_check_prints_no_result(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", str(file), "--update", str(file), "--check"]) == 0
    assert capfd.readouterr().out == ""


def test_the_file_comes_from_stdin(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    update = ["--update", str(file.with_name("update.py"))]
    for flags in ([], ["--diff", "--path", "name.py"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ORIGINAL.encode())))
        assert main(["apply", "-", *update, *flags]) == 0
        out = capfdbinary.readouterr().out
        assert out == MERGED.encode() if not flags else out.startswith(b"--- a/name.py")
    for flags, said in (
        (["--update", "-"], b"stdin is one text"),
        ([*update, "--write"], b"--write needs a FILE"),
    ):
        assert main(["apply", "-", *flags]) == 2
        assert said in capfdbinary.readouterr().err


@pytest.mark.usefixtures("_way")
def test_an_empty_file_takes_the_update(
    tmp_path: Path, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"")
    (tmp_path / "update.py").write_bytes(b"a = 1\r\nb = 2")
    assert run(file, "--write") == 0
    assert file.read_bytes() == b"a = 1\r\nb = 2"
    (tmp_path / "update.py").write_text(UPDATE)
    file.write_bytes(b"")
    assert run(file, "--write") == 1
    assert "marker" in capfd.readouterr().err
    assert file.read_bytes() == b""


@pytest.mark.usefixtures("_way")
def test_errors_are_one_line_and_exit_1(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def failure() -> str:
        output = capfd.readouterr()
        assert output.out == ""
        assert output.err.startswith("apply-service: ")
        assert output.err.count("\n") == 1
        return output.err

    assert main(["apply", str(file.with_name("none.py")), "--update", str(file)]) == 1
    assert "does not exist; see to its name and folder; for a new file, create it" in failure()
    assert main(["apply", str(file), "--update", str(file.with_name("none.py"))]) == 1
    assert "none.py does not exist; name the file of the update" in failure()
    assert main(["apply", str(file.parent), "--update", str(file)]) == 1
    assert "is a folder; name a file in it" in failure()
    file.with_name("update.py").write_text("\n\n")
    assert run(file) == 1
    assert "the update has 2 lines and no text" in failure()
    file.write_bytes(b"\x7fELF\0")
    assert run(file) == 1
    assert f"{file}: NUL at byte 4" in failure()
    assert main(["apply", str(file.with_name("update.py")), "--update", str(file)]) == 1
    assert f"{file}: NUL at byte 4" in failure()


@pytest.mark.usefixtures("_way")
def test_a_doubtful_edit_that_is_too_long_for_the_model_needs_review(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"x\n" * 9000)
    file.with_name("update.py").write_text("# ...\nx\ny\n# ...\n")
    assert run(file, "--scope", "file", "--write") == 3
    assert "ambiguous_place" in capfd.readouterr().err
    assert file.read_bytes() == b"x\n" * 9000


@pytest.mark.usefixtures("_way")
def test_a_read_only_file_is_not_written(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file.chmod(0o444)
    assert run(file, "--write") == 1
    assert "read-only" in capfd.readouterr().err
    assert file.read_bytes() == ORIGINAL.encode()


def test_usage_errors_are_2(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for flags in (["apply"], ["applly"], ["apply", str(file), "--nope"]):
        with pytest.raises(SystemExit) as caught:
            main(flags)
        assert caught.value.code == 2
    assert "there is no 'applly', did you mean 'apply'?" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        main(["key", "lst"])
    assert "did you mean 'list'?" in capfd.readouterr().err
    assert run(file, "--kv-memory", "lots") == 2
    assert "kv_memory is 'lots'" in capfd.readouterr().err


def test_an_unknown_model_is_an_error(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("APPLY_SERVICE_URL", raising=False)
    assert ask(file, "--write", "--model", str(file.parent / "no-model")) == 1
    assert "no-model" in capfd.readouterr().err
    assert file.read_bytes() == ORIGINAL.encode()


def test_a_server_is_told_the_model(
    file: Path,
    oracle: OracleService,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with serving(oracle.service) as url:
        monkeypatch.setenv("APPLY_SERVICE_URL", url)
        assert ask(file, "--model", "no-model") == 1
    assert "the model 'no-model' is not served" in capfd.readouterr().err


def test_ctrl_c_is_130_and_the_file_stays(
    file: Path, oracle: OracleService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("APPLY_SERVICE_URL", raising=False)

    def interrupt(_settings: object, report: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "load_served_model", interrupt)
    assert ask(file, "--write") == 130
    assert file.read_bytes() == ORIGINAL.encode()


def test_a_mistake_of_ours_shows_its_trace(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("APPLY_SERVICE_URL", raising=False)
    monkeypatch.setattr(local, "load_served_model", lambda _settings, report: {}["missing"])
    assert ask(file, "--write") == 1
    errors = capfd.readouterr().err
    assert "Traceback" in errors
    assert "apply-service: 'missing'" in errors


def test_no_server_there(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("APPLY_SERVICE_URL", f"http://127.0.0.1:{port}")
    assert run(file, "--write") == 1
    assert "gave no complete answer: [Errno 111] Connection refused" in capfd.readouterr().err


@pytest.mark.parametrize("sent", [b"", b'event: token\r\ndata: {"text": "a"}\r\n\r\n'])
def test_a_server_that_dies_in_mid_request(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], sent: bytes
) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )

    def die(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            if sent:
                connection.sendall(head + b"%x\r\n%s\r\n" % (len(sent), sent))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=die, args=(listener,))
        thread.start()
        monkeypatch.setenv("APPLY_SERVICE_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert run(file, "--write") == 1
        thread.join()
    assert "gave no complete answer" in capfd.readouterr().err
    assert file.read_bytes() == ORIGINAL.encode()
