"""What is shown of texts of others: nothing that a terminal obeys, and never too much."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.shown_text import MAX_SHOWN_CHARACTERS, say, shown, shown_line

ESCAPES = {
    "\x1b[2J": "\\x1b[2J",
    "a\rb": "a\\rb",
    "a\bb": "a\\x08b",
    "\x9b31m": "\\x9b31m",
    "\u202egnp": "\\u202egnp",
    "\udcff.py": "\\udcff.py",
}


@pytest.mark.parametrize(("text", "escaped"), ESCAPES.items())
def test_what_acts_on_a_terminal_is_an_escape(
    text: str, escaped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(text) == shown_line(text) == escaped
    say(text)
    assert capsys.readouterr().err == escaped + "\n"


@pytest.mark.parametrize("text", ["a\tb\n", "größer", "a\r\nb\r", "👩‍🚀", ""])
def test_other_text_is_as_it_was(text: str) -> None:
    assert shown(text) == text


@given(text=st.text(max_size=1000))
def test_a_line_is_printable_and_short(text: str) -> None:
    line = shown_line(text)
    assert line.isprintable()
    assert len(line) <= MAX_SHOWN_CHARACTERS
    assert re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", shown(text)) is None


def test_a_long_line_keeps_both_its_ends() -> None:
    line = shown_line("/root/" + "x" * 10_000_000 + "/name.py")
    assert line.startswith("/root/")
    assert line.endswith("/name.py")
    assert "…" in line
