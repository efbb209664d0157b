"""A text document as the Language Server Protocol sees it, one unit of its encoding at a time."""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.text.text_edits import (
    OffsetEdit,
    Position,
    PositionEncoding,
    TextEdit,
)

# The codec, and how many bytes a unit has.
_CODECS: dict[PositionEncoding, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}


def apply_text_edits(
    text: str, edits: Sequence[TextEdit], *, encoding: PositionEncoding = "utf-16"
) -> str:
    """The text after all edits at once. Fails on a range that an editor would refuse or change."""
    offsets = _offsets(_units(text, encoding), encoding)
    by_offsets = [OffsetEdit(offsets[one.start], offsets[one.end], one.text) for one in edits]
    return apply_offset_edits(text, by_offsets, encoding=encoding)


def apply_offset_edits(
    text: str, edits: Sequence[OffsetEdit], *, encoding: PositionEncoding = "utf-16"
) -> str:
    """The same by offsets of units."""
    codec, _ = _CODECS[encoding]
    units = _units(text, encoding)
    written: list[bytes] = []
    place = 0
    for edit in edits:
        assert place <= edit.start <= edit.end, "edits overlap or are out of order"
        written += units[place : edit.start]
        written.append(edit.text.encode(codec, "surrogatepass"))
        place = edit.end
    return b"".join([*written, *units[place:]]).decode(codec, "surrogatepass")


def _units(text: str, encoding: PositionEncoding) -> list[bytes]:
    codec, size = _CODECS[encoding]
    encoded = text.encode(codec, "surrogatepass")
    return [encoded[at : at + size] for at in range(0, len(encoded), size)]


def _offsets(units: Sequence[bytes], encoding: PositionEncoding) -> dict[Position, int]:
    """Every position of the document, with the number of units before it."""
    carriage_return, line_feed = (one.encode(_CODECS[encoding][0]) for one in "\r\n")
    offsets: dict[Position, int] = {}
    line = line_start = 0
    for at, unit in enumerate(units):
        is_inside_crlf = unit == line_feed and at > 0 and units[at - 1] == carriage_return
        if not is_inside_crlf:
            offsets[Position(line, at - line_start)] = at
        is_crlf_ahead = unit == carriage_return and units[at + 1 : at + 2] == [line_feed]
        if unit in (carriage_return, line_feed) and not is_crlf_ahead:
            line, line_start = line + 1, at + 1
    offsets[Position(line, len(units) - line_start)] = len(units)
    return offsets
