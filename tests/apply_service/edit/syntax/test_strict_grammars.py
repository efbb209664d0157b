"""What the strict grammars take and refuse."""

from __future__ import annotations

import pytest

from apply_service.edit.syntax.strict_grammars import MAX_CHARS, is_sound


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("def load():\n    return 1\n", "python", True),
        ("def load():\n    a = 1\n      b = 2\n", "python", False),
        ("assert (1, 2)\n'\\d'\n", "python", True),
        ("a = 1\0", "python", False),
        ('{"a": 1}', "json", True),
        ('{"a": 1,}', "json", False),
        ("[a]\nb = 1\n", "toml", True),
        ("[a]\n[a]\n", "toml", False),
        ("let a = 1", "javascript", None),
        ("a = 1", None, None),
        ("a\n" * MAX_CHARS, "python", None),
        ("(" * 100_000, "python", False),
        ("[" * 100_000, "json", False),
    ],
)
def test_texts(text: str, language: str | None, expected: bool | None) -> None:
    assert is_sound(text, language) is expected
