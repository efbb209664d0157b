"""Names and messages of others are shown on one line, and never long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apply_service.observe.private_text import MAX_SHOWN_CHARACTERS
from apply_service.shown_text import shown_line


@given(st.text(st.characters(exclude_categories=())) | st.text("\x00\x1b\ud800é", min_size=150))
def test_all_of_it_can_be_printed_and_the_beginning_is_told(text: str) -> None:
    line = shown_line(text)
    assert line.isprintable()
    assert len(line) <= MAX_SHOWN_CHARACTERS
    assert (line == text) == (text.isprintable() and len(text) <= MAX_SHOWN_CHARACTERS)


def test_what_is_cut_says_so() -> None:
    assert shown_line("x" * 201) == "x" * 199 + "…"
    assert shown_line("x" * 200) == "x" * 200
    assert shown_line("\x00" * 100) == "\\x00" * 49 + "\\x0…"
