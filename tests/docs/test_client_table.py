"""The table of real clients names those that are run, at the versions that are pinned."""

from __future__ import annotations

import pytest
from client_table import Row, documented
from real_clients import CLIENTS


def test_the_table_has_every_client_at_its_pinned_version() -> None:
    versions = {name: cells["version"] for name, cells in documented().items()}
    assert versions == {client.name: client.pinned_version() for client in CLIENTS}


def test_a_row_must_be_that_of_the_page() -> None:
    client = CLIENTS[0]
    said: dict[str, object] = {}
    row = Row(client.name, client.pinned_version(), said.__setitem__)
    row.came("small file", "right")
    assert said == {"came": "right"}
    with pytest.raises(AssertionError, match="says something else"):
        row.came("small file", "refused")
