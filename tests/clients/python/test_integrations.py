"""The snippets of docs/integrations.md, run as they stand there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from apply_client.mcp_server.tools import tool_schemas
from mcp_session import ROOT, mcp_process, text_of
from oracle_service import OracleService
from page_snippets import DEFAULT_URL, snippets_of
from program_folder import run_shell, write_programs
from server_thread import serving

SNIPPETS = {
    name: snippet
    for snippet in snippets_of(ROOT / "docs" / "integrations.md")
    if (name := snippet.info.partition(" ")[2])
}
GREET = 'import sys\n\n\ndef greet(name):\n    print("Hello " + name)\n\n\ngreet(sys.argv[1])\n'
UPDATE = '# ...\ndef greet(name):\n    print("Hi " + name)\n\n\ngreet(sys.argv[1])\n'
GIT = {
    f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
LOADERS = {".json": json.loads, ".yaml": yaml.safe_load, ".toml": tomllib.loads}
SERVER_TABLES = ("mcpServers", "servers", "mcp_servers", "context_servers", "extensions")
SETTINGS = (
    *(".cursor/mcp.json", ".vscode/mcp.json", ".codex/config.toml", "settings.json"),
    *("opencode.json", ".continue/mcpServers/apply.yaml", ".config/goose/config.yaml"),
)
DESCRIPTION = tool_schemas()[0]["description"]
MERGED = GREET.replace("Hello", "Hi")


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    with serving(oracle.service) as address:
        yield address


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "greet.py").write_text(GREET)
    return folder


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with `apply-client` of this tree, as an installation would make it."""
    folder = tmp_path / "client-venv" / "bin"
    write_programs(folder)
    return folder


def command_of(name: str) -> tuple[list[str], dict[str, str]]:
    """Program, arguments and environment of the server in a snippet."""
    text = SNIPPETS[name].body
    config: Any = LOADERS[Path(name).suffix](text)
    if "mcp" in config:
        return config["mcp"]["apply"]["command"], {}
    (servers,) = (config[key] for key in SERVER_TABLES if key in config)
    server = servers["apply"] if isinstance(servers, dict) else servers[0]
    arguments = [word.replace("${workspaceFolder}", "/path/to/project") for word in server["args"]]
    return [server.get("command") or server["cmd"], *arguments], server.get("env", {})


def test_the_server_of_the_page_edits_a_file(
    url: str, project: Path, bin_folder: Path, tmp_path: Path
) -> None:
    command, environment = command_of(".mcp.json")
    assert environment == {"APPLY_API_KEY": "${APPLY_API_KEY:-}"}
    for other in SETTINGS:
        assert command_of(other) == (command, {}), "one start stands for all"
    places = {"/path/to/project": project, "/path/to/client-venv": bin_folder.parent}
    for placeholder, path in places.items():
        command = [word.replace(placeholder, str(path)) for word in command]
    environment = {"APPLY_API_KEY": "", "APPLY_SERVICE_URL": url}
    with mcp_process(command, environment=environment, errors=tmp_path / "errors") as session:
        result = session.call("edit_file", target_file="greet.py", code_edit=UPDATE)
    assert not result.is_error, text_of(result)
    assert (project / "greet.py").read_text() == MERGED


def test_the_tools_that_are_allowed_are_those_that_there_are() -> None:
    allowed = json.loads(SNIPPETS[".claude/settings.json"].body)["permissions"]["allow"]
    assert allowed == [f"mcp__apply__{tool['name']}" for tool in tool_schemas()]
    assert "apply" in json.loads(SNIPPETS[".mcp.json"].body)["mcpServers"]


def test_the_template_of_an_editor(url: str) -> None:
    (model,) = yaml.safe_load(SNIPPETS["config.yaml"].body)["models"]
    message = model["promptTemplates"]["apply"]
    for name, text in (("original_code", GREET), ("new_code", UPDATE)):
        message = message.replace(f"{{{{{{ {name} }}}}}}", text)
    answer = httpx.post(
        model["apiBase"].replace(DEFAULT_URL, url) + "/chat/completions",
        json={"model": model["model"], "messages": [{"role": "user", "content": message}]},
    )
    assert answer.raise_for_status().json()["choices"][0]["message"]["content"] == MERGED


needs_shell_tools = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("sh", "git", "curl", "jq")),
    reason="the scripts of the page need git, curl and jq",
)


@pytest.fixture
def repository(project: Path) -> Path:
    """The project as a repository with one commit."""
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=project, env={**os.environ, **GIT}, check=True)
    return project


@needs_shell_tools
@pytest.mark.parametrize(
    ("answer", "exit_code", "merged"),
    [
        (f"```python\n{UPDATE}```\n", 0, MERGED),
        ("<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n", 4, GREET),
    ],
    ids=["fenced", "rejected"],
)
def test_the_script_around_a_model(
    url: str, repository: Path, bin_folder: Path, answer: str, exit_code: int, merged: str
) -> None:
    (repository.parent / "answer").write_text(answer)
    model = bin_folder / "model"
    model.write_text("#!/bin/sh\ncat > ../prompt\ncat ../answer\n")
    model.chmod(0o755)
    environment = {
        **GIT,
        "APPLY_SERVICE_URL": url,
        "MODEL": "model",
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
    }
    done = run_shell(
        SNIPPETS["edit.sh"].body, "greet.py", "Say Hi.", folder=repository, **environment
    )
    assert done.returncode == exit_code, done.stderr
    assert (repository / "greet.py").read_text() == merged
    prompt = (repository.parent / "prompt").read_text()
    assert DESCRIPTION in prompt
    assert prompt.endswith(GREET)
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert log[0] == ("Say Hi." if exit_code == 0 else "first")
    assert ("copy the old lines exactly from the original" in done.stderr) == (exit_code == 4)


@needs_shell_tools
def test_the_curl_command(url: str, project: Path) -> None:
    script = SNIPPETS["curl"].at(url)
    (project / "update.txt").write_text(UPDATE)
    done = run_shell(script, folder=project)
    assert done.stdout.startswith("applied\n--- a/greet.py\n"), done.stderr
    (project / "update.txt").write_text("<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n")
    done = run_shell(script, folder=project)
    assert "but the original does not have them" in done.stdout
    assert "copy the old lines exactly from the original" in done.stdout
