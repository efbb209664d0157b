"""API keys keep what they cached apart, unless all are to share."""

from __future__ import annotations

from apply_service.tenant import cache_salt_of


def test_a_key_is_a_tenant() -> None:
    one, two = cache_salt_of("Bearer one", "key"), cache_salt_of("Bearer two", "key")
    assert len({one, two, cache_salt_of(None, "key")}) == 3
    assert cache_salt_of(" bearer one ", "key") == cache_salt_of("one", "key") == one
    assert b"one" not in one


def test_all_share_on_request() -> None:
    assert cache_salt_of("Bearer one", "all") == cache_salt_of(None, "all") == b""
    assert cache_salt_of("", "key") == cache_salt_of(None, "key") == b""
