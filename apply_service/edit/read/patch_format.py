"""Patches between `*** Begin Patch` and `*** End Patch`, the format that some agents use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apply_service.edit.read.fences import check_file_name
from apply_service.edit.read.hunk import (
    HeaderReader,
    HunkReader,
    SignedHunk,
    has_numbers,
    is_hunk_header,
)
from apply_service.edit.read.lazy_format import LazyReader
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet_error import MalformedSnippetError, UnsupportedOperationError

_BEGIN = re.compile(r"\*\*\* Begin Patch\s*")
_END = re.compile(r"\*\*\* End Patch\s*")
_END_OF_FILE = re.compile(r"\*\*\* End of File\s*")
# Agents call the command that applies patches, with a here-document.
_COMMAND = re.compile(r"\s*(?:\w+ )*apply_patch\s*<<-?\s*(['\"]?)(?P<word>\w+)\1\s*")
_OPERATION = re.compile(r"\*\*\* (?P<verb>Update|Add|Delete|Move) (?:File|to):(?P<name>.*)")


class PatchReader:
    """Recognises and reads patches of one original."""

    def __init__(
        self,
        original: OriginalIndex,
        lazy: LazyReader,
        scan: MarkerScan,
        *,
        path: str | None = None,
    ) -> None:
        self._original = original
        self._lazy = lazy
        self._scan = scan
        self._path = path
        self._headers = HeaderReader(original)

    def is_patch(self, lines: Sequence[SegmentLine]) -> bool:
        """True if the first filled line begins a patch or a file section of one."""
        first = next((line.text for line in _unwrapped(lines) if line.text.strip()), "")
        return bool(_BEGIN.fullmatch(first) or _OPERATION.fullmatch(first))

    def read(self, lines: Sequence[SegmentLine]) -> Snippet:
        """The hunks of the only file that a patch updates, or adds if the original is empty.

        Raises MalformedSnippetError, UnsupportedOperationError.
        """
        body = self._body(lines)
        operation = next((line for line in body if _OPERATION.fullmatch(line.text)), None)
        self._check_operations(body)
        if operation is not None and operation.text.startswith("*** Add"):
            return _added_file(body)
        hunks = self._hunks(body)
        if not any(line.text[:1] in ("+", "-") for hunk in hunks for line in hunk.lines):
            raise MalformedSnippetError(
                f"none of the {len(body)} lines of the patch begins with + or -; send the lines of"
                " its hunks too"
            )
        reader = HunkReader(self._original, hunks, is_spaced=True)
        segments: list[Segment] = []
        for hunk in hunks:
            segments.extend(map(self._lazy.with_optional, reader.segments(hunk)))
        return Snippet(format="patch", segments=tuple(segments))

    def _body(self, lines: Sequence[SegmentLine]) -> list[SegmentLine]:
        """The lines between begin and end."""
        body: list[SegmentLine] = []
        has_begin = is_ended = False
        for line in _unwrapped(lines):
            if _BEGIN.fullmatch(line.text):
                has_begin, is_ended = True, False
            elif _END.fullmatch(line.text):
                is_ended = True
            elif is_ended and line.text.strip():
                raise MalformedSnippetError(
                    f"line {line.number} of the update stands after `*** End Patch`; put it before"
                    " the end, or leave it out"
                )
            else:
                body.append(line)
        if has_begin and not is_ended:
            raise MalformedSnippetError(
                f"the patch ends after {len(lines)} lines without `*** End Patch`, so part of it"
                " may be missing; send all of it"
            )
        return body

    def _check_operations(self, lines: Sequence[SegmentLine]) -> None:
        is_empty = not any(self._original.stripped)
        names: list[str] = []
        for line in lines:
            match = _OPERATION.fullmatch(line.text)
            if match is None:
                continue
            verb, name = match["verb"], match["name"].strip()
            is_supported = verb == "Update" or (verb == "Add" and is_empty)
            names = list(dict.fromkeys([*names, name]))
            if not is_supported or len(names) > 1:
                raise UnsupportedOperationError(
                    f"line {line.number} of the update (`{line.text.strip()}`) does not update the"
                    " one file of this request; send one request for each file that changes, and"
                    " add, move or delete files yourself"
                )
            check_file_name(name, self._path, number=line.number)

    def _hunks(self, lines: Sequence[SegmentLine]) -> list[SignedHunk]:
        """The lines between headers; consecutive headers narrow the place."""
        hunks: list[SignedHunk] = []
        body: list[SegmentLine] = []
        hint: int | None = None
        is_below, last = False, None
        for line in lines:
            is_end = bool(_END_OF_FILE.fullmatch(line.text))
            is_header = is_hunk_header(line.text)
            if is_end or is_header or self._is_cut(line.text):
                is_stacked = is_header and not any(one.text.strip() for one in body)
                if not is_stacked:
                    hunks.append(
                        SignedHunk(
                            lines=tuple(body),
                            line_hint=hint,
                            is_below_hint=is_below,
                            is_at_end=is_end,
                        )
                    )
                outer = hint if is_stacked else None
                hint = outer
                if is_header:
                    hint = self._headers.line_hint(line.text, after=outer) or outer
                    if hint is None and last is not None:
                        # A heading that stands in several lines is below the one before.
                        hint = self._headers.line_hint(line.text, after=last)
                    last = hint or last
                is_below = hint is not None and not has_numbers(line.text)
                body = []
            else:
                body.append(line)
        hunks.append(SignedHunk(lines=tuple(body), line_hint=hint, is_below_hint=is_below))
        return [hunk for hunk in hunks if any(line.text.strip() for line in hunk.lines)]

    def _is_cut(self, text: str) -> bool:
        if _OPERATION.fullmatch(text) or self._scan.is_marker(text):
            return True
        return text[:1] in ("+", "-") and self._scan.is_marker(text[1:])


def _unwrapped(lines: Sequence[SegmentLine]) -> Sequence[SegmentLine]:
    """The lines inside a here-document, if they are one."""
    filled = [place for place, line in enumerate(lines) if line.text.strip()]
    command = _COMMAND.fullmatch(lines[filled[0]].text) if filled else None
    if command is None or lines[filled[-1]].text.strip() != command["word"]:
        return lines
    return lines[filled[0] + 1 : filled[-1]]


def _added_file(body: Sequence[SegmentLine]) -> Snippet:
    lines = [
        SegmentLine(line.text[1:], line.number, "new") for line in body if line.text.startswith("+")
    ]
    if not lines:
        raise MalformedSnippetError(
            "the patch adds an empty file; begin each line of the file with +"
        )
    segment = Segment(lines=tuple(lines), has_gap_before=False, has_gap_after=False)
    return Snippet(format="whole", segments=(segment,))
