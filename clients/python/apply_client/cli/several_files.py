"""`apply-client apply` of several files by one patch: one request, written all or none."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

from apply_client.cli.choice_prompt import ask_which, can_ask, print_choices
from apply_client.cli.edit_report import as_json, check_files, print_findings, write_files
from apply_client.cli.exit_codes import (
    EXIT_ERROR,
    EXIT_OK,
    EXIT_REJECTED,
    EXIT_REVIEW,
    exit_code_of,
)
from apply_client.cli.shown_diff import show_diff
from apply_client.client import ApplyClient
from apply_client.edit import ApplyOptions, FileEdit, FilesEdit, PatchFormat
from apply_client.protocol.wire import FileResult
from apply_client.shown_text import say, shown_line
from apply_client.update_text import InputError, read_update
from apply_client.workspace.open_file import OpenFile, open_file
from apply_client.workspace.write_policy import WritePolicy

_WORST_FIRST = (EXIT_ERROR, EXIT_REJECTED, EXIT_REVIEW, EXIT_OK)
Answer = FileResult[str | bytes]


def apply_to_several(args: argparse.Namespace, options: ApplyOptions, client: ApplyClient) -> int:
    """Carry the command out; the exit code is that of the worst file. Raises ApplyClientError."""
    _check_flags(args)
    update = read_update(args.update)
    check_files(update, args.files)
    opened = {name: open_file(name) for name in args.files}
    edit = FilesEdit(
        [FileEdit(name, file.content) for name, file in opened.items()],
        update=update,
        format=args.format,
        instruction=args.instruction,
        options=options,
    )
    answers = client.apply_files(edit).files
    _check_actions(answers, opened)
    if not (args.json or args.check) and can_ask(args.update):
        chosen = _choices(answers)
        if chosen:
            answers = client.apply_files(edit.resolved(chosen)).files
    _show(args, answers)
    exit_codes = {answer.path: _report(answer) for answer in answers}
    if args.write:
        policy = WritePolicy(accepts_review=args.accept_review)
        blocking = [answer.path for answer in answers if not _is_accepted(answer, policy)]
        if blocking:
            say(f"nothing was written, because of {', '.join(map(shown_line, blocking))}")
        else:
            results = [(opened[one.path], one.result) for one in answers if one.result is not None]
            write_files(results, asks=args.review)
    return next(code for code in _WORST_FIRST if code in (*exit_codes.values(), EXIT_OK))


def _check_flags(args: argparse.Namespace) -> None:
    """Raise InputError for what means nothing for several files."""
    if len({*map(os.path.realpath, args.files)}) < len(args.files) or "-" in args.files:
        raise InputError("several FILEs are different ones, and none of them is stdin")
    if args.resolve is not None:
        raise InputError("--resolve is for a single FILE; name one")
    if not (args.write or args.diff or args.json or args.check):
        raise InputError(
            "several results do not go to stdout; add --write, --diff, --json or --check"
        )
    if args.format not in (None, *get_args(PatchFormat)):
        raise InputError(
            f"--format {args.format} has no parts for several files; send a patch or a diff that"
            " names them, or give one FILE"
        )


def _check_actions(answers: Sequence[Answer], opened: Mapping[str, OpenFile]) -> None:
    """Raise InputError for what a patch may say and is not done here."""
    for answer in answers:
        name = shown_line(answer.path)
        if answer.action in ("delete", "move"):
            raise InputError(
                f"the update is to {answer.action} {name}, which is not done here; do it"
                " yourself and take it out of the update"
            )
        if answer.path not in opened:
            raise InputError(f"the update adds {name}; create it, empty, and name it as a FILE")


def _choices(answers: Sequence[Answer]) -> dict[str, str]:
    """The id of the choice that is meant, by the path of a file in doubt."""
    chosen = {}
    for answer in answers:
        said = answer.result or answer.problem
        if said is not None and said.choices:
            say(f"{shown_line(answer.path)}:")
            choice = ask_which(said.choices)
            if choice is not None:
                chosen[answer.path] = choice.id
    return chosen


def _show(args: argparse.Namespace, answers: Sequence[Answer]) -> None:
    """Print diffs, or all as JSON, to stdout."""
    if args.diff:
        show_diff("".join(one.result.diff or "" for one in answers if one.result is not None))
    if args.json:
        print(msgspec.json.encode({"files": [_as_json(one) for one in answers]}).decode())
    sys.stdout.flush()


def _as_json(answer: Answer) -> dict[str, Any]:
    if answer.result is None:
        return {"path": answer.path, "problem": answer.problem}
    return {"path": answer.path, "result": as_json(answer.result)}


def _is_accepted(answer: Answer, policy: WritePolicy) -> bool:
    if answer.result is None:
        return answer.problem is None
    return answer.result.status == "unchanged" or policy.is_written(answer.result.status)


def _report(answer: Answer) -> int:
    """Say what is wrong with one file; its exit code."""
    name = shown_line(answer.path)
    if answer.action == "none":
        say(f"{name}: the update does not speak of it")
    if answer.result is not None:
        result = answer.result
        if not result.is_sure:
            say(f"{name}: {result.status.replace('_', ' ')}")
            print_findings(result.findings)
            print_choices(result.choices, has_diffs=False)
        return exit_code_of(result.status)
    if answer.problem is None:
        return EXIT_OK
    problem = answer.problem
    remedy = f"; {problem.remedy}" if problem.remedy else ""
    say(f"{name}: {problem.detail}{remedy}")
    print_findings(problem.findings or ())
    print_choices(problem.choices or (), has_diffs=False)
    return EXIT_REJECTED if problem.status == 422 else EXIT_ERROR
