"""Recorded requests of other services' clients, and readers of the answers.

`tests/cases/compat_requests` has one a line: name, path, body and the answer's text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from case_files import read_records


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request, and the expected text of its answer."""

    name: str
    path: str
    body: dict[str, Any]
    expected: str

    @property
    def is_streamed(self) -> bool:
        return bool(self.body.get("stream"))


def recorded_requests() -> list[RecordedRequest]:
    """All requests, in the order of the file."""
    return [RecordedRequest(**record) for record in read_records("compat_requests")]


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream, after a check that it is closed as OpenAI's are."""
    *blocks, end, nothing = text.split("\n\n")
    assert (end, nothing) == ("data: [DONE]", "")
    assert all(block.startswith("data: ") for block in blocks)
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


def streamed_text(events: list[dict[str, Any]]) -> str:
    """The text of a stream, after a check that only its last piece has a finish reason."""
    choices = [event["choices"][0] for event in events if event["choices"]]
    reasons = [choice["finish_reason"] for choice in choices]
    assert reasons[:-1] == [None] * (len(reasons) - 1)
    assert reasons[-1] in ("stop", "length")
    assert choices[0]["delta"]["role"] == "assistant"
    return "".join(choice["delta"].get("content", "") for choice in choices)


def text_of(request: RecordedRequest, answer: str) -> str:
    """The text in the body of an answer, after a check of the form that its path promises."""
    if request.is_streamed:
        return streamed_text(events_of(answer))
    content = json.loads(answer)
    if request.path.endswith("/code/apply"):
        assert content["mergedCode"] == content["merged_code"]
        return str(content["mergedCode"])
    (choice,) = content["choices"]
    assert (content["object"], choice["finish_reason"]) == ("chat.completion", "stop")
    return str(choice["message"]["content"])
