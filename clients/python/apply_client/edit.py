"""One edit as a caller describes it, and its JSON body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal

import msgspec

from apply_client.protocol.wire import Acceptance, Content

Priority = Literal["interactive", "batch"]
PatchFormat = Literal["apply_patch", "diff"]
UpdateFormat = Literal[
    "old_new",
    "hashline",
    "line_range",
    "json_patch",
    "lazy",
    "search_replace",
    "apply_patch",
    "diff",
]
# A lazy update, or another form of the service's docs/agent-forms.md as decoded JSON.
Update = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling of the answer; the default is greedy, and a seed makes a draw repeatable.

    Any `acceptance` but exact, which is the default, lets drafts pass that the model would not
    have written; the server has to allow it.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    max_tokens: int | None = None
    acceptance: Acceptance | msgspec.UnsetType = msgspec.UNSET


class ApplyOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of an edit; None takes the service's own default.

    `checks="off"` returns rejected results as well. `use_model="never"` gives the deterministic
    merge. `on_doubt="best"` takes the likeliest merge for certain. `deadline_s` is the service's:
    it gives an edit up that is not done by then.
    """

    language: str | None = None
    scope: Literal["auto", "file", "region"] | None = None
    checks: Literal["on", "off"] | None = None
    constraint: Literal["merge", "none"] | None = None
    use_model: Literal["auto", "always", "never"] | None = None
    on_doubt: Literal["ask", "best", "refuse"] | None = None
    prediction: str | None = None
    sampling: Sampling | None = None
    speculation: Literal["on", "off"] | None = None
    k: int | None = None
    priority: Priority | None = None
    model: str | None = None
    include: tuple[Literal["decisions", "trace"], ...] = ()
    deadline_s: float | None = None


DEFAULT_OPTIONS = ApplyOptions()


@dataclass(frozen=True, slots=True)
class Edit(Generic[Content]):
    """A file as it is now, an update of it, and options.

    The original is text, or bytes in any text encoding, which come back in the same encoding.
    `format` says how the update is written; without it the service looks.
    `resolve` is the id of a choice that the same edit was answered with.
    """

    original: Content
    update: Update
    format: UpdateFormat | None = field(default=None, kw_only=True)
    path: str | None = field(default=None, kw_only=True)
    instruction: str | None = field(default=None, kw_only=True)
    options: ApplyOptions = field(default=DEFAULT_OPTIONS, kw_only=True)
    resolve: str | None = field(default=None, kw_only=True)


def members_of(edit: Edit[Content]) -> dict[str, Any]:
    """The members of the JSON body; bytes stay bytes, which msgspec writes as Base64."""
    original = edit.original
    members: dict[str, Any] = {
        "original": {"base64": original} if isinstance(original, bytes) else original,
        "update": edit.update,
    }
    if edit.format is not None:
        members["format"] = edit.format
    if edit.path is not None:
        members["path"] = edit.path
    if edit.instruction is not None:
        members["instruction"] = edit.instruction
    if edit.resolve is not None:
        members["resolve"] = edit.resolve
    options: dict[str, Any] = msgspec.to_builtins(edit.options)
    return members | options


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file of several that are edited together, by a path that no other one has.

    `update` is missing where one patch speaks of all files. The instruction takes the place of the
    common one. Text comes back as text, bytes as bytes.
    """

    path: str
    original: str | bytes
    update: Update | None = None
    format: UpdateFormat | None = field(default=None, kw_only=True)
    instruction: str | None = field(default=None, kw_only=True)
    language: str | None = field(default=None, kw_only=True)
    prediction: str | None = field(default=None, kw_only=True)
    resolve: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class FilesEdit:
    """Files, and what is to be done with all of them.

    `update` is a `*** Begin Patch` patch or a unified diff of several files. With `is_atomic` no
    file has a result unless all are applied or unchanged. Of the options, language and prediction
    belong to a single file.
    """

    files: Sequence[FileEdit]
    update: str | None = field(default=None, kw_only=True)
    format: PatchFormat | None = field(default=None, kw_only=True)
    is_atomic: bool = field(default=False, kw_only=True)
    instruction: str | None = field(default=None, kw_only=True)
    options: ApplyOptions = field(default=DEFAULT_OPTIONS, kw_only=True)

    def resolved(self, choices: Mapping[str, str]) -> FilesEdit:
        """The same, with the id of the choice for each path in doubt."""
        files = [replace(file, resolve=choices.get(file.path, file.resolve)) for file in self.files]
        return replace(self, files=files)


def files_members_of(edit: FilesEdit) -> dict[str, Any]:
    """The members of the JSON body."""
    members: dict[str, Any] = {
        "files": [_file_members_of(file) for file in edit.files],
        "atomic": edit.is_atomic,
        "update": edit.update,
        "format": edit.format,
        "instruction": edit.instruction,
    }
    options: dict[str, Any] = msgspec.to_builtins(edit.options)
    return {name: value for name, value in members.items() if value is not None} | options


def _file_members_of(file: FileEdit) -> dict[str, Any]:
    members = {name: getattr(file, name) for name in FileEdit.__slots__}
    if isinstance(file.original, bytes):
        members["original"] = {"base64": file.original}
    return {name: value for name, value in members.items() if value is not None}
