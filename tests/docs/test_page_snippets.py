"""Each snippet of the pages is run as it stands there, or its reason not to be is written here.

The server is a process of its own with the embedded model and no settings. A snippet that nobody
knows fails `test_every_snippet_is_known`: run it below, or say who does or why nobody can.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from page_snippets import PageSnippet, pages, snippets_of
from program_folder import ROOT, run_shell, write_programs

from apply_service.http.compat.morph_message import EXAMPLE
from benchmarks.picture.command import PICTURE, edit_to_show, picture_of

SNIPPETS = [snippet for page in pages() for snippet in snippets_of(page)]
GREET = 'import sys\n\n\ndef greet(name):\n    print("Hello " + name)\n\n\n'
GREET += "def main():\n    greet(sys.argv[1])\n"
GREET_UPDATE = "# ...\ndef greet(name):\n    print('Hi ' + name)\n# ...\n"

# Examples of updates and the snippets of other pages have tests of their own, by page and by the
# kind of snippet ("" is any).
RUN_ELSEWHERE = {
    ("CONTRIBUTING.md", "python"): "tests/docs/test_contributing.py",
    ("docs/verdicts.md", ""): "tests/apply_service/edit/verdict/test_verdict_docs.py",
    ("docs/agent-prompt.md", "python"): "tests/apply_service/http/test_edit_tool.py",
    ("docs/agent-prompt.md", "diff"): "tests/apply_service/http/test_edit_tool.py",
    ("docs/agent-prompt.md", "text"): "tests/apply_service/http/test_edit_tool.py",
    ("docs/agent-forms.md", ""): "tests/apply_service/http/routes/test_forms.py",
    ("docs/drafters.md", "console"): "tests/apply_service/models/test_drafters_setting.py",
    ("docs/integrations.md", "json"): "tests/clients/python/test_integrations.py",
    ("docs/integrations.md", "toml"): "tests/clients/python/test_integrations.py",
    ("docs/integrations.md", "yaml"): "tests/clients/python/test_integrations.py",
    ("docs/integrations.md", "sh edit.sh"): "tests/clients/python/test_integrations.py",
    ("docs/integrations.md", "sh curl"): "tests/clients/python/test_integrations.py",
    ("clients/typescript/README.md", "js"): "tests/clients/typescript/test_typescript_readme.py",
    ("clients/typescript/README.md", "text"): "tests/clients/typescript/test_typescript_readme.py",
}

# By page and beginning.
NOT_RUN = {
    ("README.md", "make demo     #"): "the two commands themselves; tests/end_to_end/test_demo.py"
    " runs the first one's program",
    ("CONTRIBUTING.md", "make test"): "the suite itself",
    ("CONTRIBUTING.md", "pytest tests"): "commands of minutes that change the tree or stay",
    ("README.md", "make demo TORCH_INDEX"): "sets up an environment from a package index",
    ("docs/integrations.md", "python3 -m venv"): "installs from a package index",
    ("docs/integrations.md", "To change an existing file"): "words for a model",
    ("docs/integrations.md", "(require 'eglot)"): "needs Emacs, where it was tried",
    ("docs/integrations.md", "[language-server.apply-service]"): "needs Helix; not tried",
    ("docs/batch.md", "apply-service batch"): "needs a cluster; tests/apply_service/fleet/batch has"
    " its parts",
    ("docs/capacity.md", "apply-service plan"): "the second line needs a machine that has served;"
    " tests/apply_service/fleet/test_capacity.py runs the first",
    ("docs/operations.md", "export RAY_SERVE"): "starts a cluster, as tests/apply_service/fleet do",
    ("docs/judge.md", "apply-service serve"): "needs a judge; tests/apply_service/http/routes/"
    "test_judged_edits.py has one of recorded shape",
    ("docs/writer.md", "apply-service bench"): "needs a writer; tests/apply_service/evaluate/"
    "test_judging.py has one of recorded shape",
    ("docs/writer.md", "apply-service serve"): "needs a writer; tests/apply_service/http/routes/"
    "test_written_edits.py has one of recorded shape",
    ("docs/judge.md", "apply-service bench"): "needs a judge; tests/apply_service/evaluate/"
    "test_judging.py runs it at one of recorded shape",
    ("docs/security.md", "# nginx"): "settings of a proxy that is not here",
    ("clients/python/README.md", "pip install"): "installs from a package index",
    ("clients/typescript/README.md", "cd clients/typescript"): "installs from a package index",
    ("clients/typescript/README.md", "ApplyClientError ←"): "a drawing of classes",
}  # fmt: skip
# What a snippet that is not run must not have.
CALLS = ("curl", "OpenAI(", "ApplyClient(", "apply-client ", "apply-service apply")


@dataclass(frozen=True)
class Bench:
    """Where a snippet is run: a folder with greet.py and update.txt, and a server."""

    folder: Path
    url: str

    def shell(self, snippet: PageSnippet, **environment: str) -> str:
        """What a shell prints that runs a snippet, which must go well to its end."""
        environment = {
            "PATH": f"{self.folder / '.venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "APPLY_API_KEY": "any",
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        } | environment
        script = f"set -e\n{snippet.at(self.url)}"
        done = run_shell(script, folder=self.folder, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, snippet: PageSnippet) -> str:
        """What Python prints that runs a snippet."""
        program = self.folder / "snippet.py"
        program.write_text(snippet.at(self.url))
        script = f"PYTHONPATH={ROOT / 'clients' / 'python'} {sys.executable} -W error {program}"
        done = run_shell(
            script, folder=self.folder, APPLY_SERVICE_URL=self.url, APPLY_API_KEY="any"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def bench(embedded_url: str, tmp_path: Path) -> Bench:
    write_programs(tmp_path / ".venv" / "bin")
    (tmp_path / "greet.py").write_text(GREET)
    (tmp_path / "update.txt").write_text(GREET_UPDATE)
    (tmp_path / "edits.jsonl").write_text(
        json.dumps({"path": "greet.py", "update": GREET_UPDATE}) + "\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return Bench(tmp_path, embedded_url)


def snippet_after(snippet: PageSnippet) -> PageSnippet:
    """The next snippet of the same page."""
    following = SNIPPETS[SNIPPETS.index(snippet) + 1]
    assert following.page == snippet.page
    return following


def parts_like(expected: Any, value: Any) -> Any:
    """The parts of a value that another one has as well."""
    if isinstance(expected, dict) and isinstance(value, dict):
        return {name: parts_like(expected[name], value.get(name)) for name in expected}
    return value


def run_one_request(bench: Bench, snippet: PageSnippet) -> None:
    answer = json.loads(bench.shell(snippet))
    shown = json.loads(snippet_after(snippet).body)
    assert parts_like(shown, answer) == shown


def run_apply(bench: Bench, snippet: PageSnippet) -> None:
    assert "+    print('Hi ' + name)\n" in bench.shell(snippet)


def run_openai(bench: Bench, snippet: PageSnippet) -> None:
    printed = bench.python(snippet)
    assert "def greet(name, mark='!'):\n    print('Hello ' + name + mark)\n" in printed


def run_question(bench: Bench, snippet: PageSnippet) -> None:
    assert bench.python(snippet) in ("a = 3\n\nb = 2\n\na = 1\n\n", "a = 1\n\nb = 2\n\na = 3\n\n")


def run_fields(bench: Bench, snippet: PageSnippet) -> None:
    assert json.loads(bench.shell(snippet))["merged_code"] == "a = 1\nb = 5\nc = 3\n"


def run_several_files(bench: Bench, snippet: PageSnippet) -> None:
    answer = json.loads(bench.shell(snippet))
    assert (answer["status"], answer["in_doubt"]) == ("applied", [])
    assert [file["result"]["merged"] for file in answer["files"]] == ["a = 2\n", "b = 2\n"]


def run_tool(bench: Bench, snippet: PageSnippet) -> None:
    assert json.loads(bench.shell(snippet))["name"] == "edit_file"


def run_message_form(bench: Bench, snippet: PageSnippet) -> None:
    """The form of a message is the one that an error shows."""
    assert snippet.body == f"{EXAMPLE}\n"


def run_python_client(bench: Bench, snippet: PageSnippet) -> None:
    printed = bench.python(snippet)
    if "stream" in snippet.body:
        assert printed.endswith("applied\n")
    else:
        assert printed.startswith("applied ")
        assert "\ndef greet(name, mark):\n    print(name + mark)\n" in printed


def run_client_commands(bench: Bench, snippet: PageSnippet) -> None:
    printed = bench.shell(snippet, APPLY_SERVICE_URL=bench.url)
    assert "+    print('Hi ' + name)\n" in printed
    assert (bench.folder / "greet.py").read_text() == GREET.replace('"Hello "', "'Hi '")


def run_status(bench: Bench, snippet: PageSnippet) -> None:
    (bench.folder / "client-venv").symlink_to(bench.folder / ".venv")
    assert "embedded" in bench.shell(snippet, APPLY_SERVICE_URL=bench.url)


def run_batch_file(bench: Bench, snippet: PageSnippet) -> None:
    """The lines of the page, and then the commands below them."""
    digest = hashlib.sha256(GREET.encode()).hexdigest()
    edits = snippet.body.replace("64 hex digits", digest)
    (bench.folder / "edits.jsonl").write_text(edits)
    bench.shell(snippet_after(snippet), APPLY_SERVICE_URL=bench.url)
    written = (bench.folder / "greet.py").read_text()
    assert 'def greet(name, mark):\n    print("Hello " + name + mark)\n' in written
    assert "def main() -> None:\n" in written
    assert "+def main() -> None:\n" in (bench.folder / "all.patch").read_text()


def run_batch_route(bench: Bench, snippet: PageSnippet) -> None:
    answers = [json.loads(line) for line in bench.shell(snippet).splitlines()]
    shown = [json.loads(line) for line in snippet_after(snippet).body.splitlines()]
    by_line = {answer["line"]: answer for answer in answers}
    assert len(by_line) == len(shown)
    for line in shown:
        assert parts_like(line, by_line[line["line"]]) == line


def run_settings(bench: Bench, snippet: PageSnippet) -> None:
    (bench.folder / "settings.toml").write_text(snippet.body)
    command = PageSnippet("", 0, "sh", "apply-service config --config settings.toml")
    shown = bench.shell(command)
    for name, value in (("port", "9000"), ("kv_memory", "1GiB")):
        (line,) = (line for line in shown.splitlines() if line.split()[:1] == [name])
        assert value in line
        assert "settings.toml" in line


def run_keys(bench: Bench, snippet: PageSnippet) -> None:
    """The commands make the file that the page shows."""
    bench.shell(snippet)
    (path,) = bench.folder.glob("config/**/keys.json")
    written = json.loads(path.read_text())
    (shown,) = (one for one in SNIPPETS if one.page == snippet.page and one.info == "json")
    expected = json.loads(shown.body)
    assert list(written) == list(expected)
    assert [list(key) for key in written["keys"]] == [list(expected["keys"][0])] * 2
    assert [key["name"] for key in written["keys"]] == ["ci", "prometheus"]


def run_models(bench: Bench, snippet: PageSnippet) -> None:
    assert json.loads(bench.shell(snippet))["data"]


# By page and beginning. A snippet of which only the output stands on the page is compared by the
# one before it, or that uses it.
RUN_HERE: dict[tuple[str, str], Callable[[Bench, PageSnippet], None] | None] = {
    ("README.md", "curl -s http://127.0.0.1:8722/v1/apply"): run_one_request,
    ("README.md", "{"): None,
    ("README.md", ".venv/bin/apply-service apply"): run_apply,
    ("README.md", "from openai"): run_openai,
    ("docs/compatibility.md", "import openai"): run_question,
    ("docs/compatibility.md", "curl -s http://127.0.0.1:8722/v1/code/apply"): run_fields,
    ("docs/compatibility.md", "<instruction>"): run_message_form,
    ("docs/agent-prompt.md", "curl -s"): run_tool,
    ("docs/batch.md", '{"path": "greet.py"'): run_batch_file,
    ("docs/batch.md", "apply-client batch"): None,
    ("docs/batch.md", "curl -sN"): run_batch_route,
    ("docs/batch.md", '{"id": "second"'): None,
    ("docs/configuration.md", "port = 9000"): run_settings,
    ("docs/integrations.md", "client-venv/bin/apply-client status"): run_status,
    ("docs/integrations.md", "curl -sS http://127.0.0.1:8722/v1/apply -H"): run_several_files,
    ("docs/security.md", "apply-service key create"): run_keys,
    ("docs/security.md", "curl http://127.0.0.1:8722/v1/models"): run_models,
    ("docs/security.md", "{"): None,
    ("clients/python/README.md", "from apply_client"): run_python_client,
    ("clients/python/README.md", "apply-client status"): run_client_commands,
}


def homes_of(snippet: PageSnippet) -> list[tuple[str, str]]:
    """The entries of all tables that speak of a snippet."""
    keys = [*RUN_HERE, *NOT_RUN]
    begun = [key for key in keys if key[0] == snippet.page and snippet.body.startswith(key[1])]
    return [
        *begun,
        *(key for key in RUN_ELSEWHERE if key[0] == snippet.page and _is_kind(snippet, key[1])),
    ]


def _is_kind(snippet: PageSnippet, kind: str) -> bool:
    words = kind.split()
    return snippet.info.split()[: len(words)] == words


def test_every_snippet_is_known() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for snippet in SNIPPETS:
        homes = homes_of(snippet)
        place = f"{snippet.page}, line {snippet.line}: {snippet.first_line}"
        assert homes, f"nothing runs the snippet in {place}"
        if snippet.page == "docs/integrations.md" and len(homes) == 2:
            homes = [home for home in homes if home not in RUN_ELSEWHERE]
        assert len(homes) == 1, f"{homes} all speak of the snippet in {place}"
        seen.update(homes)
    forgotten = {*RUN_HERE, *NOT_RUN, *RUN_ELSEWHERE} - seen.keys()
    assert not forgotten, f"no page has these any more: {forgotten}"


def test_what_is_run_elsewhere_has_its_test() -> None:
    for (page, _kind), test in RUN_ELSEWHERE.items():
        name = Path(page).name
        code = (ROOT / test).read_text()
        reader = (ROOT / "tests" / "helpers" / "edits" / "verdict_examples.py").read_text()
        assert name in code or name in reader, f"{test} does not read {page}"


def test_what_is_not_run_does_not_call_the_service() -> None:
    for snippet in SNIPPETS:
        if any(key in NOT_RUN for key in homes_of(snippet)):
            found = [call for call in CALLS if call in snippet.body]
            assert not found, f"{snippet.page}, line {snippet.line} calls the service: {found}"


RUNS = [
    (snippet, run)
    for snippet in SNIPPETS
    for key in homes_of(snippet)
    if (run := RUN_HERE.get(key)) is not None
]


@pytest.mark.parametrize(
    ("snippet", "run"),
    RUNS,
    ids=[f"{snippet.page}:{snippet.first_line[:40]}" for snippet, _ in RUNS],
)
def test_a_snippet_does_what_the_page_says(
    bench: Bench, snippet: PageSnippet, run: Callable[[Bench, PageSnippet], None]
) -> None:
    run(bench, snippet)


def test_the_picture_of_the_readme_shows_the_answer(embedded_url: str) -> None:
    body = edit_to_show()
    answer = httpx.post(f"{embedded_url}/v1/apply", json=body).raise_for_status().json()
    assert picture_of(body, answer) == PICTURE.read_text(encoding="utf-8"), (
        "write it anew: python -m benchmarks picture"
    )
    assert f"](docs/{PICTURE.name})" in (ROOT / "README.md").read_text(encoding="utf-8")
