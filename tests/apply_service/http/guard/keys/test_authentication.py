"""Keys over real HTTP: who gets in, to what, and for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from guarded_server import MAX_BODY_BYTES, PRIVATE, RELOAD_S, GuardedServer, guarded
from litestar.routes import HTTPRoute
from oracle_service import OracleService

from apply_service.cli.main import main
from apply_service.http.app import create_app
from apply_service.http.guard.keys.authentication import AccessRules
from apply_service.http.guard.keys.key_file import KeyFile
from apply_service.http.guard.paths import is_open, is_page, needed_scope

EDIT = {"original": "a = 1\nb = 2\n", "update": "a = 1\nb = 3\n", "use_model": "never"}
PUBLIC = AccessRules(is_private=False, allows_anonymous=False, metrics_need_key=True)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir)


@pytest.fixture
def server(oracle: OracleService, tmp_path: Path) -> Iterator[GuardedServer]:
    with guarded(oracle.service, tmp_path, rules=PUBLIC) as server:
        yield server


def wait_for_status(client: httpx.Client, path: str, status: int) -> None:
    """A change of the file is seen soon."""
    deadline = time.monotonic() + 10
    while client.get(path).status_code != status:
        assert time.monotonic() < deadline, client.get(path).text
        time.sleep(0.05)


def routes_of(oracle: OracleService) -> list[tuple[str, str]]:
    """Method and path of everything that the app serves."""
    app = create_app(oracle.service, max_body_bytes=1000)
    return [
        (method, route.path.replace("{", "").replace("}", ""))
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for method in sorted(route.methods)
    ]


def test_every_route_but_health_and_page_refuses_without_a_key(
    oracle: OracleService, server: GuardedServer
) -> None:
    routes = [*routes_of(oracle), ("GET", "/no/such/route"), ("POST", "//v1//apply/")]
    assert {"/v1/apply", "/apply", "/v1/models", "/metrics"} <= {path for _, path in routes}
    with server.client() as client:
        for method, path in routes:
            response = client.request(method, path)
            if is_open(path):
                assert response.status_code < 300, path
                continue
            if is_page(path):
                assert response.status_code in (200, 204, 404, 405), path
                continue
            assert response.status_code == 401, (method, path)
            assert response.headers["www-authenticate"].startswith("Bearer")
            if method != "HEAD":
                assert "API key" in response.text


def test_errors_come_in_the_shape_of_the_path(server: GuardedServer) -> None:
    with server.client() as client:
        problem = client.post("/v1/apply").json()
        assert (problem["status"], problem["code"]) == (401, "unauthorized")
        assert problem["request_id"].startswith("req-")
        assert client.post("/v1/chat/completions").json()["error"]["message"]
        assert isinstance(client.post("/v1/code/apply").json()["error"], str)


def test_a_key_opens_what_its_scopes_say(server: GuardedServer) -> None:
    paths = {"apply": "/v1/apply", "batch": "/v1/batches", "admin": "/metrics"}
    for scope in ("apply", "batch", "admin"):
        key = server.keys.create(f"only {scope}", (scope,)).text
        with server.client(key) as client:
            wait_for_status(client, "/v1/models", 200)
            for needed, path in paths.items():
                response = client.get(path)
                is_allowed = scope in (needed, "admin")
                assert (response.status_code != 403) == is_allowed, (scope, path)
                if not is_allowed:
                    assert response.json()["code"] == "missing-scope"
                    assert repr(needed) in response.json()["detail"]


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("/metrics", "admin"),
        ("//metrics", "admin"),
        ("/metrics/", "admin"),
        ("/v1//batches/1", "batch"),
        ("/v1/batchesque", "apply"),
        ("/schema/openapi.json", None),
        ("/", "apply"),
    ],
)
def test_paths_are_read_as_the_router_reads_them(path: str, scope: str | None) -> None:
    assert needed_scope(path) == scope
    assert not is_open(path)
    assert is_open("//health//live")
    assert not is_open("/healthy")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", True),
        ("//", True),
        ("/docs", True),
        ("/docs/", True),
        ("/page/page.js", True),
        ("/page", False),
        ("/pages", False),
        ("/docs/x", False),
        ("/v1", False),
        ("/v1/apply", False),
        ("/metrics", False),
    ],
)
def test_the_page_alone_needs_no_key(path: str, expected: bool) -> None:
    assert is_page(path) is expected


def test_both_headers_carry_a_key(server: GuardedServer) -> None:
    key = server.keys.create("one", ("apply",)).text
    with server.client() as client:
        for headers in (
            {"Authorization": f"Bearer {key}"},
            {"Authorization": f"bearer  {key}"},
            {"x-api-key": key},
            {"Authorization": "Basic eDp5", "x-api-key": key},
            {"Authorization": f"Bearer sk-{key}"},
            {"x-api-key": f"sk-{key}"},
        ):
            deadline = time.monotonic() + 10
            while client.post("/v1/apply", json=EDIT, headers=headers).status_code != 200:
                assert time.monotonic() < deadline, headers
        for headers in (
            {"Authorization": key},
            {"Authorization": f"Basic {key}"},
            {"Authorization": f"Bearer {key[:-1]}"},
            {"Authorization": f"Bearer {key}x"},
            {"Authorization": f"Bearer sk-{key}x"},
            {"Authorization": f"Bearer sk-sk-{key}"},
            {"Authorization": "Bearer"},
            {"Authorization": f"Bearer {'x' * 43}", "x-api-key": key},
        ):
            assert client.post("/v1/apply", json=EDIT, headers=headers).status_code == 401, headers


def test_the_command_line_sends_its_key(
    server: GuardedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.py").write_text(EDIT["original"])
    (tmp_path / "update").write_text(EDIT["update"])
    arguments = ["apply", str(tmp_path / "a.py"), "--update", str(tmp_path / "update")]
    monkeypatch.setenv("APPLY_SERVICE_URL", server.url)
    monkeypatch.delenv("APPLY_API_KEY", raising=False)
    assert main([*arguments, "--use-model", "never"]) == 1
    assert "an API key is needed" in capsys.readouterr().err
    key = server.keys.create("one", ("apply",)).text
    monkeypatch.setenv("APPLY_API_KEY", key)
    with server.client(key) as client:
        wait_for_status(client, "/v1/models", 200)
    assert main([*arguments, "--use-model", "never"]) == 0
    assert capsys.readouterr().out == EDIT["update"]


def test_a_body_that_is_too_large_is_not_read_to_its_end(server: GuardedServer) -> None:
    key = server.keys.create("one", ("apply",)).text
    with server.client(key) as client:
        wait_for_status(client, "/v1/models", 200)
        for content in (bytes(MAX_BODY_BYTES + 1), iter([bytes(MAX_BODY_BYTES), b"x"])):
            response = client.post("/v1/apply", content=content)
            assert response.status_code == 413
            assert response.json()["code"] == "body-too-large"


def test_revoking_takes_effect_in_a_running_server(server: GuardedServer) -> None:
    created = server.keys.create("leaked", ("apply",))
    other = server.keys.create("other", ("apply",)).text
    with server.client(created.text) as client, server.client(other) as others:
        wait_for_status(client, "/v1/models", 200)
        server.keys.revoke("leaked")
        wait_for_status(client, "/v1/models", 401)
        assert others.get("/v1/models").status_code == 200
        server.keys.revoke("other")
        wait_for_status(others, "/v1/models", 401)
    with server.client() as anybody:
        assert anybody.get("/v1/models").status_code == 401


def test_an_expired_key_is_worth_nothing(server: GuardedServer) -> None:
    expired = server.keys.create("old", ("apply",), expires_in=timedelta(seconds=-1)).text
    fresh = server.keys.create("new", ("apply",), expires_in=timedelta(hours=1)).text
    with server.client(fresh) as client:
        wait_for_status(client, "/v1/models", 200)
    with server.client(expired) as client:
        assert client.get("/v1/models").status_code == 401


def test_a_broken_or_missing_file_leaves_the_keys_as_they_are(server: GuardedServer) -> None:
    key = server.keys.create("one", ("apply",)).text
    content = server.keys.path.read_bytes()
    with server.client(key) as client:
        wait_for_status(client, "/v1/models", 200)
        for broken in (b"", b"{", content.replace(b'"version": 1', b'"version": 2'), None):
            if broken is None:
                server.keys.path.unlink()
            else:
                server.keys.path.write_bytes(broken)
            time.sleep(4 * RELOAD_S)
            assert client.get("/v1/models").status_code == 200
        with server.client() as anybody:
            assert anybody.get("/v1/models").status_code == 401


def test_without_keys_a_private_server_is_open_until_there_is_one(
    oracle: OracleService, tmp_path: Path
) -> None:
    with guarded(oracle.service, tmp_path, rules=PRIVATE) as server, server.client() as client:
        assert client.post("/v1/apply", json=EDIT).status_code == 200
        assert client.get("/metrics").status_code == 200
        dummy = {"Authorization": "Bearer EMPTY"}
        assert client.post("/v1/apply", json=EDIT, headers=dummy).status_code == 200
        server.keys.create("first", ("apply",))
        wait_for_status(client, "/v1/models", 401)
        assert client.post("/v1/apply", json=EDIT, headers=dummy).status_code == 401


def test_anonymous_callers_may_edit_where_they_are_allowed(
    oracle: OracleService, tmp_path: Path
) -> None:
    rules = AccessRules(is_private=False, allows_anonymous=True, metrics_need_key=True)
    key = KeyFile(tmp_path / "keys.json").create("gone", ("apply", "admin"))
    with guarded(oracle.service, tmp_path, rules=rules) as server, server.client() as client:
        dummy = {"Authorization": "Bearer EMPTY"}
        assert client.post("/v1/apply", json=EDIT).status_code == 200
        assert client.post("/v1/apply", json=EDIT, headers=dummy).status_code == 200
        assert client.get("/metrics").status_code == 403
        with server.client(key.text) as owner:
            assert owner.get("/metrics").status_code == 200
            server.keys.revoke("gone")
            wait_for_status(owner, "/v1/models", 401)


def test_metrics_may_be_open(oracle: OracleService, tmp_path: Path) -> None:
    rules = AccessRules(is_private=False, allows_anonymous=False, metrics_need_key=False)
    with guarded(oracle.service, tmp_path, rules=rules) as server, server.client() as client:
        assert client.get("/metrics").status_code == 200
        assert client.get("/v1/models").status_code == 401
