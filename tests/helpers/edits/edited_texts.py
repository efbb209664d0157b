"""Texts, each with an edit of it, for tests of the writers of updates."""

from __future__ import annotations

from hypothesis import strategies as st

PROGRAM = [
    "import os",
    "",
    "LIMIT = 10",
    "",
    "",
    "def first(values):",
    "    total = 0",
    "    for value in values:",
    "        total += value",
    "    return total",
    "",
    "",
    "def second(values):",
    "    total = 1",
    "    for value in values:",
    "        total *= value",
    "    return total",
    "",
    "",
    "def third(values):",
    "    return sorted(values)[:LIMIT]",
]

# Lines that are all different can be anchors anywhere; "" and "}" never can.
lines_of_text = st.lists(
    st.one_of(st.sampled_from(["", "}"]), st.integers(0, 10**6).map(lambda n: f"value_{n} = {n}")),
    min_size=4,
    max_size=30,
)


@st.composite
def edited_texts(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    original = draw(lines_of_text)
    expected = list(original)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(expected)))
        end = draw(st.integers(start, min(start + 3, len(expected))))
        added = draw(st.lists(st.integers(0, 99).map(lambda n: f"added({n})"), max_size=3))
        expected[start:end] = added
    return original, expected
