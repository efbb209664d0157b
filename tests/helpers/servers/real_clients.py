"""Clients of other makers behind one interface: an edit in, the file and a complaint out.

Some hand the merged text to their caller: a driver of a few lines in `drivers/` calls them and
prints it. Others write the file themselves. What is compared is always the whole file, as bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Literal

from client_edits import ClientEdit
from mcp.types import TextContent
from mcp_session import mcp_process
from page_snippets import snippets_of
from program_folder import write_programs
from scripted_model import scripted_model

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "tests" / "clients" / "real"
DRIVERS = FOLDER / "drivers"
VENV = ROOT / "build" / "clients" / "venv"
NODE = VENV / "bin" / "node"
MODULES = FOLDER / "node_modules"
OPENCODE = MODULES / "opencode-linux-x64-baseline" / "bin" / "opencode"
ANSWER_LIMIT_S = 240.0

# Where a package is: beside the service, in the environment of the clients, or of Node.js.
Home = Literal["service", "clients", "node"]


@dataclass(frozen=True, slots=True)
class Server:
    """A running service, and the key for its clients."""

    url: str
    key: str


@dataclass(frozen=True, slots=True)
class Task:
    """An edit for a client to do with a server."""

    server: Server
    edit: ClientEdit
    folder: Path
    is_streamed: bool = False
    # A line beside the place that an edit in doubt means, for clients that can answer.
    chosen: str | None = None

    @property
    def path(self) -> Path:
        return self.folder / self.edit.file


@dataclass(frozen=True, slots=True)
class Outcome:
    """The file after the edit, on disk or as the caller has it, and the client's complaint."""

    content: bytes
    error: str | None = None
    # In how many pieces a stream came; None where the client does not say.
    num_pieces: int | None = None


@dataclass(frozen=True, slots=True)
class RealClient:
    """A client in its one pinned version."""

    name: str
    package: str
    home: Home
    run: Callable[[Task], Outcome] = field(repr=False)
    can_stream: bool = False
    # It hands its caller the choices of a question, and sends what the caller adds to a request.
    can_resolve: bool = False
    # What the client itself makes of an edit, by the edit's name; the service has no say in it.
    own_limits: Mapping[str, str] = field(default_factory=dict)

    def version(self) -> str | None:
        """The installed version; None if the client is not installed."""
        if self.home == "node":
            about = MODULES / self.package / "package.json"
            return str(json.loads(about.read_text())["version"]) if about.is_file() else None
        venv = VENV if self.home == "clients" else Path(sys.prefix)
        folders = [str(folder) for folder in venv.glob("lib/python*/site-packages")]
        found = distributions(name=self.package, path=folders)
        return next((one.version for one in found), None)

    def pinned_version(self) -> str:
        """The version that the set-up installs."""
        if self.home == "node":
            wanted = json.loads((FOLDER / "package.json").read_text())
            pins: dict[str, str] = wanted["dependencies"] | wanted["optionalDependencies"]
        else:
            folder = FOLDER if self.home == "clients" else ROOT
            lines = (folder / "constraints.txt").read_text().splitlines()
            pins = dict(line.split("==") for line in lines if "==" in line)
        return pins[self.package]


def python_driver(
    name: str, *arguments: str, python: Path = VENV / "bin" / "python"
) -> Callable[[Task], Outcome]:
    return lambda task: _drive([str(python), str(DRIVERS / name), *arguments], task)


def node_driver(name: str, *arguments: str) -> Callable[[Task], Outcome]:
    return lambda task: _drive([str(NODE), str(DRIVERS / name), *arguments], task)


def environment_of(folder: Path, **more: str) -> dict[str, str]:
    """A small part of our environment, without the user's settings and proxies."""
    kept = {name: os.environ[name] for name in ("LANG", "SSL_CERT_FILE") if name in os.environ}
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(folder.parent), **more}


