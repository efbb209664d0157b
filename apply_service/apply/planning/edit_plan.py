"""Plans an edit from its text alone, before a model is asked: snippet, syntax, merge."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from apply_service.apply.choices import Doubt
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import DoubtfulUpdateError, FileTooLargeError
from apply_service.apply.outcome import Source
from apply_service.edit.forms.form import FORM_NAMES, UpdateFormat
from apply_service.edit.forms.form_plan import plan_form
from apply_service.edit.forms.form_reader import read_form
from apply_service.edit.place.merge import MergePlan, plan_merge
from apply_service.edit.place.merge_findings import too_much_to_compare
from apply_service.edit.read.segment import Snippet, SnippetFormat
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.read.snippet_error import MalformedSnippetError, NoMarkerError
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import SyntaxTree, parse
from apply_service.edit.text.text_file import MARK, TextFile, check_no_lone_surrogate
from apply_service.edit.text.work_budget import BudgetSpentError, TextTooLargeError, limited_work

# How the reader names what a caller calls so.
_SNIPPET_FORMATS: dict[UpdateFormat, tuple[SnippetFormat, ...]] = {
    "lazy": ("lazy", "fragment", "whole"),
    "search_replace": ("search_replace",),
    "apply_patch": ("patch",),
    "diff": ("diff",),
}

# What a line takes beside its characters.
CHARACTERS_OF_LINE = 64


@dataclass(frozen=True, slots=True)
class KnownResult:
    """A result that needs no model: its lines, and their source."""

    lines: tuple[str, ...]
    source: Source


@dataclass(frozen=True, kw_only=True)
class EditPlan:
    """An edit with all facts that its text alone gives.

    `decision` is set if no model is needed. `file` has the form in which the result is written;
    `merge` and `snippet` are set whenever there is an original that the update changes in part.
    """

    request_id: str
    started_at: float
    edit: EditRequest
    file: TextFile
    update_lines: tuple[str, ...]
    language: str | None = None
    tree: SyntaxTree | None = None
    snippet: Snippet | None = None
    merge: MergePlan | None = None
    decision: KnownResult | None = None

    @property
    def original_lines(self) -> tuple[str, ...]:
        """The lines to be edited."""
        return self.edit.original.lines

    @property
    def deadline(self) -> float | None:
        """The time when the edit is given up, on the clock of `started_at`."""
        seconds = self.edit.deadline_s
        return None if seconds is None else self.started_at + seconds

    @cached_property
    def num_characters(self) -> int:
        """About how many characters the edit and what it may mean take in memory."""
        merges = () if self.merge is None else self.merge.merges
        lists = [self.original_lines, self.update_lines, *merges]
        # Merges share most of their lines, but for those that each indents in its own way.
        lines = {id(line): line for line in chain.from_iterable(lists)}.values()
        num_places = sum(map(len, lists))
        return self.edit.num_characters + sum(map(len, lines)) + CHARACTERS_OF_LINE * num_places

    @property
    def is_impossible(self) -> bool:
        """True if the update has no place in the file, so that no model should try."""
        return self.merge is not None and self.merge.best is None and bool(self.merge.findings)


def plan_edit(
    edit: EditRequest, *, max_file_bytes: int, started_at: float | None = None
) -> EditPlan:
    """Check an edit and understand it. Raises ApplyError, SnippetError or TextFileError.

    `started_at` is the edit's arrival, on the clock that all processes share; by default now.
    """
    _check_texts(edit)
    _check_sizes(edit, max_file_bytes)
    update_file = TextFile.from_text("" if edit.is_form else edit.update)
    plan = EditPlan(
        request_id=_new_request_id(),
        started_at=time.monotonic() if started_at is None else started_at,
        edit=edit,
        file=edit.original,
        update_lines=_without_marks(update_file.lines, edit.original),
    )
    try:
        with limited_work(max_characters=max_file_bytes):
            if edit.is_form:
                return _plan_form(plan)
            return _understand(plan) if edit.original.lines else _plan_new_file(plan, update_file)
    except BudgetSpentError as error:
        return _unplanned(plan, error)
    except TextTooLargeError as error:
        raise FileTooLargeError(
            f"the result would have {error.value} {error.unit}",
            value=error.value,
            limit=error.limit,
            remedy="send a smaller update, or raise max_file_bytes",
        ) from error


def plan_edit_again(known: EditPlan, edit: EditRequest) -> EditPlan:
    """Adapt the plan `known` to an edit that differs only where planning does not look.

    Raises TextFileError.
    """
    _check_texts(edit)
    return replace(known, request_id=_new_request_id(), started_at=time.monotonic(), edit=edit)


def _without_marks(lines: tuple[str, ...], original: TextFile) -> tuple[str, ...]:
    """The lines of an update; a byte order mark that it copies from the file is no text."""
    if not (original.text_mark or original.byte_order_mark):
        return lines

    known = frozenset(original.lines)

    def is_copied(line: str) -> bool:
        return MARK in line[:2] and line[line.index(MARK) :] not in known

    return tuple(line.replace(MARK, "", 1) if is_copied(line) else line for line in lines)


def _new_request_id() -> str:
    return f"apply-{uuid.uuid4().hex}"


def _check_texts(edit: EditRequest) -> None:
    for name in ("update", "instruction", "prediction", "path"):
        check_no_lone_surrogate(getattr(edit, name) or "", name=f"the {name}")


def _understand(plan: EditPlan) -> EditPlan:
    edit, original = plan.edit, plan.original_lines
    language = language_of(edit.path, edit.language, original)
    tree = None if language is None else parse(original, language)
    try:
        snippet = read_snippet(
            plan.update_lines, original, path=edit.path, language=language, tree=tree
        )
    except NoMarkerError as error:
        _check_format(edit, "fragment")
        merge = plan_merge(
            original,
            plan.update_lines,
            path=edit.path,
            language=language,
            instruction=edit.instruction,
        )
        if merge.best is None:
            raise
        if not merge.is_certain and edit.resolve is None:
            doubt = Doubt(edit, plan.update_lines, merge, tree)
            raise DoubtfulUpdateError(str(error), doubt.choices()) from error
        return replace(plan, language=language, snippet=merge.snippet, tree=tree, merge=merge)
    _check_format(edit, snippet.format)
    if not snippet.segments and not snippet.removals:
        decision = KnownResult(original, "original")
        return replace(plan, language=language, snippet=snippet, decision=decision)
    if snippet.format == "whole":
        whole = tuple(line for segment in snippet.segments for line in segment.texts)
        decision = KnownResult(whole, "update")
        return replace(plan, language=language, snippet=snippet, tree=tree, decision=decision)
    merge = plan_merge(
        original,
        plan.update_lines,
        snippet,
        path=edit.path,
        language=language,
        instruction=edit.instruction,
    )
    plan = replace(plan, language=language, snippet=merge.snippet, tree=tree, merge=merge)
    if plan.is_impossible and edit.checks == "on":
        return replace(plan, decision=KnownResult(original, "original"))
    return plan


def _plan_form(plan: EditPlan) -> EditPlan:
    """Plan edits that say where they are made."""
    edit, original = plan.edit, plan.original_lines
    name = next(name for name in FORM_NAMES if name == edit.format)
    language = language_of(edit.path, edit.language, original)
    tree = None if language is None else parse(original, language)
    merge = plan_form(
        original,
        read_form(edit.update, name),
        path=edit.path,
        language=language,
        instruction=edit.instruction,
    )
    return replace(plan, language=language, tree=tree, merge=merge, snippet=merge.snippet)


def _check_format(edit: EditRequest, found: SnippetFormat) -> None:
    """Raise MalformedSnippetError if the update does not read as the caller says."""
    if edit.format is not None and found not in _SNIPPET_FORMATS[edit.format]:
        raise MalformedSnippetError(
            f"the update should be {edit.format}, but reads as {found}; send it in the"
            " format that you name, or name none"
        )


def _unplanned(plan: EditPlan, error: BudgetSpentError) -> EditPlan:
    """The plan of an edit that takes too many comparisons: the original, and the reason."""
    merge = MergePlan(
        original_lines=plan.original_lines, findings=(too_much_to_compare(error.limit),)
    )
    return replace(plan, merge=merge, decision=KnownResult(plan.original_lines, "original"))


def _plan_new_file(plan: EditPlan, update_file: TextFile) -> EditPlan:
    """Plan the update as the whole file, when there is no original."""
    snippet = read_snippet(plan.update_lines, (), path=plan.edit.path, language=plan.edit.language)
    lines = tuple(line for segment in snippet.segments for line in segment.texts)
    if lines == plan.update_lines:
        _check_format(plan.edit, "whole")
    original = plan.edit.original
    new_file = replace(
        update_file,
        encoding=original.encoding,
        byte_order_mark=original.byte_order_mark,
        text_mark="" if original.byte_order_mark else original.text_mark or update_file.text_mark,
    )
    return replace(plan, file=new_file, snippet=snippet, decision=KnownResult(lines, "update"))


def _check_sizes(edit: EditRequest, limit: int) -> None:
    sizes = {
        "original": len(edit.original.encode(edit.original.lines)),
        "update": len(edit.update.encode()),
    }
    for name, size in sizes.items():
        if size > limit:
            raise FileTooLargeError(
                f"the {name} has {size} bytes",
                value=size,
                limit=limit,
                remedy="send a smaller file, or raise max_file_bytes",
            )
