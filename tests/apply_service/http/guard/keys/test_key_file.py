"""The file of keys: what it holds, who can read it, and that no change is lost."""

from __future__ import annotations

import json
import re
import stat
import threading
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from apply_service.http.guard.keys.key_file import (
    KeyFile,
    KeyFileError,
    UnknownKeyError,
    has_key_form,
    hash_key,
)
from apply_service.http.guard.keys.key_ring import KeyRing


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "folder" / "keys.json")


def test_a_key_is_random_and_only_its_hash_is_kept(file: KeyFile) -> None:
    created = [file.create(f"key {number}", ("apply",)) for number in range(5)]
    texts = {one.text for one in created}
    assert len(texts) == len({one.record.id for one in created}) == 5
    content = file.path.read_text()
    for one in created:
        assert has_key_form(one.text)
        assert one.text.startswith(f"apply_{one.record.id}_")
        assert one.text not in content
        assert one.text.split("_", 2)[2] not in content
        assert one.record.sha256 == sha256(one.text.encode()).hexdigest() == hash_key(one.text)
    assert file.read() == tuple(one.record for one in created)


def test_only_the_owner_can_read_the_file_and_its_folder(file: KeyFile) -> None:
    for _ in range(2):
        file.create(f"key {len(file.read())}", ("apply",))
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert {path.name for path in file.path.parent.iterdir()} == {"keys.json", "keys.json.lock"}


def test_the_format_is_the_documented_one(file: KeyFile) -> None:
    file.create("ci", ("apply", "batch"), expires_in=timedelta(days=1))
    document = json.loads(file.path.read_text())
    assert document["version"] == 1
    (record,) = document["keys"]
    assert list(record) == [
        *("id", "name", "sha256", "scopes", "created_at", "expires_at", "revoked_at")
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["created_at"])
    assert record["revoked_at"] is None


def test_revoked_keys_stay_known(file: KeyFile) -> None:
    created = file.create("ci", ("apply",))
    assert file.revoke(created.record.id).name == "ci"
    with pytest.raises(UnknownKeyError, match="'ci'"):
        file.revoke("ci")
    again = file.create("ci", ("apply",))
    assert [record.revoked_at is None for record in file.read()] == [False, True]
    with pytest.raises(KeyFileError, match="'ci' exists"):
        file.create("ci", ("apply",))
    ring = KeyRing(file)
    assert ring.find(created.text) is None
    assert ring.find(again.text) == again.record
    file.revoke("ci")
    assert KeyRing(file).has_keys
    assert KeyRing(file).find(again.text) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1, "keys": [{}]}', "\x00"])
def test_what_is_no_file_of_keys_is_refused_and_kept(file: KeyFile, content: str) -> None:
    file.path.parent.mkdir()
    file.path.write_text(content)
    with pytest.raises(KeyFileError, match=r"keys\.json is not a key file"):
        file.create("ci", ("apply",))
    assert file.path.read_text() == content


def test_a_file_that_everybody_can_write_is_not_trusted(file: KeyFile) -> None:
    file.create("ci", ("apply",))
    file.path.chmod(0o646)
    with pytest.raises(KeyFileError, match=r"0646.*chmod 600"):
        file.read()


def test_changes_at_the_same_time_are_all_kept(file: KeyFile) -> None:
    threads = [
        threading.Thread(target=file.create, args=(f"key {number}", ("apply",)))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {record.name for record in file.read()} == {f"key {number}" for number in range(8)}


def test_a_key_ends_when_it_was_said_to(file: KeyFile) -> None:
    record = file.create("ci", ("apply",), expires_in=timedelta(days=1)).record
    assert record.expires_at == record.created_at + timedelta(days=1)
    assert record.is_active(datetime.now(UTC))
    assert not record.is_active(record.expires_at)


def test_changes_are_seen_after_a_while(file: KeyFile) -> None:
    now = 0.0
    first = file.create("first", ("apply",))
    ring = KeyRing(file, reload_s=1.0, clock=lambda: now)
    second = file.create("second", ("apply",))
    assert ring.find(second.text) is None
    now = 1.0
    assert ring.find(second.text) == second.record
    file.revoke("first")
    assert ring.find(first.text) is not None
    now = 2.0
    assert ring.find(first.text) is None
