"""The language server as an editor sees it: a process, the protocol's own client, real buffers."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from editor_cases import DOUBT, DOUBTFUL, GREETING, UPDATE, decorated_cases, merged_of
from lsprotocol import types
from oracles.edits.lsp_document import apply_text_edits
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.client import LanguageClient

from apply_service.edit.text.text_edits import Position, TextEdit

ROOT = Path(__file__).parents[3]
LIMIT_S = 60.0


class Editor:
    """A client with documents, which takes edits as the protocol says."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.taken: list[types.ApplyWorkspaceEditParams] = []
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.messages: list[str] = []
        self.questions: list[types.ShowMessageRequestParams] = []
        self.choose: Callable[[types.ShowMessageRequestParams], str | None] = lambda _: None
        self.refuses = False
        client.feature(types.WORKSPACE_APPLY_EDIT)(lambda one: self._take(one))
        client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(lambda one: self._ask(one))
        client.feature(types.WINDOW_SHOW_MESSAGE)(lambda one: self.messages.append(one.message))
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda one: self.diagnostics.__setitem__(one.uri, list(one.diagnostics))
        )

    def open(self, uri: str, text: str) -> None:
        self.texts[uri], self.versions[uri] = text, 1
        document = types.TextDocumentItem(uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def change(self, uri: str, text: str) -> None:
        """Somebody has typed; the whole text is sent."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version=self.versions[uri], uri=uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def run(self, command: str, *arguments: Any) -> dict[str, Any]:
        """A command's result, once the editor has done what it was told before it."""
        params = types.ExecuteCommandParams(command, arguments=list(arguments))
        result = await self.client.workspace_execute_command_async(params)
        assert isinstance(result, dict) or hasattr(result, "_asdict"), result
        return result if isinstance(result, dict) else dict(result._asdict())

    def _take(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.taken.append(params)
        changes = list((params.edit.changes or {}).items())
        for change in params.edit.document_changes or ():
            assert isinstance(change, types.TextDocumentEdit)
            identity = change.text_document
            if self.refuses or identity.version != self.versions[identity.uri]:
                return types.ApplyWorkspaceEditResult(False, "another version")
            changes.append((identity.uri, list(change.edits)))  # type: ignore[arg-type]
        for uri, edits in changes:
            own = [
                TextEdit(
                    Position(one.range.start.line, one.range.start.character),
                    Position(one.range.end.line, one.range.end.character),
                    one.new_text,
                )
                for one in edits
            ]
            self.change(uri, apply_text_edits(self.texts[uri], own))
        return types.ApplyWorkspaceEditResult(True)

    def _ask(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        self.questions.append(params)
        title = self.choose(params)
        return None if title is None else types.MessageActionItem(title)


def capabilities(*, is_able: bool = True) -> types.ClientCapabilities:
    able = types.WorkspaceEditClientCapabilities(
        document_changes=is_able,
        change_annotation_support=types.ChangeAnnotationsSupportOptions() if is_able else None,
    )
    return types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(apply_edit=True, workspace_edit=able)
    )


@asynccontextmanager
async def editor_at(
    root: Path,
    *,
    is_able: bool = True,
    environment: dict[str, str] | None = None,
    log: Path = Path(os.devnull),
) -> AsyncIterator[Editor]:
    """An editor with a server of its own, which logs to a file."""
    client = LanguageClient("editor", "1")
    editor = Editor(client)
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("APPLY_")}
    await client.start_io(
        *("/bin/sh", "-c", 'exec "$0" -m apply_service lsp 2> "$1"', sys.executable, str(log)),
        env={**inherited, "PYTHONPATH": str(ROOT), **(environment or {})},
    )
    await client.initialize_async(
        types.InitializeParams(capabilities=capabilities(is_able=is_able), root_uri=root.as_uri())
    )
    client.initialized(types.InitializedParams())
    try:
        yield editor
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, LIMIT_S))


