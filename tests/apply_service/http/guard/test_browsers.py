"""What web pages may do, over real HTTP: hosts, origins, headers; and ids and root paths."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from guarded_server import GuardedServer, guarded, protection_of
from oracle_service import OracleService

from apply_service.http.app import create_app
from apply_service.http.guard.hosts import AllowedHosts, HostCheck, host_name
from apply_service.http.guard.origins import OriginCheck

EDIT = {"original": "a = 1\nb = 2\n", "update": "a = 1\nb = 3\n", "use_model": "never"}
EDITOR = "https://editor.example.com"


@pytest.fixture
def service(tiny_model_dir: Path) -> OracleService:
    return OracleService(tiny_model_dir)


@pytest.fixture
def server(service: OracleService, tmp_path: Path) -> Iterator[GuardedServer]:
    with guarded(service.service, tmp_path, allowed_origins=(EDITOR,)) as server:
        yield server


@pytest.fixture
def client(server: GuardedServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1:8722", "[::1]:80", "127.9"]
)
def test_names_of_this_machine_are_its_own(client: httpx.Client, host: str) -> None:
    is_right = host != "127.9"
    response = client.post("/v1/apply", json=EDIT, headers={"Host": host})
    assert response.status_code == (200 if is_right else 421)


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:8722", "localhost.evil.com", "10.0.0.1", "[::2]"]
)
def test_a_rebound_name_is_refused(client: httpx.Client, host: str) -> None:
    response = client.post(
        "/v1/apply", json=EDIT, headers={"Host": host, "Origin": f"http://{host}"}
    )
    assert response.status_code == 421
    assert response.json()["code"] == "unknown-host"
    assert host_name(host) in response.json()["detail"]
    assert client.get("/health/live", headers={"Host": host}).status_code == 200


BAD_HOSTS = ("[localhost]", "[127.0.0.1]", "[::1", "::1]", "[::1]x", "[]", "[", "a:b", "a:1:2")


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_a_host_of_a_bad_form_is_refused(client: httpx.Client, host: str) -> None:
    response = client.post("/v1/apply", json=EDIT, headers={"Host": host})
    assert (response.status_code, response.json()["code"]) == (400, "bad-host")
    assert client.get("/health/live", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        *(((host,), 400) for host in (*BAD_HOSTS, "a b", "http://a", "a/", "u@a", "l\xf6cal")),
        (("a", "a"), 400),
        *(((host,), 200) for host in ("a_b.example:80", "[fe80::1]", "[::1]:8722", "a.", "")),
        ((), 200),
    ],
)
def test_the_form_counts_where_all_names_are_allowed(hosts: tuple[str, ...], status: int) -> None:
    assert status_behind(lambda app: HostCheck(app, None), "host", hosts) == status


@pytest.mark.parametrize("allowed", [(), (EDITOR,), ("*",)])
@pytest.mark.parametrize("origin", [EDITOR, "http://own"])
def test_two_origins_are_nobodys(allowed: tuple[str, ...], origin: str) -> None:
    def layer(app: Any) -> OriginCheck:
        return OriginCheck(app, allowed)

    assert status_behind(layer, "origin", (origin, origin), ("host", "own")) == 403


def status_behind(
    layer: Callable[[Any], Any], name: str, values: Sequence[str], *others: tuple[str, str]
) -> int:
    """The status with which a layer of middleware answers what has these headers."""

    async def app(_scope: object, _receive: object, send: Callable[..., Any]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    pairs = [*((name, value) for value in values), *others]
    headers = [(one.encode(), value.encode("latin-1")) for one, value in pairs]
    scope = {"type": "http", "method": "POST", "path": "/v1/apply", "headers": headers}
    asyncio.run(layer(app)(scope, None, send))
    return int(sent[0]["status"])


def test_names_can_be_allowed() -> None:
    allowed = AllowedHosts(("apply.example.com", "*.internal"), allows_loopback=False)
    assert all(map(allowed.has, ("apply.example.com", "APPLY.example.com.:443", "a.b.internal")))
    assert not any(map(allowed.has, ("example.com", "internal", "localhost", "", "xinternal")))
    assert AllowedHosts(("*",), allows_loopback=False).has("anything")


def test_pages_of_other_origins_are_refused_even_without_reading(client: httpx.Client) -> None:
    for origin in ("https://evil.example.com", "null", "http://127.0.0.1:1", "file://"):
        plain = {"Origin": origin, "Content-Type": "text/plain"}
        response = client.post("/v1/apply", json=EDIT, headers=plain)
        assert response.status_code == 403, origin
        assert response.json()["code"] == "origin-not-allowed"
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        preflight = client.options("/v1/apply", headers=asked)
        assert preflight.status_code == 403
        for answer in (response, preflight):
            assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("origin", ["http://[", "http://]", "null", "http://", "[", "//:"])
def test_an_origin_that_is_no_address_is_another_one(client: httpx.Client, origin: str) -> None:
    response = client.get("/v1/models", headers={"Origin": origin, "Host": "127.0.0.1"})
    assert (response.status_code, response.json()["code"]) == (403, "origin-not-allowed")


def test_the_servers_own_pages_may_call_it(client: httpx.Client) -> None:
    own = {"Origin": str(client.base_url).rstrip("/")}
    response = client.post("/v1/apply", json=EDIT, headers=own)
    assert response.status_code == 200
    assert "access-control-allow-origin" not in response.headers


def test_an_origin_that_is_allowed_gets_what_browsers_ask_for(server: GuardedServer) -> None:
    server.keys.create("one", ("apply",))
    with server.client() as client:
        asked = {
            "Origin": EDITOR,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        preflight = client.options("/v1/apply", headers=asked)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == EDITOR
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        while (response := client.get("/v1/models", headers={"Origin": EDITOR})).is_success:
            pass  # until the key has been read
        assert response.status_code == 401
        assert response.headers["access-control-allow-origin"] == EDITOR
        assert response.headers["vary"] == "origin"
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("path", ["/v1/models", "/health/live", "/nothing", "/v1/apply"])
def test_every_answer_is_safe_in_a_browser(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "server" not in headers


@pytest.mark.parametrize("given", ["abc", "a.b_c:D-9", "x" * 128])
def test_a_request_keeps_its_id(client: httpx.Client, given: str) -> None:
    for path, status in (("/v1/models", 200), ("/nothing", 404), ("/v1/apply", 405)):
        response = client.get(path, headers={"X-Request-Id": given})
        assert response.status_code == status
        assert response.headers.get_list("x-request-id") == [given]
        if status != 200:
            assert response.json()["request_id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a\tb", "é", "<b>"])
def test_what_cannot_be_an_id_is_replaced(client: httpx.Client, given: str) -> None:
    response = client.get("/nothing", headers={b"X-Request-Id": given.encode()})
    (made,) = response.headers.get_list("x-request-id")
    assert re.fullmatch(r"req-[0-9a-f]{32}", made)
    assert response.json()["request_id"] == made


def test_the_error_of_a_stream_has_the_id(client: httpx.Client) -> None:
    wrong = {**EDIT, "update": "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", "stream": True}
    response = client.post("/v1/apply", json=wrong, headers={"X-Request-Id": "abc"})
    assert "event: error" in response.text
    assert '"request_id":"abc"' in response.text


def test_a_root_path_is_taken_away_or_was_already(service: OracleService, tmp_path: Path) -> None:
    with (
        guarded(service.service, tmp_path, root_path="/apply-here") as server,
        server.client() as client,
    ):
        for prefix in ("", "/apply-here"):
            assert client.post(f"{prefix}/v1/apply", json=EDIT).status_code == 200
            assert client.get(f"{prefix}/health/live").status_code == 200
            assert client.get(f"{prefix}/v1/nothing").status_code == 404
        assert client.get("/apply-here2/v1/models").status_code == 404
        schema = client.get("/apply-here/schema/openapi.json").json()
        assert schema["servers"] == [{"url": "/apply-here"}]
        server.keys.create("one", ("apply",))
        while client.get("/v1/models").is_success:
            pass  # until the key has been read
        for path in ("/apply-here/v1/models", "/apply-here/metrics", "/apply-here//metrics"):
            assert client.get(path).status_code == 401


def test_without_a_root_path_the_schema_has_the_root(
    service: OracleService, tmp_path: Path
) -> None:
    app = create_app(service.service, max_body_bytes=1000, protection=protection_of(tmp_path))
    assert [server.url for server in app.openapi_schema.servers] == ["/"]
