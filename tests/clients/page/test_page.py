"""The page in Debian's Chromium, at live servers: one without keys, one that wants them."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_tests import REMEDY, run_browser_tests
from guarded_server import guarded
from oracle_service import OracleService
from serve_process import ROOT

from apply_service.http.page.page_files import STATIC_DIR

FOLDER = Path(__file__).parent
PAGE = ROOT / "clients/page"
LIMIT_S = 400.0

pytestmark = [pytest.mark.editors, pytest.mark.timeout(LIMIT_S + 60)]


def run_node(*arguments: str, **environment: str) -> None:
    """Run tests under Node.js; whatever is missing for them fails, with what installs it."""
    assert (PAGE / "node_modules").is_dir(), f"the packages of the page are missing; {REMEDY}"
    assert STATIC_DIR.is_dir(), f"the page is not built; {REMEDY}"
    run_browser_tests(*arguments, folder=PAGE, limit_s=LIMIT_S, **environment)


def test_what_needs_no_browser() -> None:
    run_node("test/units.test.mjs")


def test_the_page_at_a_server_without_keys(embedded_url: str) -> None:
    run_node(str(FOLDER / "page.test.mjs"), PAGE_URL=embedded_url)


def test_the_page_at_a_server_with_keys_below_a_root_path(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    service = OracleService(tiny_model_dir).service
    with guarded(service, tmp_path, root_path="/below/here") as server:
        edit_key = server.keys.create("edits", ("apply",)).text
        admin_key = server.keys.create("everything", ("admin",)).text
        run_node(
            str(FOLDER / "keys.test.mjs"),
            KEYED_URL=f"{server.url}/below/here",
            EDIT_KEY=edit_key,
            ADMIN_KEY=admin_key,
        )
