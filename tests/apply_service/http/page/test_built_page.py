"""The page as `make page` built it: all that its documents name is there, and nothing is inline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from oracle_service import OracleService
from server_thread import serving

from apply_service.http.page.page_files import STATIC_DIR

ROOT = Path(__file__).parents[4]
MAX_BYTES = 3_000_000

pytestmark = pytest.mark.skipif(
    not (STATIC_DIR.is_dir() or (ROOT / "clients/page/node_modules").is_dir()),
    reason="the page is not built, since npm or a network is missing; `make page` builds it",
)


class Document(HTMLParser):
    """What a document names, and what a strict policy would forbid in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.forbidden: list[str] = []
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        for name, value in attributes:
            if name in ("src", "href"):
                self.links.add(value or "")
            if name == "style" or name.startswith("on"):
                self.forbidden.append(f"{tag} {name}")

    def handle_data(self, text: str) -> None:
        if self._tag in ("script", "style") and text.strip():
            self.forbidden.append(text)


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    with serving(OracleService(tiny_model_dir).service) as address:
        yield address


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_what_a_document_names_is_there(url: str, path: str) -> None:
    with httpx.Client(base_url=url) as client:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        document = Document(answer.text)
        assert document.forbidden == []
        files = {link for link in document.links if link.startswith("page/")}
        assert {Path(link).suffix for link in files} >= {".js", ".css", ".svg"}
        for link in document.links - {"#main"}:
            assert re.match(r"[a-z.]", link), f"{link} is not relative"
            file = client.get(answer.url.join(link))
            assert file.status_code == 200, link
            assert "default-src 'none'" in file.headers["content-security-policy"]


def test_style_sheets_name_nothing_that_is_elsewhere() -> None:
    for path in STATIC_DIR.glob("*.css"):
        found = re.findall(r"url\(([^)]{0,80})|@import ([^;]{0,80})", path.read_text())
        assert all(text.strip("\"'").startswith("data:") for text, _ in found), path.name


def test_the_bundle_has_its_licences_and_a_bounded_size() -> None:
    licences = (STATIC_DIR / "licences.txt").read_text()
    for name in ("@codemirror/view", "@codemirror/merge", "uplot", "swagger-ui-dist"):
        assert re.search(rf"^{name} \d", licences, re.MULTILINE), name
    assert sum(path.stat().st_size for path in STATIC_DIR.iterdir()) < MAX_BYTES
