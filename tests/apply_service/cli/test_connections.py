"""What `up` shows: where it listens, how to point each client at it, whether a key is needed."""

from __future__ import annotations

import pytest

from apply_service.cli.connections import connection_lines

URL = "http://127.0.0.1:8722"


@pytest.mark.parametrize("has_page", [True, False])
@pytest.mark.parametrize("needs_key", [True, False])
def test_each_client_has_a_line(has_page: bool, needs_key: bool) -> None:
    lines = list(connection_lines(URL, needs_key=needs_key, has_page=has_page))
    assert lines[0].startswith(f"apply-service listens at {URL};")
    for client in ("OpenAI", "Anthropic", "Morph", "MCP", "LSP", "/v1/apply"):
        assert len([line for line in lines if client in line]) == 1, client
    assert any(f"{URL}/ has a page" in line for line in lines) == has_page
    assert ("apply-service key create" in lines[-1]) == needs_key
