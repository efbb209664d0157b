"""Keys come from a file or a variable, the newest first; what cannot be meant is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_service.config import Settings, SettingValueError
from apply_service.models.cache_keys import read_cache_keys

NEW, OLD = "n" * 16, "o" * 64


def test_keys_of_a_file_and_of_the_variable(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{NEW}\n{OLD}\n")
    expected = (NEW.encode(), OLD.encode())
    assert read_cache_keys(Settings(cache_key=str(path)), {}) == expected
    assert read_cache_keys(Settings(), {"APPLY_CACHE_KEY": f"{NEW} {OLD}"}) == expected
    assert read_cache_keys(Settings(), {}) == ()


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("", {}, "holds no key; make one with `openssl"),
        ("short", {}, "has 5 characters and needs 16"),
        (None, {"APPLY_CACHE_KEY": f"{NEW} x"}, "has 1 characters and needs 16"),
        (None, {"APPLY_CACHE_SECRET": NEW}, "call it APPLY_CACHE_KEY"),
        (NEW, {"APPLY_CACHE_KEY": NEW}, "are both set; leave one out"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, text: str | None, variables: dict[str, str], message: str
) -> None:
    path = tmp_path / "keys"
    path.write_text(text or "")
    settings = Settings(cache_key=None if text is None else str(path))
    with pytest.raises(SettingValueError, match=message):
        read_cache_keys(settings, variables)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingValueError, match="cannot be read"):
        read_cache_keys(Settings(cache_key=str(tmp_path / "none")), {})
