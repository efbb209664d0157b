"""Requests as values, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from apply_client.edit import Edit, FilesEdit, files_members_of, members_of
from apply_client.protocol.affinity import Subject, subject_of
from apply_client.protocol.wire import Content

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One HTTP request; `path` follows the address of the service, `subject` is its file."""

    method: Literal["GET", "POST"]
    path: str
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    subject: Subject | None = None


def apply_request(edit: Edit[Content]) -> ApiRequest:
    """The request for the whole answer to an edit. Raises ValueError for a lone surrogate."""
    return _edit_request(edit, stream=False)


def files_request(edit: FilesEdit) -> ApiRequest:
    """The request for the answer to edits of several files. Raises ValueError as above."""
    first = edit.files[0] if edit.files else None
    return _apply_request(
        files_members_of(edit) | {"response": "both"},
        JSON,
        subject=None if first is None else subject_of(first.path, first.original),
    )


def stream_request(edit: Edit[Content]) -> ApiRequest:
    """The request for the events of an edit. Raises ValueError for a lone surrogate."""
    return _edit_request(edit, stream=True)


def models_request() -> ApiRequest:
    """The request for the served models."""
    return ApiRequest("GET", "/v1/models", headers={"Accept": JSON})


def health_request(name: Literal["live", "ready"]) -> ApiRequest:
    """The request that asks if the service answers, or takes edits."""
    return ApiRequest("GET", f"/health/{name}", headers={"Accept": JSON})


def _edit_request(edit: Edit[Content], *, stream: bool) -> ApiRequest:
    members = members_of(edit) | {"stream": stream, "response": "both"}
    return _apply_request(
        members,
        EVENT_STREAM if stream else JSON,
        subject=subject_of(edit.path, edit.original),
    )


def _apply_request(
    members: dict[str, Any], accepted: str, *, subject: Subject | None
) -> ApiRequest:
    headers = {"Content-Type": JSON, "Accept": f"{accepted}, */*;q=0.5"}
    return ApiRequest("POST", "/v1/apply", msgspec.json.encode(members), headers, subject)
