"""What features ask about the lines of an original, as arrays."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.words import WORD

if TYPE_CHECKING:
    from apply_service.edit.place.candidates.original_facts import OriginalFacts

Ints = NDArray[np.signedinteger[Any]]
Bools = NDArray[np.bool_]
MIN_FIRST_WORD = 2
_HEAD = re.compile(r"""[\w.$\-"'@ ]++(?=\s*+[=(:{\[])""")


class LineArrays:
    """Arrays of `[num_lines]`; those of borders before lines have one more element."""

    def __init__(self, original: OriginalFacts) -> None:
        self._original = original

    @cached_property
    def indents(self) -> Ints:
        """The indentation in columns."""
        return np.array(self._original.indents, np.intp)

    @cached_property
    def block_ends(self) -> Ints:
        """Where the block of each line ends."""
        return np.array(self._original.block_ends, np.intp)

    @cached_property
    def opens(self) -> Bools:
        """Whether a line opens a block."""
        return np.array([line.endswith(BLOCK_OPENERS) for line in self._original.lines], bool)

    @cached_property
    def depths(self) -> Ints:
        """`[num_lines + 1]`: brackets that are open before each line."""
        return np.array(self._original.depths, np.intp)

    @cached_property
    def has_blank_before(self) -> Bools:
        """`[num_lines + 1]`: whether a blank line or the border of the text is there."""
        borders = range(len(self._original) + 1)
        return np.array([self._original.has_blank_before(line) for line in borders], bool)

    @cached_property
    def ends_definition(self) -> Bools:
        """`[num_lines + 1]`: whether a definition ends there."""
        found = np.zeros(len(self._original) + 1, bool)
        found[list(self._original.definition_ends)] = True
        return found

    @cached_property
    def definitions(self) -> tuple[Ints, Ints]:
        """`[num_definitions]`: the header and the end of each."""
        found = self._original.definitions
        headers = np.array([one.header for one in found], np.intp)
        return headers, np.array([one.end for one in found], np.intp)

    @cached_property
    def names(self) -> tuple[dict[str, int], Ints]:
        """Numbers of defined names, and of the name that each line defines; -1 without one."""
        names = self._original.header_names
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names.values()))}
        found = np.full(len(self._original), -1)
        for line, name in names.items():
            found[line] = numbers[name]
        return numbers, found

    @cached_property
    def first_words(self) -> tuple[dict[str, int], Ints]:
        """Numbers of words, and of the one that each line begins with; -1 for short ones."""
        words = [first_word(line) for line in self._original.stripped]
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        found = [numbers[word] if len(word) >= MIN_FIRST_WORD else -1 for word in words]
        return numbers, np.array(found, np.intp)

    @cached_property
    def heads(self) -> tuple[dict[str, int], Ints]:
        """Numbers of heads, and of the head of each line."""
        heads = [head_of(line) for line in self._original.stripped]
        numbers = {head: number for number, head in enumerate(dict.fromkeys(heads))}
        return numbers, np.array([numbers[head] for head in heads], np.intp)

    @cached_property
    def word_lines(self) -> dict[str, Ints]:
        """The lines in which each word stands, in order."""
        found: dict[str, list[int]] = {}
        for line, words in enumerate(self._original.words):
            for word in words:
                found.setdefault(word, []).append(line)
        return {word: np.array(lines, np.intp) for word, lines in found.items()}


def head_of(text: str) -> str:
    """What a line binds, calls or opens; else its first word."""
    found = _HEAD.match(text)
    return first_word(text) if found is None else found[0].rstrip(" ") or " "


def first_word(text: str) -> str:
    """The first word of a text; empty if there is none."""
    found = WORD.search(text)
    return "" if found is None else found[0]
