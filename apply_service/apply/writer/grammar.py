"""A grammar whose only answers are given texts, in GBNF, which vLLM reads as EBNF.

https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from __future__ import annotations

from collections.abc import Sequence

from lookup.merge_automaton import num_equal

# Servers compile a grammar for each request; what is longer takes them longer than it saves.
MAX_GRAMMAR_CHARACTERS = 60_000
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def grammar_of(texts: Sequence[str]) -> str | None:
    """The grammar of some texts, none of them empty; None where it would be too long.

    What all begin or end with stands once.
    """
    different = list(dict.fromkeys(texts))
    assert all(different), "a server writes at least one character"
    if len(different) == 1:
        rule = _literal(different[0])
    else:
        # One character of each text is left, so that no alternative is empty.
        start = _num_shared(different)
        rests = [text[start:] for text in different]
        length = _num_shared([rest[::-1] for rest in rests])
        end = rests[0][len(rests[0]) - length :]
        ways = " | ".join(_literal(rest[: len(rest) - length]) for rest in rests)
        around = [_literal(part) if part else "" for part in (different[0][:start], end)]
        rule = f"{around[0]} ({ways}) {around[1]}".strip()
    grammar = f"root ::= {rule}\n"
    return grammar if len(grammar) <= MAX_GRAMMAR_CHARACTERS and "\0" not in grammar else None


def _num_shared(texts: Sequence[str]) -> int:
    """How many characters all texts begin with, leaving one of each."""
    shortest = min(texts, key=len)
    return min(len(shortest) - 1, *(num_equal(shortest, text) for text in texts))


def _literal(text: str) -> str:
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    code = ord(character)
    return f"\\x{code:02x}" if 0 < code < 0x20 or code == 0x7F else character
