"""OpenAI's package and the official MCP client at a server with the real model.

Those two are here with the other packages of the tests; `make test-clients` runs many more.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from client_edits import DOUBTFUL, UNICODE
from real_clients import CLIENTS, RealClient, Server, Task

INSTALLED = [client for client in CLIENTS if client.home == "service"]


@pytest.mark.parametrize("client", INSTALLED, ids=lambda client: client.name)
def test_an_edit_is_right_and_a_doubt_is_told(
    client: RealClient, embedded_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for edit in (UNICODE, DOUBTFUL):
        task = Task(Server(embedded_url, "none"), edit, folder)
        task.path.write_bytes(edit.original.encode())
        outcome = client.run(task)
        assert outcome.content == (edit.expected or edit.original).encode()
        assert (outcome.error is None) == (edit.expected is not None), outcome.error
    assert "ambiguous_place" in str(outcome.error)
    assert "line 17" in str(outcome.error)
