"""Reads edits out of the requests of other APIs; they then run as `/v1/apply` edits do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from apply_service.apply.edit_request import EditRequest
from apply_service.edit.text.text_file import TextFile
from apply_service.http.compat.compacted_code import (
    Compaction,
    check_not_announced,
    check_not_compacted,
)
from apply_service.http.compat.conversation import Conversation
from apply_service.http.compat.morph_message import EXAMPLE, MorphMessage, parse_morph_message
from apply_service.http.compat.schemas import CodeApplyBody
from apply_service.http.problems import ProblemError, make_problem
from apply_service.shown_text import shortened


@dataclass(frozen=True, slots=True)
class ChatEdit:
    """An edit that came as a chat message, and the message that says how it wants its answer."""

    edit: EditRequest
    message: MorphMessage
    compaction: Compaction | None = None

    def answer(self, merged: str) -> str:
        """The answer in the message's form. Raises ProblemError if the client would garble it."""
        if self.compaction is not None:
            self.compaction.check_free(merged, name="the result")
        return self.message.enclose(merged)


def morph_message_of(
    conversation: Conversation, *, apply_context: str | None = None
) -> MorphMessage | None:
    """The edit in the last message of the user, None if it has none. Raises ProblemError.

    `apply_context` is the value of the header that announces a compacted file.
    """
    texts = [message.content for message in conversation.messages if message.role == "user"]
    message = None
    if texts:
        message = parse_morph_message(
            texts[-1],
            field=conversation.messages_field,
            is_compacted=apply_context is not None,
        )
    if message is None:
        check_not_announced(apply_context)
    elif apply_context is None:
        check_not_compacted(message.code)
    return message


def chat_edit_of(
    conversation: Conversation, message: MorphMessage, compaction: Compaction | None = None
) -> ChatEdit:
    """The edit of a message whose file is whole. Raises TextFileError."""
    edit = EditRequest(
        original=TextFile.from_text(message.code),
        update=message.update,
        instruction=message.instruction,
        prediction=conversation.prediction,
        sampling=conversation.sampling(temperature=0.0, seed=0),
        max_answer_tokens=conversation.max_tokens,
    )
    return ChatEdit(edit, message, compaction)


def code_apply_edit_of(body: CodeApplyBody, *, apply_context: str | None = None) -> EditRequest:
    """The edit of a body. Raises ProblemError (400) if a field is missing or said twice.

    Compacted files are read in messages alone.
    """
    check_not_announced(apply_context)
    original = _one_of(body, "initial_code", "initialCode")
    update = _one_of(body, "edit_snippet", "editSnippet")
    if original is None:
        _refuse("initial_code", "`initial_code` (or `initialCode`) is missing", "send the file")
    if update is None:
        _refuse("edit_snippet", "`edit_snippet` (or `editSnippet`) is missing", "send the update")
    check_not_compacted(original)
    return EditRequest(
        original=TextFile.from_text(original),
        update=update,
        instruction=_one_of(body, "instruction", "instructions") or None,
        prediction=body.prediction,
    )


def no_edit_problem(model: str, *, field: str) -> ProblemError:
    """The problem of messages without an edit, sent to a model that only applies edits."""
    return ProblemError(
        make_problem(
            400,
            code="code-and-update-missing",
            title="The request has no edit",
            detail=f"the model {shortened(model)!r} applies edits and does not chat; the last user"
            " message has no `<code>` followed by an `<update>`",
            field=field,
            remedy=f"send one user message of this form:\n{EXAMPLE}",
        )
    )


def _one_of(body: CodeApplyBody, first: str, second: str) -> str | None:
    """The value of a field with two names, which may be said twice if it is the same."""
    values: list[str | None] = [getattr(body, first), getattr(body, second)]
    said = [value for value in values if value is not None]
    if len(set(said)) > 1:
        _refuse(second, f"`{first}` and `{second}` are different", "send one of them")
    return said[0] if said else None


def _refuse(field: str, detail: str, remedy: str) -> NoReturn:
    raise ProblemError(
        make_problem(
            400,
            code="invalid-field",
            title="The body has a wrong field",
            detail=detail,
            field=field,
            remedy=remedy,
        )
    )
