"""Small merge rules over a tiny alphabet: texts that share what they begin and end with."""

from __future__ import annotations

from hypothesis import strategies as st

from lookup.merge_rules import MergeRules, MergeText

NEWLINE = 0
END = (NEWLINE, 9)
WEIGHTS = st.integers(-3, 3).map(float)
ENDS = st.sampled_from([END, (9,), (), (1,)])
PIECES = st.lists(st.sampled_from([0, 0, 1, 1, 2]), max_size=5).map(tuple)


@st.composite
def small_rules(draw: st.DrawFn, *, max_texts: int = 8) -> MergeRules:
    """Rules with a few texts, some of them perhaps equal or the beginning of others."""
    pieces = draw(st.lists(PIECES, min_size=1, max_size=3))
    piece = st.sampled_from(pieces)
    texts = []
    for _ in range(draw(st.integers(1, max_texts))):
        chosen = draw(st.lists(piece, max_size=4))
        symbols = tuple(symbol for one in chosen for symbol in one)
        borders = draw(st.lists(st.integers(0, len(symbols)), max_size=3, unique=True).map(sorted))
        texts.append(MergeText(symbols=symbols, weight=draw(WEIGHTS), borders=borders))
    return MergeRules(texts=texts, end_token_ids=draw(ENDS))
