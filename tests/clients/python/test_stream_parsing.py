"""Events and lines out of bytes, cut anywhere: as a reading of the whole says, or a clear error."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import suppress

import pytest
from apply_client.errors import InvalidResponseError
from apply_client.protocol.sse import ServerSentEvent, SseParser
from hypothesis import given, settings
from hypothesis import strategies as st

ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
LINES = st.one_of(
    st.sampled_from([b"", b"", b"event: a", b"event:b", b"data: {}", b"data:", b"data", b": note"]),
    st.builds(lambda text: b"data: " + text, st.binary(max_size=8)),
    st.binary(max_size=8),
)
STREAMS = st.builds(
    lambda mark, parts: mark + b"".join(itertools.chain.from_iterable(parts)),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xef\xbb"]),
    st.lists(st.tuples(LINES, ENDS), max_size=12),
)
CUTS = st.lists(st.integers(0, 150), max_size=12)


def pieces_of(content: bytes, cuts: Sequence[int]) -> list[bytes]:
    borders = sorted({0, len(content), *(min(cut, len(content)) for cut in cuts)})
    return [content[start:stop] for start, stop in itertools.pairwise(borders)]


def events_of(content: bytes) -> list[ServerSentEvent]:
    """The events of a whole stream, as the standard says it in words."""
    lines = re.split(rb"\r\n|\n|\r", content.removeprefix(b"\xef\xbb\xbf"))
    events = []
    name, values = b"", []
    for line in lines[:-1]:  # behind the last end there is no line yet
        if line:
            field, _, value = line.partition(b":")
            value = value[1:] if value[:1] == b" " else value
            if field == b"event":
                name = value
            if field == b"data":
                values.append(value)
            continue
        if values:
            shown = (name or b"message").decode("utf-8", "replace")
            events.append(ServerSentEvent(shown, b"\n".join(values)))
        name, values = b"", []
    return events


@given(content=STREAMS, cuts=CUTS)
@settings(max_examples=400)
def test_events_do_not_depend_on_the_cuts(content: bytes, cuts: list[int]) -> None:
    parser = SseParser()
    found = [event for piece in pieces_of(content, cuts) for event in parser.feed(piece)]
    assert found == events_of(content)


@given(content=STREAMS)
@settings(max_examples=50)
def test_events_of_single_bytes(content: bytes) -> None:
    parser = SseParser()
    found = [event for byte in content for event in parser.feed(bytes([byte]))]
    assert found == events_of(content)


@given(pieces=st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_events_or_too_many(pieces: list[bytes]) -> None:
    parser = SseParser(max_event_bytes=30)
    with suppress(InvalidResponseError):
        for piece in pieces:
            parser.feed(piece)


def feed_all(parser: SseParser, piece: bytes) -> None:
    """The same piece twenty times."""
    for _ in range(20):
        assert parser.feed(piece) == []


@pytest.mark.parametrize("piece", [b"x" * 20, b"data: 0123456789\n"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    with pytest.raises(InvalidResponseError, match="the limit is 100"):
        feed_all(SseParser(max_event_bytes=100), piece)


def test_fields_of_other_names_need_no_memory() -> None:
    feed_all(SseParser(max_event_bytes=100), b"note: " + b"x" * 20 + b"\n")
