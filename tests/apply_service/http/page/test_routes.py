"""The page's addresses over real HTTP: contents, caching, policy, keys, root path, no bundle."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from guarded_server import MAX_BODY_BYTES, protection_of, serving_app
from oracle_service import OracleService

from apply_service.http.app import create_app
from apply_service.http.guard.keys.key_file import KeyFile
from apply_service.http.page.page_files import PageFiles

HTML = '<script src="page/page.js" nonce="{{nonce}}"></script>'
FILES = {
    "index.html": HTML,
    "docs.html": "<h1>API</h1>",
    "page.js": "let a = 1;" * 100,
    "page.css": "a { b: c }",
    "icon.svg": "<svg/>",
    "licences.txt": "MIT",
    "secret.json": "{}",
}
RESTRICTIONS = (
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)


@pytest.fixture(scope="module")
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "static"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder.parent / "beside.js").write_text("not to be sent")
    return folder


@contextmanager
def page_client(
    oracle: OracleService, static: Path, keys: Path, **changes: Any
) -> Iterator[httpx.Client]:
    app = create_app(
        oracle.service,
        max_body_bytes=MAX_BODY_BYTES,
        protection=protection_of(keys, **changes),
        page=PageFiles(static),
    )
    with serving_app(app) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def client(
    oracle: OracleService, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    with page_client(oracle, folder, tmp_path_factory.mktemp("keys")) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/docs", "text/html; charset=utf-8"),
        ("/page/page.js", "text/javascript; charset=utf-8"),
        ("/page/page.css", "text/css; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
        ("/page/licences.txt", "text/plain; charset=utf-8"),
    ],
)
def test_every_file_has_its_type_and_the_policy(
    client: httpx.Client, path: str, content_type: str
) -> None:
    answer = client.get(path).raise_for_status()
    assert answer.headers["content-type"] == content_type
    assert answer.headers["x-content-type-options"] == "nosniff"
    (policy,) = answer.headers.get_list("content-security-policy")
    assert "unsafe" not in policy
    assert [one for one in RESTRICTIONS if one not in policy] == []


def test_each_document_has_a_nonce_of_its_own(client: httpx.Client) -> None:
    nonces = set()
    for _ in range(3):
        answer = client.get("/")
        (in_text,) = re.findall(r'nonce="([\w-]+)"', answer.text)
        (in_policy,) = re.findall(
            r"style-src 'self' 'nonce-([\w-]+)'", answer.headers["content-security-policy"]
        )
        assert in_text == in_policy
        assert answer.headers["cache-control"] == "no-store"
        nonces.add(in_text)
    assert len(nonces) == 3


def test_a_file_is_sent_again_only_when_it_has_changed(client: httpx.Client) -> None:
    for coding in ("gzip", "identity"):
        headers = {"Accept-Encoding": coding}
        first = client.get("/page/page.js", headers=headers)
        assert first.text == FILES["page.js"]
        assert first.headers["cache-control"] == "no-cache"
        assert first.headers["vary"] == "Accept-Encoding"
        etag = first.headers["etag"]
        assert re.fullmatch(r'"[\w-]+"', etag)
        for sent in (etag, f'"other", W/{etag}', "*"):
            again = client.get("/page/page.js", headers={**headers, "If-None-Match": sent})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == etag
        other = client.get("/page/page.js", headers={**headers, "If-None-Match": '"other"'})
        assert other.status_code == 200


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1.0, gzip;q=0.8", True),
        ("gzip; q=0", False),
        ("identity", False),
        ("", False),
    ],
)
def test_who_takes_gzip_gets_it(client: httpx.Client, accepted: str, is_compressed: bool) -> None:
    with client.stream("GET", "/page/page.js", headers={"Accept-Encoding": accepted}) as answer:
        raw = b"".join(answer.iter_raw())
    assert (answer.headers.get("content-encoding") == "gzip") is is_compressed
    content = gzip.decompress(raw) if is_compressed else raw
    assert content.decode() == FILES["page.js"]


@pytest.mark.parametrize(
    "name",
    [
        "missing.js",
        "index.html",
        "secret.json",
        "..%2Fbeside.js",
        "%2e%2e%2fbeside.js",
        "..%5Cbeside.js",
        "a%00.js",
        ".js",
        "x" * 300 + ".js",
    ],
)
def test_nothing_else_is_sent(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/page/{name}")
    assert answer.status_code == 404
    assert "not to be sent" not in answer.text


def test_the_page_needs_no_key_and_what_it_calls_does(
    oracle: OracleService, folder: Path, tmp_path: Path
) -> None:
    with page_client(oracle, folder, tmp_path) as client:
        KeyFile(tmp_path / "keys.json").create("one", ("apply",))
        deadline = time.monotonic() + 10
        while client.get("/v1/models").status_code != 401:
            assert time.monotonic() < deadline
        for path in ("/", "/docs", "/page/page.js", "/page/page.css"):
            assert client.get(path).status_code == 200, path
        for path in ("/schema/openapi.json", "/metrics", "/page", "/pages/page.js"):
            assert client.get(path).status_code == 401, path


def test_a_rebound_name_gets_no_page(client: httpx.Client) -> None:
    assert client.get("/", headers={"Host": "evil.example.com"}).status_code == 421


def test_below_a_root_path_links_stay_below_it(
    oracle: OracleService, folder: Path, tmp_path: Path
) -> None:
    with page_client(oracle, folder, tmp_path, root_path="/a/below") as client:
        for path, document in (("/a/below", "/a/below/"), ("/a/below/docs/", "/a/below/docs")):
            moved = client.get(path)
            assert moved.status_code == 308
            assert moved.url.join(moved.headers["location"]).path == document
        assert client.get("/a/below/").text.startswith("<script")
        for path in ("/a/below/docs", "/a/below/page/page.js", "/", "/page/page.js"):
            assert client.get(path).status_code == 200, path


def test_without_the_bundle_the_page_says_how_to_build_it(
    oracle: OracleService, tmp_path: Path
) -> None:
    static = tmp_path / "static"
    with page_client(oracle, static, tmp_path) as client:
        for path in ("/", "/docs", "/page/page.js"):
            answer = client.get(path)
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert "`make page`" in answer.text
        static.mkdir()
        (static / "index.html").write_text(HTML)
        assert client.get("/").status_code == 200
        assert client.get("/page/page.js").text == "No such file.\n"


def test_the_page_is_no_part_of_the_api(client: httpx.Client) -> None:
    paths = client.get("/schema/openapi.json").json()["paths"]
    assert not [path for path in paths if path in ("/", "/docs") or path.startswith("/page")]
