"""API keys keep what they cached apart, unless all are to share."""

from __future__ import annotations

from apply_service.apply.tenant import cache_salt_of
from apply_service.http.guard.keys.caller import Caller, serving


def test_a_key_is_a_tenant() -> None:
    one, two = cache_salt_of("Bearer one", "key"), cache_salt_of("Bearer two", "key")
    assert len({one, two, cache_salt_of(None, "key")}) == 3
    assert cache_salt_of(" bearer one ", "key") == cache_salt_of("one", "key") == one
    assert b"one" not in one


def test_all_share_on_request() -> None:
    assert cache_salt_of("Bearer one", "all") == cache_salt_of(None, "all") == b""
    assert cache_salt_of("", "key") == cache_salt_of(None, "key") == b""


def test_a_verified_key_counts_however_it_was_sent() -> None:
    one = Caller(name="1", scopes=frozenset(), key_id="1", key_sha256="ab" * 32)
    two = Caller(name="2", scopes=frozenset(), key_id="2", key_sha256="cd" * 32)
    with serving(one):
        salt = cache_salt_of("Bearer something", "key")
        assert salt == cache_salt_of(None, "key") != b""
        assert cache_salt_of(None, "all") == b""
    with serving(two):
        assert cache_salt_of("Bearer something", "key") not in (salt, b"")
    assert cache_salt_of("Bearer something", "key") != salt


def test_who_knows_the_digest_of_a_key_is_not_its_owner() -> None:
    owner = Caller(name="1", scopes=frozenset(), key_id="1", key_sha256="ab" * 32)
    with serving(owner):
        salt = cache_salt_of(None, "key")
    for text in ("ab" * 32, "tenant" + "ab" * 32, "key\0" + "ab" * 32):
        assert cache_salt_of(f"Bearer {text}", "key") != salt
