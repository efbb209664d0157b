"""What may be listened on without keys."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from apply_service.cli.main import main
from apply_service.http.guard.exposure import (
    FIRST_KEY_NAME,
    ExposedWithoutKeysError,
    is_private,
    open_key_ring,
)
from apply_service.http.guard.keys.key_file import KeyFile, has_key_form
from apply_service.http.guard.keys.key_ring import KeyRing
from apply_service.http.server.listener import ServerStartError, listen
from apply_service.http.server.process import check_single_process


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json")


def open_ring(file: KeyFile, shown: list[str], **changes: bool) -> KeyRing:
    situation = {
        "is_named": True,
        "is_private": False,
        "allows_anonymous": False,
        "creates_key": False,
    }
    return open_key_ring(file, show=shown.append, **{**situation, **changes})


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False), ("::1", True), ("::", False)],
)
def test_loopback_alone_is_private(host: str, expected: bool) -> None:
    try:
        listener = listen(host, 0)
    except (ServerStartError, OSError):
        assert ":" in host, "every machine has IPv4"
        pytest.skip("no IPv6 here")
    with listener:
        assert is_private(listener) is expected


def test_an_exposed_server_without_keys_does_not_start(file: KeyFile) -> None:
    with pytest.raises(ExposedWithoutKeysError, match="key create --name NAME") as caught:
        open_ring(file, [])
    assert str(file.path) in str(caught.value)
    assert "--allow-anonymous" in str(caught.value)
    assert not file.path.exists()


@pytest.mark.parametrize("change", ["is_private", "allows_anonymous"])
def test_it_starts_where_that_does_no_harm(file: KeyFile, change: str) -> None:
    shown: list[str] = []
    assert not open_ring(file, shown, **{change: True}).has_keys
    assert shown == []


def test_it_starts_with_a_key(file: KeyFile) -> None:
    created = file.create("ci", ("apply",))
    shown: list[str] = []
    assert open_ring(file, shown).find(created.text) == created.record
    assert open_ring(file, shown, creates_key=True).find(created.text) == created.record
    assert shown == []
    assert len(file.read()) == 1


def test_a_start_that_is_asked_to_makes_a_key_and_shows_it_once(file: KeyFile) -> None:
    shown: list[str] = []
    ring = open_ring(file, shown, creates_key=True)
    text = shown[0].splitlines()[-1]
    assert has_key_form(text)
    record = ring.find(text)
    assert record is not None
    assert (record.name, record.scopes) == (FIRST_KEY_NAME, ("apply", "batch", "admin"))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    again = open_ring(file, shown, creates_key=True)
    assert len(shown) == 1
    assert again.find(text) is not None


def test_a_start_that_cannot_write_keeps_its_key_in_memory() -> None:
    unwritable = KeyFile(Path("/proc/no-such-folder/keys.json"))
    shown: list[str] = []
    ring = open_ring(unwritable, shown, creates_key=True)
    assert "ends with this process" in shown[0]
    assert ring.find(shown[0].splitlines()[-1]) is not None
    assert ring.has_keys


def test_a_first_key_goes_into_a_file_of_the_servers_own(file: KeyFile) -> None:
    with pytest.raises(ExposedWithoutKeysError, match="--keys-file FILE"):
        open_ring(file, [], creates_key=True, is_named=False)
    assert not file.path.exists()


def test_keys_made_later_count_if_the_server_was_told_of_their_file(file: KeyFile) -> None:
    now = [0.0]

    def has_keys_later(*, is_followed: bool) -> bool:
        ring = KeyRing(file, is_followed=is_followed, clock=lambda: now[0])
        created = file.create(f"later {is_followed}", ("apply",))
        now[0] += 10
        found = ring.find(created.text) is not None
        file.path.unlink()
        return found and ring.has_keys

    assert has_keys_later(is_followed=True)
    assert not has_keys_later(is_followed=False)


def test_one_process_is_all_there_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    check_single_process(1, {})
    check_single_process(1, {"WEB_CONCURRENCY": "1"})
    for workers, environment in ((2, {}), (0, {}), (1, {"WEB_CONCURRENCY": "4"})):
        with pytest.raises(ServerStartError, match="one process"):
            check_single_process(workers, environment)
    assert main(["serve", "--workers", "4", "--port", "0"]) == 1
    assert "workers is 4, the limit is 1" in capsys.readouterr().err
