"""`apply-client batch`: many edits of the files below a folder; the run may be interrupted."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from apply_client.async_client import AsyncApplyClient
from apply_client.batch.edits_file import BatchFile
from apply_client.batch.journal import Journal, JournalHead
from apply_client.batch.patch_writer import write_patch
from apply_client.batch.progress import BatchProgress, summary_of
from apply_client.batch.questions import read_answers, write_questions
from apply_client.batch.store import BatchStore, DiskStore, PatchStore
from apply_client.batch.work import BatchWork
from apply_client.cli.exit_codes import (
    EXIT_ERROR,
    EXIT_OK,
    EXIT_REJECTED,
    EXIT_REVIEW,
)
from apply_client.cli.service_flags import add_edit_flags, retry_policy_of
from apply_client.edit import ApplyOptions
from apply_client.errors import ApplyClientError
from apply_client.protocol.many import check_concurrency
from apply_client.shown_text import say, shown_line
from apply_client.update_text import InputError
from apply_client.workspace.errors import WorkspaceError
from apply_client.workspace.folder import Workspace
from apply_client.workspace.write_policy import WritePolicy

_DEFAULT_CONCURRENCY = 4
_DEFAULT_TIMEOUT_S = 600.0
# The time is what bounds the tries of an edit: a service that is started anew is waited for.
_MAX_RETRIES = 10_000

_DONE_STATUSES = frozenset({"applied", "unchanged", "added", "removed"})


def add_batch_command(subparsers: Any) -> None:
    """Register `batch`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "batch",
        help="merge many lazy updates into the files of a folder",
        description="Merge the updates of EDITS, one JSON object a line with `path` and `update`"
        " (and, if wanted, `id`, `instruction`, `expected_sha256`), into the files below DIR."
        " Without --write and --patch nothing is left but what is said. A run that was interrupted"
        " goes on where it was when the same command is given again. Exit codes: 0 all applied or"
        " unchanged, 1 some could not be done yet, 2 usage, 3 some need review, 4 some were"
        " rejected, refused or in conflict, 130 Ctrl-C; of several the first of 1, 4, 3.",
    )
    parser.add_argument("edits", type=Path, metavar="EDITS", help="the file of edits")
    parser.add_argument("--root", required=True, metavar="DIR", help="the folder of the files")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--write", action="store_true", help="write results into their files")
    goal.add_argument("--patch", metavar="OUT", help="write one patch of all, - is stdout")
    parser.add_argument(
        "--accept-review", action="store_true", help="take results that need review as well"
    )
    parser.add_argument(
        "--concurrency",
        type=int,
        default=_DEFAULT_CONCURRENCY,
        metavar="N",
        help="files that are edited at the same time (default: %(default)d)",
    )
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="FILE",
        help="what is done so far (default: EDITS with .journal behind it)",
    )
    parser.add_argument(
        "--questions", type=Path, metavar="OUT", help="write the edits in doubt with their choices"
    )
    parser.add_argument(
        "--answers", type=Path, metavar="FILE", help="the choices that are meant, step by step"
    )
    add_edit_flags(parser, timeout_s=_DEFAULT_TIMEOUT_S)
    parser.set_defaults(run=run_batch)


