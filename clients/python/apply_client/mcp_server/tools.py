"""The tools of the MCP server: their schemas, and the edits in their arguments.

The description of `edit_file` is that of the service (`GET /v1/tools/edit_file?form=mcp`), carried
along in edit_tool.json, so that a model learns the same wherever it meets the tool.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from importlib import resources
from typing import Any

import msgspec

from apply_client.errors import ApplyClientError
from apply_client.workspace.edits import EditOrder

EDIT_FILE, EDIT_FILES = "edit_file", "edit_files"
MAX_EDITS = 20

_OPTIONS: dict[str, dict[str, str]] = {
    "expected_sha256": {
        "type": "string",
        "description": "SHA-256 that the file must have, from an earlier answer; the edit is"
        " refused if the file has changed since.",
    },
    "resolve": {
        "type": "string",
        "description": "The id of a choice that this edit was answered with; send the same edit"
        " with it.",
    },
    "dry_run": {
        "type": "boolean",
        "description": "Only show what would change; nothing is written.",
    },
}
_EDIT_FILES_DESCRIPTION = (
    "Edit several files in one call. Each edit is what `edit_file` takes; its description says how"
    " to write `code_edit`. Each is merged, checked and written by itself: one that is refused does"
    " not stop the others. Edits of one file are carried out in their order, each on the result of"
    " the one before. To add or delete files, send a `*** Begin Patch` patch with"
    " `*** Add File: PATH` or `*** Delete File: PATH` as `code_edit`, with that path as"
    " `target_file`. A patch of several files is written whole or not at all."
)


class ArgumentError(ApplyClientError):
    """The arguments of a tool call do not describe an edit."""


class EditArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One edit as a model sends it; two arguments have a second name that models also use."""

    target_file: str | None = None
    path: str | None = None
    instructions: str | None = None
    instruction: str | None = None
    code_edit: str | None = None
    expected_sha256: str | None = None
    resolve: str | None = None


class EditFileArguments(EditArguments, frozen=True, forbid_unknown_fields=True):
    """The arguments of `edit_file`."""

    dry_run: bool | None = None


class EditFilesArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `edit_files`."""

    edits: list[EditArguments]
    dry_run: bool | None = None


def tool_schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """`edit_file` and `edit_files` in the form of `tools/list`."""
    text = resources.files("apply_client.mcp_server").joinpath("edit_tool.json").read_bytes()
    one: dict[str, Any] = msgspec.json.decode(text)
    edit = copy.deepcopy(one["inputSchema"])
    edit["properties"] |= {name: _OPTIONS[name] for name in ("expected_sha256", "resolve")}
    one["inputSchema"]["properties"] |= _OPTIONS
    several = {
        "type": "object",
        "properties": {
            "edits": {"type": "array", "items": edit, "minItems": 1, "maxItems": MAX_EDITS},
            "dry_run": _OPTIONS["dry_run"],
        },
        "required": ["edits"],
        "additionalProperties": False,
    }
    # The second names are taken too, and a client may check arguments against the schema.
    for schema in (one["inputSchema"], edit):
        schema.pop("additionalProperties", None)
    return one, {"name": EDIT_FILES, "description": _EDIT_FILES_DESCRIPTION, "inputSchema": several}


def orders_of(tool: str, arguments: Mapping[str, Any]) -> tuple[list[EditOrder], bool]:
    """The orders in a call, and whether it is a dry run. Raises ArgumentError."""
    try:
        if tool == EDIT_FILE:
            one = msgspec.convert(arguments, EditFileArguments)
            return [_order(one)], bool(one.dry_run)
        several = msgspec.convert(arguments, EditFilesArguments)
    except msgspec.ValidationError as error:
        raise ArgumentError(f"{error}; {tool} takes {_names(tool)}") from error
    if not 1 <= len(several.edits) <= MAX_EDITS:
        raise ArgumentError(
            f"`edits` has {len(several.edits)} entries; send from 1 to {MAX_EDITS} in a call"
        )
    return [_order(edit) for edit in several.edits], bool(several.dry_run)


def _order(edit: EditArguments) -> EditOrder:
    name = _one_of(edit, "target_file", "path")
    if name is None:
        raise ArgumentError("`target_file` is missing; send the path of the file from the root")
    if not (edit.code_edit or "").strip():
        raise ArgumentError(
            f"`code_edit` is missing or empty for {name!a:.200}; send the changed code with some"
            " unchanged lines around it"
        )
    return EditOrder(
        name,
        edit.code_edit or "",
        instruction=_one_of(edit, "instructions", "instruction"),
        expected_sha256=(edit.expected_sha256 or "").strip().lower() or None,
        resolve=(edit.resolve or "").strip() or None,
    )


def _one_of(edit: EditArguments, name: str, second_name: str) -> str | None:
    first, second = getattr(edit, name), getattr(edit, second_name)
    if first and second and first != second:
        raise ArgumentError(
            f"`{name}` is {first!a:.200} and `{second_name}` is {second!a:.200}; send one of them"
        )
    chosen: str | None = first or second or None
    return chosen


def _names(tool: str) -> str:
    if tool == EDIT_FILES:
        return (
            "`edits`, a list of edits with target_file, instructions and code_edit, and `dry_run`"
        )
    return "target_file, instructions, code_edit, expected_sha256, resolve and dry_run"
