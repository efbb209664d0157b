"""The table of real clients names those that are run, at the versions that are pinned."""

from __future__ import annotations

from client_table import documented
from real_clients import CLIENTS


def test_the_table_has_every_client_at_its_pinned_version() -> None:
    versions = {name: cells["version"] for name, cells in documented().items()}
    assert versions == {client.name: client.pinned_version() for client in CLIENTS}
