"""The MCP server as a process, the official MCP client, and a real service that asks no model."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import mcp.types as types
import pytest
from apply_client.mcp_server.tools import EDIT_FILE, EDIT_FILES
from apply_client.workspace.folder import sha256_of
from mcp_session import ROOT, McpSession, mcp_session, text_of
from oracle_service import OracleService
from pipeline_session import functions
from server_thread import serving

GREET = (
    "import sys\n\n\ndef greet(name):\n    print(name)\n\n\ndef main():\n    greet(sys.argv[1])\n"
)
# The context is unique and stands on both sides, so the deterministic merge is certain.
LOUDER = "# ...\ndef greet(name):\n    print(name.upper())\n\n\ndef main():\n# ...\n"
LOUDER_MERGED = GREET.replace("print(name)", "print(name.upper())")
TWICE = "a = 1\nlimit = 10\nb = 2\nlimit = 10\n"
UNSURE = "# ...\nlimit = 10\nc = 3\n# ...\n"
NOWHERE = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"
MAX_LINES = 40


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    with serving(oracle.service) as address:
        yield address


@dataclass(frozen=True)
class Ground:
    """A folder of files for one session, and beside it one that must stay as it is."""

    session: McpSession
    root: Path
    outside: Path
    errors: Path

    def write(self, name: str, content: str | bytes = GREET) -> Path:
        path = self.root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def edit(self, name: str, update: str = LOUDER, **arguments: Any) -> tuple[str, bool]:
        """The text of the answer, and whether it is an error."""
        result = self.session.call(
            EDIT_FILE, target_file=name, instructions="Shout.", code_edit=update, **arguments
        )
        text = text_of(result)
        assert len(text.split("\n")) <= MAX_LINES
        return text, result.is_error


@pytest.fixture(scope="module")
def ground(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("mcp")
    root, outside, errors = folder / "shop", folder / "outside", folder / "errors.txt"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.py").write_text(GREET)
    with mcp_session(root, url=url, errors=errors) as session:
        yield Ground(session, root, outside, errors)
    assert errors.read_text() == "", "the server had nothing to complain about"


def test_the_tools_are_those_that_the_service_describes(ground: Ground, url: str) -> None:
    tools = {tool.name: tool for tool in ground.session.run(lambda c: c.list_tools()).tools}
    assert list(tools) == [EDIT_FILE, EDIT_FILES]
    described = httpx.get(f"{url}/v1/tools/edit_file", params={"form": "mcp"}).json()
    one = tools[EDIT_FILE]
    assert one.description == described["description"]
    properties = one.input_schema["properties"]
    assert described["inputSchema"]["properties"].items() <= properties.items()
    assert properties.keys() - described["inputSchema"]["properties"].keys() == {
        "expected_sha256",
        "resolve",
        "dry_run",
    }
    assert one.input_schema["required"] == described["inputSchema"]["required"]
    entry = tools[EDIT_FILES].input_schema["properties"]["edits"]["items"]
    assert described["inputSchema"]["properties"].items() <= entry["properties"].items()


def test_an_edit_is_written(ground: Ground) -> None:
    path = ground.write("src/greet.py")
    path.chmod(0o750)
    text, is_error = ground.edit("src/greet.py")
    assert not is_error
    assert path.read_text() == LOUDER_MERGED
    assert path.stat().st_mode & 0o777 == 0o750
    head, *diff = text.split("\n")
    assert head == (
        "applied: 'src/greet.py' was written (+1 -1 lines);"
        f" its SHA-256 is {sha256_of(LOUDER_MERGED.encode())}"
    )
    assert "+    print(name.upper())" in diff
    text, is_error = ground.edit("src/greet.py", LOUDER_MERGED)
    assert text.startswith("unchanged: 'src/greet.py' is as the update wants it already")
    assert not is_error


def test_other_names_of_arguments_and_other_bytes(ground: Ground) -> None:
    content = GREET.replace("\n", "\r\n").encode("utf-16")
    path = ground.write("wide.py", content)
    result = ground.session.call(
        EDIT_FILE, path=str(path), instruction="Shout.", code_edit=LOUDER, dry_run=None
    )
    assert not result.is_error
    assert path.read_bytes() == LOUDER_MERGED.replace("\n", "\r\n").encode("utf-16")


def test_a_dry_run_writes_nothing(ground: Ground) -> None:
    path = ground.write("dry.py")
    text, is_error = ground.edit("dry.py", dry_run=True)
    assert not is_error
    assert "was not written: this was a dry run" in text
    assert "+    print(name.upper())" in text
    assert path.read_text() == GREET


def test_a_result_that_needs_review_is_not_written(ground: Ground) -> None:
    path = ground.write("twice.py", TWICE)
    text, is_error = ground.edit("twice.py", UNSURE)
    assert is_error
    assert path.read_text() == TWICE
    assert text.startswith("needs_review: 'twice.py' was not written: the result needs review")
    assert "warning ambiguous_place" in text
    assert "hint: " in text
    assert "Send the edit again" in text


def test_a_question_is_answered_in_one_call(ground: Ground) -> None:
    path = ground.write("twice.py", TWICE)
    text, _ = ground.edit("twice.py", UNSURE)
    ids = re.findall(r"  choice (\w+) \(\d+%\): .+", text)
    assert len(ids) >= 2
    assert "with `resolve` and its id" in text
    results = set()
    for chosen in ids[:2]:
        ground.write("twice.py", TWICE)
        text, is_error = ground.edit("twice.py", UNSURE, resolve=chosen)
        assert not is_error
        assert text.startswith("applied: 'twice.py' was written")
        results.add(path.read_text())
    assert len(results - {TWICE}) == 2
    text, is_error = ground.edit("twice.py", UNSURE, resolve=ids[0])
    assert is_error
    assert "unknown-choice" in text
    assert "  choice " in text


def test_a_rejected_result_comes_with_its_hints(ground: Ground) -> None:
    path = ground.write("greet.py")
    text, is_error = ground.edit("greet.py", NOWHERE)
    assert is_error
    assert path.read_text() == GREET
    assert text.startswith("rejected: 'greet.py' was not written")
    assert "error anchor_not_found" in text


def test_a_file_that_changed_is_a_conflict(ground: Ground) -> None:
    path = ground.write("changed.py")
    text, is_error = ground.edit("changed.py", expected_sha256=sha256_of(b"before"))
    assert is_error
    assert "content-conflict" in text
    assert sha256_of(GREET.encode()) in text, "the model may check it and go on"
    assert path.read_text() == GREET
    _, is_error = ground.edit("changed.py", expected_sha256=sha256_of(GREET.encode()).upper())
    assert not is_error
    assert path.read_text() == LOUDER_MERGED


ESCAPES: dict[str, Callable[[Ground], str]] = {
    "parent": lambda ground: "../outside/secret.py",
    "parent inside the path": lambda ground: "src/../../outside/secret.py",
    "absolute": lambda ground: str(ground.outside / "secret.py"),
    "absolute with a parent": lambda ground: f"{ground.root}/../outside/secret.py",
    "percent-encoded": lambda ground: "%2e%2e%2foutside%2fsecret.py",
    "NUL": lambda ground: "greet.py\0/../../outside/secret.py",
    "backslashes": lambda ground: "..\\outside\\secret.py",
    "home": lambda ground: "~/../outside/secret.py",
    "wide dots": lambda ground: "\uff0e\uff0e/outside/secret.py",
    "UNC": lambda ground: "//localhost/share/secret.py",
    "drive": lambda ground: "C:/outside/secret.py",
    "file URL": lambda ground: f"file://{ground.outside}/secret.py",
    "link to a file": lambda ground: link(ground, "file.py", ground.outside / "secret.py"),
    "link to a folder": lambda ground: link(ground, "folder", ground.outside) + "/secret.py",
    "relative link": lambda ground: link(ground, "up", Path("..")) + "/outside/secret.py",
    "link by a link": lambda ground: link(ground, "chain.py", Path("file.py")),
    "dangling link": lambda ground: link(ground, "dangling.py", ground.outside / "new.py"),
    "process files": lambda ground: link(ground, "proc", Path("/proc/self/cwd")) + "/a.py",
    "git": lambda ground: ".git/config",
    "git in capitals": lambda ground: ".GIT/config",
    "link to git": lambda ground: link(ground, "meta", Path(".git")) + "/config",
}


def link(ground: Ground, name: str, target: Path) -> str:
    path = ground.root / name
    if not path.is_symlink():
        path.symlink_to(target)
    return name


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_path_leads_out(ground: Ground, escape: str) -> None:
    ground.write(".git/config", GREET)
    name = ESCAPES[escape](ground)
    added = f"*** Begin Patch\n*** Add File: {name}\n+x = 1\n*** End Patch\n"
    deleted = f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n"
    for update in (LOUDER, added, deleted):
        text, is_error = ground.edit(name, update)
        assert is_error
        assert "Nothing was changed." in text
        assert GREET.split("\n")[3] not in text, "nothing of the file is shown"
    assert os.listdir(ground.outside) == ["secret.py"]
    assert (ground.outside / "secret.py").read_text() == GREET
    assert (ground.root / ".git/config").read_text() == GREET


def test_a_patch_that_leads_out_does_nothing_at_all(ground: Ground) -> None:
    path = ground.write("greet.py")
    patch = (
        "*** Begin Patch\n*** Update File: greet.py\n@@\n-    print(name)\n+    pass\n"
        "*** Add File: ../outside/new.py\n+x = 1\n*** End Patch\n"
    )
    text, is_error = ground.edit("greet.py", patch)
    assert is_error
    assert "has `..` in it" in text
    assert path.read_text() == GREET
    assert os.listdir(ground.outside) == ["secret.py"]


def test_a_patch_adds_changes_and_deletes(ground: Ground) -> None:
    changed, deleted = ground.write("p/greet.py"), ground.write("p/old.py", "x = 1\n")
    patch = (
        "*** Begin Patch\n*** Update File: p/greet.py\n@@ def greet(name):\n-    print(name)\n"
        "+    print(name.upper())\n*** Add File: p/deep/new.py\n+y = 2\n*** Delete File: p/old.py\n"
        "*** End Patch\n"
    )
    text, is_error = ground.edit("p/greet.py", patch, dry_run=True)
    assert not is_error
    assert text.startswith("0 of 3 changes were written.")
    assert sorted(os.listdir(ground.root / "p")) == ["greet.py", "old.py"]
    text, is_error = ground.edit("p/greet.py", patch)
    assert not is_error
    assert text.startswith("3 of 3 changes were written.")
    assert changed.read_text() == LOUDER_MERGED
    assert (ground.root / "p/deep/new.py").read_text() == "y = 2\n"
    assert not deleted.exists()


def patch_of(*parts: str) -> str:
    """A patch that changes w/greet.py, and these parts behind it."""
    change = "*** Update File: w/greet.py\n@@\n-    print(name)\n+    print(name.upper())\n"
    return "".join(
        ["*** Begin Patch\n", change, *(f"*** {part}\n" for part in parts), "*** End Patch\n"]
    )


@pytest.mark.parametrize("part", ["Update File: w/pipe\n@@\n-x\n+y", "Delete File: w/pipe"])
def test_a_patch_that_names_a_pipe_writes_nothing(ground: Ground, part: str) -> None:
    path = ground.write("w/greet.py")
    pipe = ground.root / "w/pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    text, is_error = ground.edit("w/greet.py", patch_of("Add File: w/new.py\n+x = 1", part))
    assert is_error
    assert text.startswith("0 of 3 changes were written.")
    assert "not-a-file: w/pipe is no regular file" in text
    assert "nothing of the patch was written, because of 'w/pipe'" in text
    assert path.read_text() == GREET
    assert sorted(os.listdir(ground.root / "w")) == ["greet.py", "pipe"]
    pipe.unlink()


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("Add File: w/greet.py.d", "exists already"),
        ("Update File: w/none.py\n@@\n-x\n+y", "does not exist"),
        ("Update File: w/fixed.py\n@@\n-x = 1\n+x = 2", "is read-only"),
        ("Update File: w/other.py\n@@\n-nowhere\n+x = 2", "anchor_not_found"),
        ("Delete File: w/link.py", "is a link to w/other.py"),
    ],
)
def test_a_patch_is_written_whole_or_not_at_all(ground: Ground, part: str, reason: str) -> None:
    path, other = ground.write("w/greet.py"), ground.write("w/other.py", "x = 1\n")
    ground.write("w/greet.py.d/keep")
    fixed = ground.root / "w/fixed.py"
    if not fixed.exists():
        ground.write("w/fixed.py", "x = 1\n").chmod(0o444)
        (ground.root / "w/link.py").symlink_to("other.py")
    for is_dry_run in (True, False):
        text, is_error = ground.edit("w/greet.py", patch_of(part), dry_run=is_dry_run)
        assert is_error
        assert text.startswith("0 of 2 changes were written.")
        assert reason in text
    assert (path.read_text(), other.read_text()) == (GREET, "x = 1\n")
    assert fixed.read_text() == "x = 1\n"


def test_a_patch_that_fails_while_it_is_written_is_taken_back(ground: Ground) -> None:
    """The second new file needs a folder where the first one is; nothing says so before."""
    path, gone = ground.write("w/greet.py"), ground.write("w/gone.py", "x = 1\n")
    path.chmod(0o751)
    before = sorted(os.listdir(ground.root / "w"))
    parts = ["Delete File: w/gone.py", "Add File: w/new\n+x = 1", "Add File: w/new/deep.py\n+x = 1"]
    text, is_error = ground.edit("w/greet.py", patch_of(*parts))
    assert is_error
    assert text.startswith("0 of 4 changes were written.")
    assert "w/new/deep.py leads through new, which is no folder" in text
    assert text.count("nothing of the patch was written, because of 'w/new/deep.py'") == 3
    assert (path.read_text(), gone.read_text()) == (GREET, "x = 1\n")
    assert path.stat().st_mode & 0o777 == 0o751
    assert sorted(os.listdir(ground.root / "w")) == before


def test_what_a_file_loses_is_told(ground: Ground) -> None:
    path = ground.write("hard.py")
    other = ground.root / "other-name.py"
    os.link(path, other)
    text, is_error = ground.edit("hard.py")
    assert not is_error
    assert "  warning: 1 more of its names (hard links) keep the old content" in text
    assert (path.read_text(), other.read_text()) == (LOUDER_MERGED, GREET)


def test_a_patch_of_another_file_is_refused(ground: Ground) -> None:
    ground.write("greet.py")
    ground.write("other.py")
    patch = "*** Begin Patch\n*** Delete File: other.py\n*** End Patch\n"
    text, is_error = ground.edit("greet.py", patch)
    assert is_error
    assert "the patch changes other.py, not greet.py" in text
    assert (ground.root / "other.py").exists()


def test_several_edits_in_one_call(ground: Ground) -> None:
    first, second = ground.write("m/first.py"), ground.write("m/second.py", TWICE)
    louder_still = LOUDER.replace("name.upper()", 'name.upper() + "!"')
    start = sha256_of(GREET.encode())
    edits = [
        {"target_file": "m/first.py", "instructions": "", "code_edit": LOUDER},
        {"target_file": "m/second.py", "instructions": "", "code_edit": UNSURE},
        {"target_file": "m/first.py", "code_edit": louder_still, "expected_sha256": start},
        {"target_file": "../outside/secret.py", "instructions": "", "code_edit": LOUDER},
        {"target_file": "m/none.py", "instructions": "", "code_edit": LOUDER},
    ]
    for is_dry_run in (True, False):
        result = ground.session.call(EDIT_FILES, edits=edits, dry_run=is_dry_run)
        text = text_of(result)
        assert result.is_error
        assert len(text.split("\n")) <= MAX_LINES
        assert text.startswith(f"{0 if is_dry_run else 2} of 5 changes were written.")
        assert '+    print(name.upper() + "!")' in text
        assert "file-missing" in text
    assert first.read_text() == GREET.replace("print(name)", 'print(name.upper() + "!")')
    assert second.read_text() == TWICE
    assert (ground.outside / "secret.py").read_text() == GREET


def test_calls_at_the_same_time_follow_each_other(ground: Ground) -> None:
    names = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"]
    path = ground.write("many.py", functions(names))

    async def work(client: Any) -> list[Any]:
        calls = []
        for number, name in enumerate(names):
            lines = [f"    total_{name} = value + {number}", f"    for step in range({number}):"]
            update = "\n".join(["# ...", lines[0], f"    print(total_{name})", lines[1], "# ..."])
            arguments = {"target_file": "many.py", "instructions": "", "code_edit": update}
            calls.append(client.call_tool(EDIT_FILE, arguments))
        return await asyncio.gather(*calls)

    results = ground.session.run(work)
    assert not any(result.is_error for result in results), [text_of(one) for one in results]
    assert path.read_text().count("    print(total_") == len(names)


def test_a_long_diff_is_shortened(ground: Ground) -> None:
    lines = [f"value_{number} = {number}\n" for number in range(300)]
    ground.write("long.py", "".join(lines))
    lines[::3] = [line.replace("=", "= 1 +") for line in lines[::3]]
    text, is_error = ground.edit("long.py", "".join(lines))
    assert not is_error
    assert "(+100 -100 lines)" in text
    assert len(text.split("\n")) == MAX_LINES
    assert text.endswith(" more lines of the diff")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`target_file` is missing"),
        ({"target_file": "greet.py"}, "`code_edit` is missing"),
        ({"target_file": "greet.py", "code_edit": "  \n"}, "`code_edit` is missing"),
        ({"target_file": 3, "code_edit": LOUDER}, "Expected `str"),
        ({"target_file": "a.py", "path": "b.py", "code_edit": LOUDER}, "send one of them"),
        ({"target_file": "a.py", "old_string": "x"}, "unknown field `old_string`"),
        ({"target_file": "greet.py", "code_edit": LOUDER, "dry_run": "perhaps"}, "dry_run"),
    ],
)
def test_bad_arguments_are_explained(
    ground: Ground, arguments: dict[str, Any], message: str
) -> None:
    path = ground.write("greet.py")
    result = ground.session.call(EDIT_FILE, **arguments)
    assert result.is_error
    assert message in text_of(result)
    assert path.read_text() == GREET


def test_bad_lists_of_edits_are_explained(ground: Ground) -> None:
    one = {"target_file": "greet.py", "code_edit": LOUDER}
    for edits, message in (([], "0 entries"), ([one] * 21, "21 entries"), ("x", "array")):
        result = ground.session.call(EDIT_FILES, edits=edits)
        assert result.is_error
        assert message in text_of(result)
    result = ground.session.call("rm_rf", path="/")
    assert result.is_error
    assert "call edit_file or edit_files" in text_of(result)


def test_what_the_service_refuses_is_explained(ground: Ground) -> None:
    ground.write("binary.bin", b"\0\1\2")
    text, is_error = ground.edit("binary.bin")
    assert is_error
    assert "binary-file" in text
    ground.write("greet.py")
    text, is_error = ground.edit("greet.py", "print(1)\nprint(2)\n")
    assert is_error
    assert "no-marker" in text


def test_a_service_that_is_down(tmp_path: Path) -> None:
    path = tmp_path / "greet.py"
    path.write_text(GREET)
    errors = tmp_path / "errors.txt"
    with mcp_session(tmp_path, url="http://127.0.0.1:9", errors=errors) as session:
        result = session.call(EDIT_FILE, target_file="greet.py", code_edit=LOUDER)
        text = text_of(result)
        assert result.is_error
        assert "cannot be reached at http://127.0.0.1:9" in text
        assert "apply-service serve" in text
        assert "Traceback" not in text
    assert path.read_text() == GREET
    assert errors.read_text() == ""


def test_review_is_accepted_where_that_was_asked_for(url: str, tmp_path: Path) -> None:
    path = tmp_path / "twice.py"
    path.write_text(TWICE)
    errors = tmp_path / "errors.txt"
    with mcp_session(tmp_path, "--accept-review", url=url, errors=errors) as session:
        result = session.call(EDIT_FILE, target_file="twice.py", code_edit=UNSURE)
    assert not result.is_error
    assert text_of(result).startswith("needs_review: 'twice.py' was written")
    assert "warning ambiguous_place" in text_of(result)
    assert path.read_text() != TWICE


def start_server(root: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "apply_client", "mcp", "--root", str(root), "--url", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")},
    )


def send(process: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


INITIALIZE = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_stdout_has_the_protocol_and_nothing_else(url: str, tmp_path: Path) -> None:
    """Raw lines, as a client of the older protocol writes them; three of them cannot be read."""
    (tmp_path / "greet.py").write_text(GREET)
    arguments = {"target_file": "greet.py", "instructions": "", "code_edit": LOUDER}
    halved = {**arguments, "code_edit": "# ...\n\ud800\n# ...\n"}
    answers = []
    with start_server(tmp_path, url) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"this is no JSON\n")
        process.stdin.write(b'{"id": 9, "params": ' + b"[" * 20_000 + b"]" * 20_000 + b"}\n")
        send(process, INITIALIZE, {"method": "notifications/initialized"})
        for number, sent in ((2, halved), (3, arguments)):
            call = {"name": EDIT_FILE, "arguments": sent}
            send(process, {"id": number, "method": "tools/call", "params": call})
        while len(answers) < 3:
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0
    assert sorted(answer["id"] for answer in answers) == [1, 2, 3]
    (refusal,) = (answer for answer in answers if answer["id"] == 2)
    assert "cannot be read" in refusal["error"]["message"]
    assert (tmp_path / "greet.py").read_text() == LOUDER_MERGED


@pytest.mark.parametrize(
    ("sent", "exit_code"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM), (None, 1)],
    ids=["Ctrl-C", "SIGTERM", "stdout closed"],
)
def test_every_end_is_quiet(tmp_path: Path, sent: signal.Signals | None, exit_code: int) -> None:
    with start_server(tmp_path, "http://127.0.0.1:9") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        send(process, INITIALIZE)
        assert json.loads(process.stdout.readline())["id"] == 1
        if sent is None:
            process.stdout.close()
            send(process, {"id": 2, "method": "tools/list"})
        else:
            process.send_signal(sent)
            process.wait(timeout=20)
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == exit_code


@pytest.mark.parametrize(
    ("flags", "exit_code", "message"),
    [
        (["--root", "/nowhere/at/all"], 1, "is no folder"),
        (["--root", "/"], 1, "whole disk"),
        (["--root", ".", "--url", "localhost:1"], 2, "the address 'localhost:1' cannot be used"),
        ([], 2, "--root"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    flags: list[str], exit_code: int, message: str
) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "apply_client", "mcp", *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")},
        check=False,
    )
    assert process.returncode == exit_code
    assert process.stdout == ""
    assert message in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("action", "mode"),
    [
        *((action, "auto") for action in ("accept", "decline", "cancel", "nonsense")),
        *((action, "legacy") for action in ("accept", "decline", "cancel", "nonsense", "error")),
    ],
)
def test_a_client_that_can_ask_a_person_is_asked(
    url: str, tmp_path: Path, action: str, mode: str
) -> None:
    """Any answer but a choice leaves the question to the model, as without a person."""
    asked: list[types.ElicitRequestFormParams] = []

    async def answer(
        _context: Any, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        assert isinstance(params, types.ElicitRequestFormParams)
        asked.append(params)
        if action == "error":
            return types.ErrorData(code=-32603, message="nobody there")
        if action in ("decline", "cancel"):
            return types.ElicitResult.model_validate({"action": action})
        ids = params.requested_schema["properties"]["choice"]["enum"]
        chosen = ids[1] if action == "accept" else "none of them"
        return types.ElicitResult(action="accept", content={"choice": chosen})

    root, errors = tmp_path / "shop", tmp_path / "errors.txt"
    root.mkdir()
    (root / "twice.py").write_text(TWICE)
    with mcp_session(root, url=url, errors=errors, asked=answer, mode=mode) as session:
        result = session.call(
            EDIT_FILE, target_file="twice.py", instructions="Add c.", code_edit=UNSURE
        )
        (question,) = asked
        named = question.requested_schema["properties"]["choice"]
        assert "twice.py may mean" in question.message
        assert "+c = 3" in question.message
        assert len(named["enum"]) == len(named["enumNames"]) >= 2
        if action == "accept":
            assert not result.is_error
            lines = (root / "twice.py").read_text().split("\n")
            lines.remove("c = 3")
            assert "\n".join(lines) == TWICE
        else:
            assert result.is_error
            assert "with `resolve` and its id" in text_of(result)
            assert (root / "twice.py").read_text() == TWICE
    assert errors.read_text() == ""