def test_an_update_becomes_an_edit_of_the_buffer(tmp_path: Path) -> None:
    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            uri = (tmp_path / "greet.py").as_uri()
            editor.open(uri, GREETING)
            result = await editor.run("apply-service.apply", uri, UPDATE)
            assert result["status"] == "applied"
            assert result["has_changed"]
            assert editor.texts[uri] == GREETING.replace("(name)", "(name, mark='!')").replace(
                "+ name)", "+ name + mark)"
            )
            edit = editor.taken[0].edit
            assert edit.changes is None
            assert edit.change_annotations is not None
            assert [one.label for one in edit.change_annotations.values()] == ["Apply update"]
            assert editor.taken[0].label is not None
            assert "applied" in editor.taken[0].label

            again = await editor.run("apply-service.apply", uri, UPDATE)
            assert (again["status"], again["has_changed"]) == ("unchanged", False)

    run(work())


@pytest.mark.editors
def test_a_client_without_versions_gets_plain_changes(tmp_path: Path) -> None:
    async def work() -> None:
        async with editor_at(tmp_path, is_able=False) as editor:
            uri = (tmp_path / "greet.py").as_uri()
            editor.open(uri, GREETING)
            result = await editor.run("apply-service.apply", uri, UPDATE)
            assert result["status"] == "applied"
            assert editor.taken[0].edit.document_changes is None
            assert "mark='!'" in editor.texts[uri]

    run(work())


def test_a_doubt_is_a_question_and_its_answer_an_edit(tmp_path: Path) -> None:
    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            uri = (tmp_path / "a.py").as_uri()
            editor.open(uri, DOUBTFUL)
            result = await editor.run("apply-service.apply", uri, DOUBT)
            assert result["status"] == "needs_review"
            assert not editor.taken
            assert len(editor.questions) == 1
            shown = editor.questions[0]
            assert shown.actions is not None
            assert len(shown.actions) == len(result["choices"]) >= 2
            assert [one.code for one in editor.diagnostics[uri]] == ["ambiguous_place"]
            assert editor.texts[uri] == DOUBTFUL

            texts = set()
            for number in range(2):
                editor.change(uri, DOUBTFUL)
                editor.choose = lambda params, number=number: (params.actions or [])[number].title
                result = await editor.run("apply-service.apply", uri, DOUBT)
                assert (result["status"], result["has_changed"]) == ("applied", True)
                texts.add(editor.texts[uri])
            assert texts == {"a = 3\n\nb = 2\n\na = 1\n", "a = 1\n\nb = 2\n\na = 3\n"}
            editor.change(uri, DOUBTFUL)
            chosen = str(result["choices"][0]["id"]) if result["choices"] else None
            assert chosen is None, "what was resolved has no choices left"

    run(work())


@pytest.mark.editors
@pytest.mark.parametrize("asks_people", [True, False], ids=["unanswered", "no questions"])
def test_a_question_without_an_answer_stands_among_the_code_actions(
    tmp_path: Path, asks_people: bool
) -> None:
    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            uri = (tmp_path / "a.py").as_uri()
            editor.open(uri, DOUBTFUL)
            if not asks_people:
                del editor.client.protocol.fm.features[types.WINDOW_SHOW_MESSAGE_REQUEST]
            result = await editor.run("apply-service.apply", uri, DOUBT)
            assert result["status"] == "needs_review"
            assert len(editor.questions) == asks_people
            texts = set()
            for number in range(2):
                offered = await choices_at(editor, uri)
                assert len(offered) == len(result["choices"])
                chosen = await editor.run(
                    offered[number].command, *(offered[number].arguments or ())
                )
                assert (chosen["status"], chosen["has_changed"]) == ("applied", True)
                texts.add(editor.texts[uri])
                assert not await choices_at(editor, uri), "the question is answered"
                editor.change(uri, DOUBTFUL)
                await editor.run("apply-service.apply", uri, DOUBT)
            assert texts == {"a = 3\n\nb = 2\n\na = 1\n", "a = 1\n\nb = 2\n\na = 3\n"}
            editor.change(uri, DOUBTFUL + "c = 3\n")
            assert not await choices_at(editor, uri), "the question was about another text"

    run(work())


