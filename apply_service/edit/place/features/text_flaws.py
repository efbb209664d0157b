"""What is odd in a text, to be compared with what was odd in the original."""

from __future__ import annotations

import re
from functools import cached_property

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.text.brackets import BLOCK_OPENERS, CLOSERS_OR_END

_LEAVES = ("return", "raise ", "throw ", "continue", "break")
# What a block has once: keys, and the patterns of a `switch` or `when`.
_LABEL = re.compile(
    r"""("[^"]*"|'[^']*'|[\w$](?:[\w.$ ]|-(?!>))*+|\*|_)\s*+(=>|->|:(?![:=])|=(?!=))"""
)
_STATEMENTS = frozenset({"else", "try", "finally", "do", "public", "private", "protected"})
_GOES_ON = ("case", "default", "else", "elif", "except", "end", "when", "//", "--", "rescue", "#")


class TextFlaws:
    """The flaws of one text, each counted when it is first asked for."""

    def __init__(self, text: OriginalFacts) -> None:
        self._text = text

    @cached_property
    def dead_lines(self) -> list[int]:
        """Filled lines that cannot be reached, as they follow a return or the like."""
        indents, lines = self._text.indents, self._text.stripped
        return [
            number + 1
            for number, line in enumerate(lines[:-1])
            if indents[number] == indents[number + 1]
            and line.startswith(_LEAVES)
            and line[-1:] not in "([{,=+&|?:\\"
            and lines[number + 1][:1] not in "})].?:&|+*/#@<-"
            and not lines[number + 1].startswith(_GOES_ON)
        ]

    @cached_property
    def num_shallow(self) -> int:
        """Lines behind an opened block that are no deeper."""
        indents, lines = self._text.indents, self._text.stripped
        return sum(
            indents[number + 1] <= indents[number]
            and _opens(line)
            and not lines[number + 1].startswith((*CLOSERS_OR_END, "</", "case", "default"))
            for number, line in enumerate(lines[:-1])
        )

    @cached_property
    def num_jumps(self) -> int:
        """Lines deeper than the line above, which opens no block."""
        indents, lines = self._text.indents, self._text.stripped
        return sum(
            indents[number + 1] > indents[number]
            and not _opens(line)
            and line[-1:] not in ",+-*/=&|?\\.>"
            and not lines[number + 1].startswith((".", "&", "|", "?", "+", "*"))
            for number, line in enumerate(lines[:-1])
        )

    @cached_property
    def num_labels_twice(self) -> int:
        """Keys, fields and patterns that stand once more in one block."""
        found = []
        for header, line in zip(self._text.block_headers, self._text.stripped, strict=True):
            label = _LABEL.match(line)
            if label is not None and not (label[2] == ":" and label[1] in _STATEMENTS):
                found.append((header, label[1]))
        return len(found) - len(set(found))


def _opens(line: str) -> bool:
    is_tag = line.startswith("<") and line.endswith(">") and line[1:2].isalpha()
    return line.endswith(BLOCK_OPENERS) or (is_tag and not line.endswith("/>") and "</" not in line)
