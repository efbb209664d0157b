"""Several files in one request: each is edited by itself, side by side, and has its answer."""

import asyncio
import posixpath
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NoReturn

import msgspec

from apply_service.edit.split.section import FileAction
from apply_service.edit.split.split import FileChange, split_update
from apply_service.http.errors import log_failure
from apply_service.http.files_body import (
    MAX_FILES,
    FileAnswer,
    FileBody,
    FilesBody,
    FilesResult,
    WholeStatus,
)
from apply_service.http.problems import Problem, ProblemError, make_problem, problem_of
from apply_service.http.routes.charged_edits import ChargedEdits
from apply_service.http.schemas import ApplyBody, ApplyResult, Base64Content, EditOptions, Usage
from apply_service.service import ApplyService
from apply_service.shown_text import shortened
from batching.errors import DeadlineExceededError

# Files of one request that are worked on at the same time.
_MAX_IN_FLIGHT = 16
_WORST_FIRST: tuple[WholeStatus, ...] = (
    *("failed", "rejected", "needs_review", "applied", "unchanged"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileWork:
    """What is to be done with one file; without a body there is nothing to edit."""

    path: str
    action: FileAction | Literal["none"]
    body: ApplyBody | None
    new_path: str | None = None

    def answer(
        self, *, result: ApplyResult | None = None, problem: Problem | None = None
    ) -> FileAnswer:
        """The answer for the file."""
        return FileAnswer(
            path=self.path,
            action=self.action,
            new_path=self.new_path,
            result=result,
            problem=problem,
        )


async def answer_files(body: FilesBody, service: ApplyService, sent_key: str | None) -> FilesResult:
    """The answer to a request; what is wrong with one file is a part of it.

    Raises ProblemError (400, 413) for a body that does not say what to do with each file, and
    SnippetError for a common update that cannot be split.
    """
    service.check_options(
        model=body.model, constraint=body.constraint, acceptance=body.sampling.acceptance
    )
    _check_files(body)
    run = _FilesRun(body, service, sent_key)
    works = _works_of(body, await run.changes())
    answers = await run.answers(works)
    if body.atomic and any(_status_of(one) not in ("applied", "unchanged") for one in answers):
        blocking = [one.path for one in answers if _status_of(one) not in ("applied", "unchanged")]
        answers = [_withheld(one, blocking) for one in answers]
    return FilesResult(
        status=_whole_status(answers),
        atomic=body.atomic,
        files=answers,
        in_doubt=[one.path for one in answers if _is_in_doubt(one)],
        usage=run.usage,
        deadline_s=run.capped_deadline_s,
    )


class _FilesRun:
    """Runs the edits of one request, so many at once, until the deadline of all of them."""

    def __init__(self, body: FilesBody, service: ApplyService, sent_key: str | None) -> None:
        self._body = body
        self._service = service
        self._edits = ChargedEdits(service, sent_key)
        limit_s = service.max_deadline_of(body.priority)
        deadline_s = body.deadline_s
        is_capped = deadline_s is not None and deadline_s > limit_s
        self.capped_deadline_s = limit_s if is_capped else None
        if deadline_s is None:
            deadline_s = service.deadline_of(body.priority)
        self._deadline_s = min(deadline_s, limit_s)
        self._until = time.monotonic() + self._deadline_s
        self._free = asyncio.Semaphore(
            min(_MAX_IN_FLIGHT, self._edits.max_concurrent or _MAX_IN_FLIGHT)
        )
        self.usage = Usage(prompt_tokens=0, completion_tokens=0, total_tokens=0, cached_tokens=0)

    async def changes(self) -> list[FileChange]:
        """What a common update says of each file; none without one.

        Raises SnippetError, and ProblemError for too many files.
        """
        body = self._body
        if body.update is None:
            return []
        has_text = {file.path: file.original not in ("", Base64Content(b"")) for file in body.files}
        work = partial(split_update, body.update, has_text=has_text, update_format=body.format)
        changes = await self._service.read_text(
            work, num_characters=len(body.update), deadline_s=self._deadline_s
        )
        _check_number(len(changes), "update")
        return changes

    async def answers(self, works: Sequence[_FileWork]) -> list[FileAnswer]:
        """An answer for each file; all are given up if this is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            begun = [tasks.create_task(self._answer(work)) for work in works]
        return [task.result() for task in begun]

    async def _answer(self, work: _FileWork) -> FileAnswer:
        if work.body is None:
            return work.answer()
        try:
            async with self._free:
                result = await self._edit(work.body)
        except Exception as error:  # one file harms no other
            problem = problem_of(error)
            self._service.telemetry.count_problem(problem.code)
            if problem.status >= 500:
                log_failure(error)
            return work.answer(problem=problem)
        self._add_usage(result.usage)
        return work.answer(result=result)

    async def _edit(self, body: ApplyBody) -> ApplyResult:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise DeadlineExceededError(
                f"the files of the request were not done after {self._deadline_s:g} s, and this one"
                " was not begun; send fewer at once, or give `deadline_s` more seconds"
            )
        body = msgspec.structs.replace(body, deadline_s=left_s)
        return await self._edits.run(body, num_bytes=_num_bytes(body), until=self._until)

    def _add_usage(self, usage: Usage) -> None:
        names = Usage.__struct_fields__
        self.usage = Usage(
            **{name: getattr(self.usage, name) + getattr(usage, name) for name in names}
        )


def _check_files(body: FilesBody) -> None:
    """Raise ProblemError for files that cannot be told apart, or have no update or two."""
    _check_number(len(body.files), "files")
    seen: set[str] = set()
    for place, file in enumerate(body.files):
        path = posixpath.normpath(re.sub("/+", "/", file.path))
        if path in seen:
            _refuse(f"files[{place}].path", f"{shortened(path)!r} is the path of two files")
        seen.add(path)
        if body.update is None and file.update is None:
            _refuse(f"files[{place}].update", "the file has no update, and there is no common one")
        if body.update is not None and not (file.update is None and file.format is None):
            _refuse(f"files[{place}].update", "the file has an update beside the common one")
    if body.update is None and body.format is not None:
        _refuse("format", "`format` is that of a common `update`, and there is none")


def _check_number(num_files: int, field: str) -> None:
    """Raise ProblemError for more files than a request may have."""
    if num_files > MAX_FILES:
        raise ProblemError(
            make_problem(
                413,
                code="too-many-files",
                title="The request has too many files",
                detail=f"the request has {num_files} files, the limit is {MAX_FILES}",
                field=field,
                value=num_files,
                limit=MAX_FILES,
                remedy="send several requests, or lines to /v1/batches",
            )
        )


def _refuse(field: str, detail: str) -> NoReturn:
    raise ProblemError(
        make_problem(
            400,
            code="unfit-files",
            title="The files and updates do not fit together",
            detail=f"{field}: {detail}",
            field=field,
            remedy="give each file a path of its own and an `update`, or send one patch as the"
            " `update` of all",
        )
    )


def _works_of(body: FilesBody, changes: Sequence[FileChange]) -> list[_FileWork]:
    """What is to be done, file by file."""
    if body.update is None:
        return [
            _FileWork(path=file.path, action="update", body=_edit_body(body, file))
            for file in body.files
        ]
    by_path = {change.path: change for change in changes}
    files = {file.path: file for file in body.files}
    works = []
    for path in [*files, *(path for path in by_path if path not in files)]:
        change = by_path.get(path)
        if change is None:
            works.append(_FileWork(path=path, action="none", body=None))
            continue
        edit = None
        if change.update is not None:
            file = files.get(path) or FileBody(path=path, original="")
            file = msgspec.structs.replace(file, update=change.update, format=change.format)
            edit = _edit_body(body, file)
        works.append(
            _FileWork(path=path, action=change.action, body=edit, new_path=change.new_path)
        )
    return works


def _edit_body(body: FilesBody, file: FileBody) -> ApplyBody:
    """The edit of one file as a request of its own."""
    shared = {name: getattr(body, name) for name in EditOptions.__struct_fields__}
    own = {name: getattr(file, name) for name in FileBody.__struct_fields__}
    if file.instruction is None:
        del own["instruction"]
    return ApplyBody(**(shared | own))


def _num_bytes(body: ApplyBody) -> int:
    """About how many bytes an edit has."""
    original = body.original
    text = original.base64 if isinstance(original, Base64Content) else original
    update = body.update if isinstance(body.update, str) else msgspec.json.encode(body.update)
    return len(text) + len(update)


def _status_of(answer: FileAnswer) -> WholeStatus:
    if answer.result is not None:
        return answer.result.status
    problem = answer.problem
    if problem is None:
        return "unchanged" if answer.action == "none" else "applied"
    if problem.choices and problem.code != "rejected":
        return "needs_review"
    return "rejected" if problem.status == 422 else "failed"


def _whole_status(answers: Sequence[FileAnswer]) -> WholeStatus:
    """The worst status of a file; what is withheld because of others says nothing itself."""
    found = {_status_of(one) for one in answers if not _is_withheld(one)}
    return next(status for status in _WORST_FIRST if status in found)


def _is_in_doubt(answer: FileAnswer) -> bool:
    holder = answer.result or answer.problem
    return holder is not None and bool(holder.choices)


def _is_withheld(answer: FileAnswer) -> bool:
    return answer.problem is not None and answer.problem.code == "withheld"


def _withheld(answer: FileAnswer, blocking: Sequence[str]) -> FileAnswer:
    """The answer of a file of an atomic request that is not applied: none has a text."""
    if answer.problem is not None or answer.action == "none":
        return answer
    result = answer.result
    if result is not None and result.status in ("needs_review", "rejected"):
        in_doubt = result.status == "needs_review"
        problem = make_problem(
            422,
            code="needs-review" if in_doubt else "rejected",
            title="The result is in doubt" if in_doubt else "The result failed its checks",
            detail="; ".join(finding.message for finding in result.findings),
            remedy="send the request again with `resolve` and the id of a choice, or as the hints"
            " say",
            id=result.id,
            findings=result.findings,
            choices=result.choices or None,
        )
    else:
        names = ", ".join(blocking[:3]) + (" …" if blocking[3:] else "")
        problem = make_problem(
            424,
            code="withheld",
            title="Nothing of the request was applied",
            detail=f"the request is atomic, and these files are not applied: {names}",
            remedy="see their answers, and send the request again",
        )
    return msgspec.structs.replace(answer, result=None, problem=problem)
