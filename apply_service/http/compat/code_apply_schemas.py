"""The wire format of `POST /v1/code/apply`, in the spellings of Relace, Morph and their clients."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from apply_service.http.compat.chat_schemas import ApplyNote, ChatUsage


class CodeApplyBody(msgspec.Struct, frozen=True, kw_only=True):
    """One edit; each field has two names, of which one is enough. Unknown fields are ignored."""

    initial_code: Annotated[str | None, Meta(description="The whole file as it is now.")] = None
    initialCode: str | None = None  # noqa: N815
    edit_snippet: Annotated[
        str | None,
        Meta(description="Changed code, with markers such as `// ... existing code ...`."),
    ] = None
    editSnippet: str | None = None  # noqa: N815
    instruction: str | None = None
    instructions: str | None = None
    model: str | None = None
    prediction: str | None = None
    stream: bool | None = None


class CodeApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The merged file, under both names."""

    id: str
    model: str
    mergedCode: str  # noqa: N815
    merged_code: str
    usage: ChatUsage
    system_fingerprint: str
    apply: ApplyNote