def _drive(command: list[str], task: Task) -> Outcome:
    """Give a driver a task as one JSON object; it prints another."""
    edit = task.edit
    told = {
        "url": task.server.url,
        "key": task.server.key,
        "folder": str(task.folder),
        "file": edit.file,
        "original": edit.original,
        "update": edit.update,
        "instruction": edit.instruction,
        "stream": task.is_streamed,
        "chosen": task.chosen,
    }
    run = subprocess.run(
        command,
        input=json.dumps(told),
        cwd=task.folder,
        env=environment_of(task.folder),
        capture_output=True,
        encoding="utf-8",
        timeout=ANSWER_LIMIT_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    said: dict[str, Any] = json.loads(run.stdout.rstrip("\n").rsplit("\n", 1)[-1])
    content = task.path.read_bytes() if said.get("text") is None else said["text"].encode()
    return Outcome(content, said.get("error"), said.get("pieces"))


@dataclass(frozen=True, slots=True)
class McpServer:
    """An MCP server with a tool that edits files, called by the official client."""

    command: Callable[[Task], list[str]]
    environment: Callable[[Task], dict[str, str]]
    tool: str
    arguments: Callable[[Task], dict[str, str]]

    def __call__(self, task: Task) -> Outcome:
        session = mcp_process(
            self.command(task),
            environment=environment_of(task.folder, **self.environment(task)),
            errors=task.folder.parent / "errors.txt",
            answer_limit_s=ANSWER_LIMIT_S,
        )
        with session as client:
            result = client.call(self.tool, **self.arguments(task))
        said = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        return Outcome(
            task.path.read_bytes(), said if self._has_failed(said, result.is_error) else None
        )

    @staticmethod
    def _has_failed(said: str, is_error: bool | None) -> bool:
        """True if the answer is an error; some servers say so in the text alone."""
        return bool(is_error) or '"status":"error"' in said.replace(" ", "")


OUR_MCP_SERVER = McpServer(
    command=lambda task: [sys.executable, "-m", "apply_client", "mcp", "--root", str(task.folder)],
    environment=lambda task: {
        "PYTHONPATH": str(ROOT / "clients" / "python"),
        "APPLY_SERVICE_URL": task.server.url,
        "APPLY_API_KEY": task.server.key,
    },
    tool="edit_file",
    arguments=lambda task: {
        "target_file": task.edit.file,
        "instructions": task.edit.instruction,
        "code_edit": task.edit.update,
    },
)

INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build"


def inspect(task: Task) -> Outcome:
    """Call our MCP server with the inspector's command line."""
    server = OUR_MCP_SERVER
    command = [str(NODE), str(INSPECTOR / "index.js"), "--cli", "--method", "tools/call"]
    command += ["--tool-name", server.tool]
    for name, text in server.arguments(task).items():
        command += ["--tool-arg", f"{name}={text}"]
    for name, text in server.environment(task).items():
        command += ["-e", f"{name}={text}"]
    run = subprocess.run(
        [*command, "--", *server.command(task)],
        cwd=task.folder,
        env=environment_of(task.folder),
        capture_output=True,
        encoding="utf-8",
        timeout=ANSWER_LIMIT_S,
        check=False,
    )
    assert run.stdout, run.stderr
    result = json.loads(run.stdout)
    said = "\n".join(part["text"] for part in result["content"])
    return Outcome(task.path.read_bytes(), said if result["isError"] else None)


def have_opencode_edit(task: Task) -> Outcome:
    """Run the agent with our page's settings, and a model that calls `edit_file`."""
    home = task.folder.parent
    write_programs(home / "client-venv" / "bin")
    (snippet,) = [
        snippet.body
        for snippet in snippets_of(ROOT / "docs" / "integrations.md")
        if snippet.info == "json opencode.json"
    ]
    snippet = snippet.replace("/path/to/client-venv", str(home / "client-venv"))
    settings = json.loads(snippet.replace("/path/to/project", str(task.folder)))
    tool = f"{next(iter(settings['mcp']))}_{OUR_MCP_SERVER.tool}"
    with scripted_model(tool, OUR_MCP_SERVER.arguments(task)) as model_url:
        settings["provider"] = {
            "scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": model_url, "apiKey": "none"},
                "models": {"scripted": {"tool_call": True}},
            }
        }
        (home / "opencode.json").write_text(json.dumps(settings))
        run = subprocess.run(
            [str(OPENCODE), "run", "--format", "json", "--model", "scripted/scripted", "Edit it."],
            cwd=task.folder,
            env=environment_of(
                task.folder,
                OPENCODE_CONFIG=str(home / "opencode.json"),
                OPENCODE_DISABLE_AUTOUPDATE="1",
                OPENCODE_DISABLE_DEFAULT_PLUGINS="1",
                OPENCODE_DISABLE_MODELS_FETCH="1",
                APPLY_SERVICE_URL=task.server.url,
                APPLY_API_KEY=task.server.key,
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=ANSWER_LIMIT_S,
            check=False,
        )
    events = [json.loads(line) for line in run.stdout.split("\n")[:-1]]
    states = [event["part"]["state"] for event in events if event["type"] == "tool_use"]
    assert len(states) == 1, run.stdout + run.stderr
    return Outcome(task.path.read_bytes(), states[0].get("error"))


MORPH_MCP_SERVER = McpServer(
    command=lambda task: [str(NODE), str(MODULES / "@morphllm" / "morphmcp" / "dist" / "index.js")],
    environment=lambda task: {
        "MORPH_API_URL": task.server.url,
        "MORPH_API_KEY": f"sk-{task.server.key}",  # it refuses others itself
        "WORKSPACE_ROOT": str(task.folder),
    },
    tool="edit_file",
    arguments=lambda task: {
        "path": str(task.path),
        "instruction": task.edit.instruction,
        "code_edit": task.edit.update,
    },
)

RELACE_MCP_SERVER = McpServer(
    command=lambda task: [str(VENV / "bin" / "relace-mcp")],
    environment=lambda task: {
        "APPLY_ENDPOINT": f"{task.server.url}/v1/apply",
        "RELACE_API_KEY": task.server.key,
        "MCP_BASE_DIR": str(task.folder),
    },
    tool="fast_apply",
    arguments=lambda task: {
        "path": str(task.path),
        "instruction": task.edit.instruction,
        "edit_snippet": task.edit.update,
    },
)

MORPH_SDK = RealClient("Morph SDK", "@morphllm/morphsdk", "node", node_driver("morph_sdk.mjs"))

CLIENTS = [
    RealClient(
        "OpenAI, Python",
        "openai",
        "service",
        python_driver("openai_python.py", python=Path(sys.executable)),
        can_stream=True,
        can_resolve=True,
    ),
    RealClient(
        "OpenAI, Node.js",
        "openai",
        "node",
        node_driver("openai.mjs"),
        can_stream=True,
        can_resolve=True,
    ),
    RealClient(
        "OpenAI responses, Python",
        "openai",
        "service",
        python_driver("openai_python.py", "responses", python=Path(sys.executable)),
        can_stream=True,
        can_resolve=True,
    ),
    RealClient(
        "OpenAI responses, Node.js",
        "openai",
        "node",
        node_driver("openai.mjs", "responses"),
        can_stream=True,
        can_resolve=True,
    ),
    RealClient(
        "Anthropic, Python",
        "anthropic",
        "clients",
        python_driver("anthropic_python.py"),
        can_stream=True,
        can_resolve=True,
    ),
    MORPH_SDK,
    RealClient("AI SDK", "ai", "node", node_driver("ai_sdk.mjs"), can_stream=True),
    RealClient(
        "LangChain", "langchain-openai", "clients", python_driver("langchain.py"), can_stream=True
    ),
    RealClient("LiteLLM", "litellm", "clients", python_driver("lite_llm.py"), can_stream=True),
    RealClient("llm", "llm", "clients", python_driver("llm_cli.py"), can_stream=True),
    RealClient("Morph MCP", "@morphllm/morphmcp", "node", MORPH_MCP_SERVER),
    RealClient("relace-mcp", "relace-mcp", "clients", RELACE_MCP_SERVER),
    RealClient("MCP client, Python", "mcp", "service", OUR_MCP_SERVER),
    RealClient("MCP inspector", "@modelcontextprotocol/inspector", "node", inspect),
    RealClient("OpenCode", "opencode-linux-x64-baseline", "node", have_opencode_edit),
]
