"""Reads the keys that the prompts in Redis are signed with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from apply_service.config import CACHE_KEY_VARIABLE, Settings, SettingValueError

MIN_CHARACTERS = 16
_OLD_VARIABLE = "APPLY_CACHE_SECRET"
_REMEDY = "make one with `openssl rand -hex 32`"


def read_cache_keys(settings: Settings, environment: Mapping[str, str]) -> tuple[bytes, ...]:
    """The keys, the one that signs first; none if values are not signed.

    Raises SettingValueError.
    """
    if environment.get(_OLD_VARIABLE):
        raise SettingValueError(
            f"{_OLD_VARIABLE} is set, which nothing reads any more; call it {CACHE_KEY_VARIABLE}"
        )
    of_variable = environment.get(CACHE_KEY_VARIABLE, "")
    if settings.cache_key is not None and of_variable:
        raise SettingValueError(f"cache_key and {CACHE_KEY_VARIABLE} are both set; leave one out")
    place, text = CACHE_KEY_VARIABLE, of_variable
    if settings.cache_key is not None:
        place = f"cache_key {settings.cache_key}"
        try:
            text = Path(settings.cache_key).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingValueError(f"{place} cannot be read: {error}; {_REMEDY}") from error
        if not text.split():
            raise SettingValueError(f"{place} holds no key; {_REMEDY}")
    keys = text.split()
    short = [len(key) for key in keys if len(key) < MIN_CHARACTERS]
    if short:
        raise SettingValueError(
            f"a key of {place} has {short[0]} characters and needs {MIN_CHARACTERS}; {_REMEDY}"
        )
    return tuple(key.encode() for key in keys)