async def choices_at(editor: Editor, uri: str) -> list[types.Command]:
    """The code actions that answer a question."""
    place = types.Position(0, 0)
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(uri), types.Range(place, place), types.CodeActionContext([])
    )
    actions = await editor.client.text_document_code_action_async(params)
    commands = [one for one in actions or () if isinstance(one, types.Command)]
    return [one for one in commands if one.title.startswith("Apply the update: ")]


@pytest.mark.editors
def test_findings_go_when_the_text_changes(tmp_path: Path) -> None:
    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            uri = (tmp_path / "a.py").as_uri()
            editor.open(uri, DOUBTFUL)
            await editor.run("apply-service.apply", uri, DOUBT)
            assert editor.diagnostics[uri]
            editor.change(uri, DOUBTFUL + "c = 3\n")
            update = "# ...\nb = 2\nb2 = 2\n# ...\n"
            await editor.run("apply-service.apply", uri, update)
            assert editor.diagnostics[uri] == []

    run(work())


@pytest.mark.editors
def test_a_refused_update_says_why_and_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            uri = (tmp_path / "greet.py").as_uri()
            editor.open(uri, GREETING)
            diff = "@@ -1,2 +1,2 @@\n-MAXIMUM = compute()\n+MAXIMUM = 20\n"
            result = await editor.run("apply-service.apply", uri, diff)
            assert result["status"] == "rejected"
            assert result["findings"][0]["code"] == "anchor_not_found"
            assert [one.code for one in editor.diagnostics[uri]] == ["anchor_not_found"]
            result = await editor.run("apply-service.apply", uri, "")
            assert result["status"] == "failed"
            assert result["message"]
            wrong: list[tuple[Any, ...]] = [
                *((uri, UPDATE, {"format": "poem"}), (uri, UPDATE, {"x": 1}), (uri, 3), ()),
                (uri, UPDATE, {}, "more"),
            ]
            for arguments in wrong:
                with pytest.raises(JsonRpcInvalidParams):
                    await editor.run("apply-service.apply", *arguments)
            assert len(editor.messages) == 2
            assert not editor.taken
            assert editor.texts[uri] == GREETING

    run(work())


@pytest.mark.editors
def test_an_editor_that_does_not_take_the_edit_is_told(tmp_path: Path) -> None:
    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            uri = (tmp_path / "greet.py").as_uri()
            editor.open(uri, GREETING)
            editor.refuses = True
            result = await editor.run("apply-service.apply", uri, UPDATE)
            assert result["status"] == "failed"
            assert "another version" in result["message"]

    run(work())


@pytest.mark.editors
@pytest.mark.parametrize("is_able", [True, False])
def test_what_was_typed_meanwhile_is_not_written_over(tmp_path: Path, is_able: bool) -> None:
    async def work() -> None:
        async with editor_at(tmp_path, is_able=is_able) as editor:
            uri = (tmp_path / "a.py").as_uri()
            editor.open(uri, DOUBTFUL)

            def type_and_choose(params: types.ShowMessageRequestParams) -> str:
                editor.change(uri, "typed\n" + DOUBTFUL)
                return (params.actions or [])[0].title

            editor.choose = type_and_choose
            result = await editor.run("apply-service.apply", uri, DOUBT)
            assert (result["status"], result["has_changed"]) == ("failed", False)
            assert "has changed" in result["message"]
            assert editor.texts[uri] == "typed\n" + DOUBTFUL

    run(work())


@pytest.mark.editors
def test_an_update_may_be_selected_or_a_document_of_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            uri, source = ((tmp_path / name).as_uri() for name in ("greet.py", "update.txt"))
            editor.open(uri, GREETING)
            editor.open(source, UPDATE)
            result = await editor.run("apply-service.applyDocument", uri, source)
            assert result["status"] == "applied"
            expected = editor.texts[uri]

            # Pasted behind the code, and selected.
            editor.change(uri, GREETING + UPDATE)
            last = GREETING.count("\n")
            selection = types.Range(
                types.Position(last, 0), types.Position(last + UPDATE.count("\n"), 0)
            )
            result = await editor.run("apply-service.applySelection", uri, uri, selection)
            assert result["status"] == "applied"
            assert editor.texts[uri] == expected

    run(work())


