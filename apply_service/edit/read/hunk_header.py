"""What the header of a hunk points at: a line number, or a line of the original by its text."""

from __future__ import annotations

import re

from apply_service.edit.read.original_index import OriginalIndex, is_telling

# A heading that stands in no line as a whole is looked for inside all of them.
MAX_SEARCHES = 100

_HEADING = re.compile(r"@@+(?:\s+(?P<text>.*?))?(?:\s*@@+.*)?\s*")
_NUMBERS = re.compile(r"@@+\s+-(?P<start>\d{1,9})(?:,(?P<count>\d+))?(?=[\s,+@]|$)")


def is_hunk_header(line: str) -> bool:
    """Whether `line` begins a hunk: `@@`, `@@ -1,2 +1,3 @@`, `@@ class Reader`."""
    return line.startswith("@@") and (line.rstrip("@ ") == "" or line[2:3] == " ")


def has_numbers(header: str) -> bool:
    """Whether a hunk header names lines by number, as a diff does."""
    return _NUMBERS.match(header) is not None


class HeaderReader:
    """Finds what hunk headers point at in one original."""

    def __init__(self, original: OriginalIndex) -> None:
        self._original = original
        self._num_searches = 0

    def line_hint(self, header: str, *, after: int = 1) -> int | None:
        """The line that a header points at, from 1 and not before `after`, or None.

        A heading that stands in several lines says nothing. Numbers are taken as they are: the
        first old line, or the line before which a hunk without old lines stands.
        """
        numbers = _NUMBERS.match(header)
        if numbers is not None:
            start = int(numbers["start"])
            return start + 1 if numbers["count"] == "0" else max(start, 1)
        heading = _HEADING.fullmatch(header[:400])
        text = (heading["text"] or "").strip() if heading is not None else ""
        return self.find_heading(text, after=after) if is_telling(text) else None

    def find_heading(self, text: str, *, after: int = 1) -> int | None:
        """The only line from `after` on that is `text`, or else that holds it; from 1."""
        stripped = self._original.stripped
        if text in self._original.counts:
            found = [place for place in self._original.places[text] if place + 1 >= after]
        elif self._num_searches < MAX_SEARCHES:
            self._num_searches += 1
            found = [place for place in range(after - 1, len(stripped)) if text in stripped[place]]
        else:
            return None
        return found[0] + 1 if len(found) == 1 else None
