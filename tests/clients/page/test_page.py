"""The page in Debian's Chromium, at live servers: one without keys, one that wants them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
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
    node, chromium = shutil.which("node"), shutil.which("chromium")
    remedy = "run `make test-editors`, which installs it"
    assert node is not None, "Node.js is missing"
    assert chromium is not None, f"Debian's package chromium is missing; {remedy}"
    assert (PAGE / "node_modules").is_dir(), f"the packages of the page are missing; {remedy}"
    assert STATIC_DIR.is_dir(), f"the page is not built; {remedy}"
    done = subprocess.run(
        [node, "--test", "--test-concurrency=1", *arguments],
        cwd=PAGE,
        env={**os.environ, "CHROMIUM": chromium, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# skipped 0" in done.stdout


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
