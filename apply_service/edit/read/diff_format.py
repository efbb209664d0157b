"""Diff-like updates: `-old` and `+new` lines, with or without headers, line numbers and spaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
from apply_service.edit.read.original_index import OriginalIndex, is_telling
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet_error import MalformedSnippetError, UnsupportedOperationError

# Without a header: the share of removed lines, or of context, that must stand in the original.
MIN_REMOVED_SHARE = 0.6
MIN_CONTEXT_SHARE = 0.8

_EXTENDED_HEADER = re.compile(
    r"(?:index [0-9a-f]{4,}\.\.[0-9a-f]+|(?:new|deleted) file mode \d|(?:old|new) mode \d|"
    r"(?:dis)?similarity index \d|(?:rename|copy) (?:from|to) \S|Index: \S|={20,}$|diff -\w)"
)
# What stands behind the name of a file: a tab and anything, or a date.
_BEHIND_NAME = re.compile(r"\t|(?<!\s)\s++\d{4}-\d\d-\d\d")
_NO_NEWLINE = re.compile(r"\\ No newline at end of file\s*")
_LIST_ITEM = re.compile(r"- \S.*")
_RULE = re.compile(r"[-+]{3,}\s*")
_LETTER = re.compile(r"[^\W\d_]")
# Where a line that begins with a sign may be a line of the file; None is an unknown language.
_LIST_LANGUAGES = frozenset({"markdown", "yaml", "sql", "lua", None})
_DIFF_SUFFIXES = (".diff", ".patch", ".rej")


@dataclass(frozen=True, slots=True)
class DiffFile:
    """The old and the new name in one file section."""

    old_name: str
    new_name: str
    number: int


class DiffReader:
    """Recognises and reads diff-like updates of one original in `language` (a canonical name)."""

    def __init__(
        self,
        original: OriginalIndex,
        lazy: LazyReader,
        scan: MarkerScan,
        *,
        path: str | None = None,
        language: str | None = None,
    ) -> None:
        self._original = original
        self._language = language
        self._lazy = lazy
        self._scan = scan
        self._headers = HeaderReader(original)
        self._path = path

    def is_diff(self, lines: Sequence[SegmentLine]) -> bool:
        """True if the signs in front of lines are a diff's signs and not text."""
        if self._path is not None and self._path.lower().endswith(_DIFF_SUFFIXES):
            return False
        texts = [line.text for line in lines]
        has_file_header = any(
            _is_file_header(texts, place) and not self._original.has(texts[place])
            for place in range(len(texts))
        )
        headers = [text for text in texts if is_hunk_header(text) and not self._original.has(text)]
        signed = [text for text in texts if self._is_signed(text)]
        if has_file_header or any(map(has_numbers, headers)):
            return bool(signed) or has_file_header
        removed = [text for text in signed if text[0] == "-"]
        added = [text for text in signed if text[0] == "+"]
        hits = [text for text in removed if self._original.has(text[1:])]
        if headers and (hits or added):
            return True
        if removed:
            return self._is_removal(removed, hits, added) or self._has_replaced_pair(texts)
        return bool(added) and self._is_addition(texts)

    def read(self, parts: Sequence[Sequence[SegmentLine]]) -> Snippet:
        """Hunks as segments. Raises MalformedSnippetError, UnsupportedOperationError."""
        lines = [line for part in parts for line in part]
        self._check_files(lines)
        hunks: list[SignedHunk] = []
        for part in parts:
            hunks.extend(self._hunks(part))
        has_headers = any(is_hunk_header(line.text) for line in lines)
        reader = HunkReader(self._original, hunks, is_spaced=has_headers)
        segments: list[Segment] = []
        for hunk in hunks:
            segments.extend(reader.segments(hunk))
        if not segments:
            raise MalformedSnippetError(
                f"none of the {len(lines)} lines of the diff begins with + or -; send the lines of"
                " its hunks too"
            )
        return Snippet(
            format="diff", segments=tuple(self._lazy.with_optional(one) for one in segments)
        )

    def _is_signed(self, text: str) -> bool:
        if text[:1] not in ("+", "-") or not text[1:].strip() or _RULE.fullmatch(text):
            return False
        return not self._original.has(text) and not self._scan.is_marker(text)

    def _is_removal(self, removed: list[str], hits: list[str], added: list[str]) -> bool:
        if len(hits) < MIN_REMOVED_SHARE * len(removed) or not any(map(_LETTER.search, hits)):
            return False
        return bool(added) or not all(_LIST_ITEM.fullmatch(text) for text in removed)

    def _has_replaced_pair(self, texts: Sequence[str]) -> bool:
        """True if a `+` line follows a `-` line in a language without such lines.

        The old lines may be misremembered. Read as text, the lines would be written into the file
        with their signs.
        """
        if self._language in _LIST_LANGUAGES or any(
            line[:1] in ("+", "-") for line in self._original.lines
        ):
            return False
        return any(
            left[:1] == "-"
            and right[:1] == "+"
            and self._is_signed(left)
            and self._is_signed(right)
            for left, right in pairwise(texts)
        )

    def _is_addition(self, texts: Sequence[str]) -> bool:
        """True if lines are only added, among lines that all stand in the original."""
        if self._language == "markdown" or any(
            line.startswith("+") for line in self._original.lines
        ):
            return False
        context = [
            text
            for text in texts
            if text.strip() and text[0] != "+" and not self._scan.is_marker(text)
        ]
        known = [text for text in context if self._original.has(text)]
        return len(known) >= MIN_CONTEXT_SHARE * len(context) and any(map(is_telling, known))

    def _hunks(self, lines: Sequence[SegmentLine]) -> list[SignedHunk]:
        """The lines between headers and markers; headers are dropped."""
        texts = [line.text for line in lines]
        hunks: list[SignedHunk] = []
        body: list[SegmentLine] = []
        hint: int | None = None
        is_header = True
        for place, text in enumerate(texts):
            is_header = _is_file_header(texts, place) or (
                is_header and (not text or _EXTENDED_HEADER.match(text) is not None)
            )
            if is_header or is_hunk_header(text) or self._is_signed_marker(text):
                hunks.append(SignedHunk(lines=tuple(body), line_hint=hint))
                body = []
                hint = self._headers.line_hint(text) if is_hunk_header(text) else None
            elif not _NO_NEWLINE.fullmatch(text):
                body.append(lines[place])
        hunks.append(SignedHunk(lines=tuple(body), line_hint=hint))
        return [hunk for hunk in hunks if any(line.text.strip() for line in hunk.lines)]

    def _is_signed_marker(self, text: str) -> bool:
        if self._scan.is_marker(text):
            return True
        return text[:1] in ("+", "-") and self._scan.is_marker(text[1:])

    def _check_files(self, lines: Sequence[SegmentLine]) -> None:
        """Check that the update has only one file, and that it is the one being edited."""
        texts = [line.text for line in lines]
        files = [
            DiffFile(
                file_name_of(texts[place]), file_name_of(texts[place + 1]), lines[place].number
            )
            for place in range(len(texts))
            if texts[place].startswith("---") and _is_file_header(texts, place)
        ]
        for file in files:
            if file.new_name == "/dev/null":
                raise UnsupportedOperationError(
                    f"line {file.number} of the update deletes {file.old_name}, and this service"
                    " edits only the text of one file; delete the file yourself"
                )
        if len({file.new_name for file in files}) > 1:
            raise UnsupportedOperationError(
                f"the update changes {len(files)} files ({files[0].new_name}, {files[1].new_name},"
                " …), and a request edits 1 file; send one request for each file, with its"
                " original"
            )
        # Names such as "original.py" and "updated.py" are no paths.
        for file in files[:1]:
            if file.old_name in (file.new_name, "/dev/null"):
                check_file_name(file.new_name, self._path, number=file.number)


def file_name_of(header: str) -> str:
    """The path in a line that begins with `---` or `+++`."""
    name = header[3:].strip()
    if name.endswith(")"):
        name = name.partition("(")[0]
    name = _BEHIND_NAME.split(name, maxsplit=1)[0].rstrip().strip('"')
    return name[2:] if name.startswith(("a/", "b/")) else name


def _is_file_header(texts: Sequence[str], place: int) -> bool:
    """True if the line is a name of a file section; `---` counts only before `+++`."""
    text = texts[place]
    if text.startswith("--- "):
        return texts[place + 1 : place + 2] != [] and texts[place + 1].startswith("+++ ")
    if text.startswith("+++ "):
        return place > 0 and texts[place - 1].startswith("--- ")
    return text.startswith("diff --git ")
