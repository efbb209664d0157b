"""A text document as the Language Server Protocol sees it, one UTF-16 code unit at a time."""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.text.text_edits import Position, TextEdit

_UNIT_BYTES = 2
_CR, _LF = ("\r".encode("utf-16-le"), "\n".encode("utf-16-le"))


def apply_text_edits(text: str, edits: Sequence[TextEdit]) -> str:
    """The text after all edits at once. Fails on a range that an editor would refuse or change."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    units = [encoded[at : at + _UNIT_BYTES] for at in range(0, len(encoded), _UNIT_BYTES)]
    offsets = _offsets(units)
    written: list[bytes] = []
    place = 0
    for edit in edits:
        start, end = offsets[edit.start], offsets[edit.end]
        assert place <= start <= end, "edits overlap or are out of order"
        written += units[place:start]
        written.append(edit.text.encode("utf-16-le", "surrogatepass"))
        place = end
    return b"".join([*written, *units[place:]]).decode("utf-16-le", "surrogatepass")


def _offsets(units: Sequence[bytes]) -> dict[Position, int]:
    """Every position of the document, with the number of code units before it."""
    offsets: dict[Position, int] = {}
    line = line_start = 0
    for at, unit in enumerate(units):
        is_inside_crlf = unit == _LF and at > 0 and units[at - 1] == _CR
        if not is_inside_crlf:
            offsets[Position(line, at - line_start)] = at
        is_crlf_ahead = unit == _CR and units[at + 1 : at + 2] == [_LF]
        if unit in (_CR, _LF) and not is_crlf_ahead:
            line, line_start = line + 1, at + 1
    offsets[Position(line, len(units) - line_start)] = len(units)
    return offsets
