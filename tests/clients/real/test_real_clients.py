"""Clients of other makers at a server with the real model: the right file, or a finding."""

from __future__ import annotations

from pathlib import Path

import pytest
from client_edits import CRLF, DOUBTFUL, LARGE, MEANT, RESOLVED, SMALL, UNICODE, ClientEdit
from client_table import Row
from real_clients import CLIENTS, Outcome, RealClient, Server, Task

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name),
]
FILE_EDITS = [SMALL, LARGE, CRLF, UNICODE]


def run(
    client: RealClient,
    server: Server,
    edit: ClientEdit,
    folder: Path,
    *,
    is_streamed: bool = False,
    chosen: str | None = None,
) -> Outcome:
    task = Task(server, edit, folder, is_streamed, chosen)
    task.path.write_bytes(edit.original.encode())
    return client.run(task)


@pytest.mark.parametrize("edit", FILE_EDITS, ids=lambda edit: edit.name)
def test_the_file_is_right(
    client: RealClient, edit: ClientEdit, server: Server, folder: Path, row: Row
) -> None:
    row.begin(edit.name)
    outcome = run(client, server, edit, folder)
    limit = client.own_limits.get(edit.name)
    if limit is None:
        assert outcome.error is None
        assert edit.expected is not None
        assert outcome.content == edit.expected.encode()
        row.came(edit.name, "right")
    else:
        assert outcome.content == edit.original.encode()
        assert limit in str(outcome.error)
        row.came(edit.name, f"refused by the client: {limit}")


def test_an_edit_in_doubt_is_an_error_with_its_finding(
    client: RealClient, server: Server, folder: Path, row: Row
) -> None:
    row.begin(DOUBTFUL.name)
    outcome = run(client, server, DOUBTFUL, folder)
    assert outcome.content == DOUBTFUL.original.encode()
    limit = client.own_limits.get(DOUBTFUL.name)
    if limit is None:
        for part in ("ambiguous_place", "line 17"):
            assert part in str(outcome.error)
        row.came(DOUBTFUL.name, "refused")
    else:
        assert limit in str(outcome.error)
        row.came(DOUBTFUL.name, f"refused by the client: {limit}")


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_answer_to_a_question_makes_the_right_file(
    client: RealClient, server: Server, folder: Path, row: Row, is_streamed: bool
) -> None:
    row.begin("answered")
    if not client.can_resolve:
        row.came("answered", "–")
        return
    outcome = run(client, server, DOUBTFUL, folder, is_streamed=is_streamed, chosen=MEANT)
    assert outcome.error is None
    assert (folder / DOUBTFUL.file).read_text() == RESOLVED
    row.came("answered", "right")


def test_a_stream_has_the_same_text(
    client: RealClient, server: Server, folder: Path, row: Row
) -> None:
    row.begin("streaming")
    if not client.can_stream:
        row.came("streaming", "–")
        return
    outcome = run(client, server, LARGE, folder, is_streamed=True)
    assert outcome.error is None
    assert LARGE.expected is not None
    assert outcome.content == LARGE.expected.encode()
    assert outcome.num_pieces is None or outcome.num_pieces > 1
    row.came("streaming", "right")


def test_a_wrong_key_is_said_to_be_one(
    client: RealClient, server: Server, folder: Path, row: Row
) -> None:
    row.begin("wrong key")
    outcome = run(client, Server(server.url, "wrong"), SMALL, folder)
    assert outcome.content == SMALL.original.encode()
    assert "API key" in str(outcome.error)
    row.came("wrong key", "refused")
