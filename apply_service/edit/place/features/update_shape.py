"""What an update shows of the order and depth of its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.read.segment import Snippet
from apply_service.edit.text.block_bounds import columns
from apply_service.edit.text.definition_names import definition_name


@dataclass(frozen=True, slots=True)
class SentLine:
    """A filled line that was sent, without space around it; `segment` is its segment's number."""

    text: str
    indent: int
    segment: int
    is_optional: bool


class UpdateShape:
    """The lines of one reading of an update."""

    def __init__(self, snippet: Snippet) -> None:
        self.lines = [
            SentLine(line.text.strip(), columns(line.text), number, line.is_optional)
            for number, segment in enumerate(snippet.segments)
            for line in segment.lines
            if line.text.strip()
        ]
        self._marker_indents = [segment.next_indent for segment in snippet.segments]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each line was sent."""
        return Counter(line.text for line in self.lines)

    @cached_property
    def nested(self) -> list[tuple[str, str]]:
        """Lines that were sent in a block, each with the header of the block."""
        found: list[tuple[str, str]] = []
        above: list[SentLine] = []
        for line in self.lines:
            while above and above[-1].indent >= line.indent:
                above.pop()
            if above and not line.is_optional and not above[-1].is_optional:
                found.append((line.text, above[-1].text))
            above.append(line)
        return list(dict.fromkeys(found))

    @cached_property
    def neighbours(self) -> Counter[tuple[str, str]]:
        """Lines that were sent one after the other."""
        lines = [line for line in self.lines if not line.is_optional]
        return Counter(
            (above.text, line.text)
            for above, line in pairwise(lines)
            if above.segment == line.segment
        )

    @cached_property
    def headed(self) -> list[tuple[str, str]]:
        """Comments above a line that is as deep, with that line."""
        return [
            (above.text, line.text)
            for above, line in pairwise(self.lines)
            if above.segment == line.segment
            and above.indent == line.indent
            and is_comment(above.text)
            and not is_comment(line.text)
        ]

    @cached_property
    def complete(self) -> list[tuple[str, Counter[str]]]:
        """Definitions that were sent without a marker inside: the header, and all lines."""
        return list(self._complete())

    def _complete(self) -> Iterator[tuple[str, Counter[str]]]:
        for start, line in enumerate(self.lines):
            if definition_name(line.text) is None:
                continue
            end = start + 1
            while end < len(self.lines) and self.lines[end].indent > line.indent:
                end += 1
            body = self.lines[start : min(end + 1, len(self.lines))]
            inner = self.lines[start:end]
            if len(inner) < 2 or inner[-1].segment != line.segment:
                continue
            is_last = end == len(self.lines) or self.lines[end].segment != line.segment
            marker = self._marker_indents[line.segment]
            if is_last and marker is not None and marker > line.indent:
                continue
            yield line.text, Counter(one.text for one in body)