def run_batch(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code. Raises ApplyClientError."""
    try:
        check_concurrency(args.concurrency)
    except ValueError as error:
        raise InputError(f"--concurrency: {error}") from error
    workspace = _workspace(args.root)
    answers = {} if args.answers is None else read_answers(args.answers)
    with BatchFile(args.edits, workspace) as batch, _journal(args, batch, workspace) as journal:
        kind = DiskStore if args.write else PatchStore
        store: BatchStore = kind(workspace, journal)
        _check_answers(answers, batch)
        asyncio.run(_work(args, batch, journal, store, answers))
        if args.questions is not None:
            num_questions = write_questions(args.questions, batch, journal.outcomes)
            noun = "question" if num_questions == 1 else "questions"
            say(f"{shown_line(args.questions)}: {num_questions} {noun}")
        exit_code = _exit_code(batch, journal)
        if args.patch is not None:
            conflicts = write_patch(args.patch, batch.steps_by_path, journal, workspace)
            for conflict in conflicts:
                say(f"not in the patch: {conflict}")
            if conflicts and exit_code in (EXIT_OK, EXIT_REVIEW):
                exit_code = EXIT_REJECTED
        say(summary_of(journal.outcomes.values(), num_steps=batch.num_steps))
    return exit_code


def _check_answers(answers: Mapping[str, str], batch: BatchFile) -> None:
    """Raise InputError for an answer to a step that the batch does not have."""
    known = {step.key for steps in batch.steps_by_path.values() for step in steps}
    strange = sorted(answers.keys() - known)
    if strange:
        raise InputError(
            f"--answers: the edits have no step {strange[0]!r}; write a question's `step`, such as"
            f" {next(iter(known), '1')!r}"
        )


async def _work(
    args: argparse.Namespace,
    batch: BatchFile,
    journal: Journal,
    store: BatchStore,
    answers: Mapping[str, str],
) -> None:
    retry = retry_policy_of(args.timeout, max_retries=_MAX_RETRIES)
    done = journal.outcomes
    num_open = sum(
        done[key].is_answered_by(choice) for key, choice in answers.items() if key in done
    )
    progress = BatchProgress(
        Console(stderr=True), num_steps=batch.num_steps, num_done=len(done) - num_open
    )
    async with AsyncApplyClient(args.url, retry=retry) as client:
        work = BatchWork(
            client,
            batch,
            journal,
            store,
            policy=WritePolicy(accepts_review=args.accept_review),
            options=ApplyOptions(
                scope=args.scope, use_model=args.use_model, model=args.model, priority="batch"
            ),
            report=progress.report,
            answers=answers,
        )
        with progress:
            watching = asyncio.create_task(_tell_if_away(client, progress, args.timeout))
            try:
                await work.run(max_concurrency=args.concurrency)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)


async def _tell_if_away(
    client: AsyncApplyClient, progress: BatchProgress, timeout_s: float
) -> None:
    """Say at the start that the command waits for the service, so that it does not seem stuck."""
    try:
        status = await client.status()
    except ApplyClientError as error:
        reason: str | None = str(error)
    else:
        if status.is_ready:
            return
        reason = status.reason
    progress.say(
        f"the service takes no edits yet ({reason}); waiting up to {timeout_s:g} s an edit"
    )


def _workspace(root: str) -> Workspace:
    try:
        return Workspace(root)
    except WorkspaceError as error:
        raise InputError(f"--root: {error}") from error


@contextmanager
def _journal(args: argparse.Namespace, batch: BatchFile, workspace: Workspace) -> Iterator[Journal]:
    """The journal of the command; a dry run's journal is forgotten at its end."""
    head = JournalHead(
        edits_sha256=batch.sha256,
        root=os.fspath(workspace.root),
        mode="write" if args.write else "patch",
        accepts_review=args.accept_review,
    )
    if not args.write and args.patch is None:
        with tempfile.TemporaryDirectory() as folder, Journal(Path(folder, "j"), head) as journal:
            yield journal
        return
    path = args.journal or args.edits.with_name(args.edits.name + ".journal")
    with Journal(path, head) as journal:
        if journal.outcomes:
            say(
                f"{shown_line(path)}: {len(journal.outcomes)} of {batch.num_steps} edits are done;"
                " going on behind them. Remove it to begin again"
            )
        yield journal


def _exit_code(batch: BatchFile, journal: Journal) -> int:
    statuses = {outcome.status for outcome in journal.outcomes.values()}
    if len(journal.outcomes) < batch.num_steps:
        return EXIT_ERROR
    if statuses <= _DONE_STATUSES:
        return EXIT_OK
    return EXIT_REVIEW if statuses <= _DONE_STATUSES | {"needs_review"} else EXIT_REJECTED
