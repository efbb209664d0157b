"""Aliases as an operator writes them."""

from __future__ import annotations

import pytest

from apply_service.config import Settings
from apply_service.http.compat.settings import DEFAULT_ALIASES, parse_aliases


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), ("a", ("a",)), (" a , b/c ,,a ", ("a", "b/c")), (",", ())],
)
def test_names_are_separated_by_commas(text: str, names: tuple[str, ...]) -> None:
    assert parse_aliases(text) == names


def test_the_setting_s_default_is_the_list() -> None:
    assert parse_aliases(Settings().model_aliases) == DEFAULT_ALIASES