def test_what_is_no_document_and_no_regular_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin-1").write_bytes(b"\xe9")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 42)
    (tmp_path / "update.txt").write_text(UPDATE)
    log = tmp_path / "log"
    names = ("pipe", "latin-1", "large", "missing", "")
    uris = [(tmp_path / name).as_uri() for name in names]
    uris += ["/dev/zero", "file:///dev/zero", "untitled:Untitled-1", "https://example.com/a.py"]
    uris += ["", "a.py", "file://[", "http://[", "file:///a%00b", "\x1b[2J" * 1000]

    async def work() -> None:
        async with editor_at(tmp_path, log=log) as editor:
            own = (tmp_path / "greet.py").as_uri()
            editor.open(own, GREETING)
            nowhere = types.Range(types.Position(0, 0), types.Position(0, 0))
            for uri in uris:
                for command, *arguments in (
                    ("apply", uri, UPDATE),
                    ("applyDocument", own, uri),
                    ("applySelection", own, uri, nowhere),
                ):
                    with pytest.raises(JsonRpcInvalidParams, match="cannot be read") as caught:
                        await editor.run(f"apply-service.{command}", *arguments)
                    assert len(str(caught.value)) < 500
                assert await choices_at(editor, uri) == []
            assert editor.texts[own] == GREETING
            unopened = (tmp_path / "update.txt").as_uri()
            result = await editor.run("apply-service.applyDocument", own, unopened)
            assert result["status"] == "applied"

    run(work())
    assert "Traceback" not in log.read_text()
    assert "\x1b" not in log.read_text()


@pytest.mark.editors
def test_the_clipboard_is_read_by_a_program_of_the_system(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "update").write_text(UPDATE)
    program = programs / "xclip"
    program.write_text(f"#!/bin/sh\n/bin/cat {tmp_path / 'update'}\n")
    program.chmod(0o755)

    async def work(path: str, status: str) -> None:
        async with editor_at(tmp_path, environment={"PATH": path}) as editor:
            uri = (tmp_path / "greet.py").as_uri()
            editor.open(uri, GREETING)
            nowhere = types.Range(types.Position(0, 0), types.Position(0, 0))
            actions = await editor.client.text_document_code_action_async(
                types.CodeActionParams(
                    types.TextDocumentIdentifier(uri), nowhere, types.CodeActionContext([])
                )
            )
            assert actions is not None
            (action,) = actions
            assert isinstance(action, types.Command)
            result = await editor.run(action.command, *(action.arguments or ()))
            assert result["status"] == status, result

    run(work(str(programs), "applied"))
    run(work(str(tmp_path), "failed"))


@pytest.mark.editors
@pytest.mark.timeout(11 * LIMIT_S)
def test_two_hundred_edits_leave_the_buffer_as_the_merge(tmp_path: Path) -> None:
    cases = list(decorated_cases(200, random.Random(0)))

    async def work() -> None:
        async with editor_at(tmp_path) as editor:
            editor.choose = lambda params: (params.actions or [])[0].title
            num_changed = num_asked = 0
            for number, (path, original, update) in enumerate(cases):
                name = f"{number}/{path}"
                uri = (tmp_path / name).as_uri()
                editor.open(uri, original)
                result = await editor.run("apply-service.apply", uri, update)
                num_asked += len(editor.questions)
                editor.questions.clear()
                assert editor.texts[uri] == merged_of(original, update, name), name
                num_changed += result["has_changed"]
            assert num_changed > 150
            assert num_asked > 20

    asyncio.run(asyncio.wait_for(work(), 10 * LIMIT_S))
