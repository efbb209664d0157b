"""`apply-service apply` of several files by one patch: answered apart, written all or none."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from apply_service.apply.errors import UsageError
from apply_service.cli.applying.asking import Answer, ask_for
from apply_service.cli.applying.choice_prompt import can_ask
from apply_service.cli.applying.edit_input import (
    STDIN,
    ApplyCommandError,
    as_text,
    body_of,
    check_files,
    check_text,
    read_file,
    read_update,
)
from apply_service.cli.applying.edit_report import (
    EXIT_ERROR,
    EXIT_OK,
    EXIT_REJECTED,
    EXIT_REVIEW,
    EditedFile,
    as_json,
    is_accepted,
    report_answer,
    write_files,
)
from apply_service.cli.shown_diff import show_diff
from apply_service.config import Settings
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.split.split import FileChange, SplitFormat, split_update
from apply_service.http.problems import Problem
from apply_service.shown_text import say, shown_line

_WORST_FIRST = (EXIT_ERROR, EXIT_REJECTED, EXIT_REVIEW, EXIT_OK)


def apply_to_several(
    args: argparse.Namespace, settings: Settings, environment: Mapping[str, str]
) -> int:
    """Carry the command out; the exit code is that of the worst file.

    Raises what reading, applying or writing raises.
    """
    _check_flags(args)
    contents = {as_text(file.as_posix()): (file, read_file(file, settings)) for file in args.files}
    for name, (_, content) in contents.items():
        check_text(content, name)
    changes = _changes_of(args, contents, settings)
    may_ask = not (args.json or args.check) and can_ask(args.update)
    answers: dict[str, Answer] = {}
    for change in changes:
        if change.update is not None:
            _, content = contents[change.path]
            body = body_of(
                args, content, change.update, path=change.path, update_format=change.format
            )
            answers[change.path] = ask_for(body, settings, environment, may_ask=may_ask)
    _show(args, answers)
    exit_codes = {name: _report(name, answer) for name, answer in answers.items()}
    named = {change.path for change in changes}
    for name in contents:
        if name not in named:
            say(f"{shown_line(name)}: the update does not speak of it")
    if args.write:
        blocking = [name for name, code in exit_codes.items() if not is_accepted(code, args)]
        if blocking:
            say(f"nothing was written, because of {', '.join(map(shown_line, blocking))}")
        else:
            _write(args, contents, answers)
    return next(code for code in _WORST_FIRST if code in (*exit_codes.values(), EXIT_OK))


def _check_flags(args: argparse.Namespace) -> None:
    """Raise UsageError for what means nothing for several files."""
    if len({*map(os.path.realpath, args.files)}) < len(args.files) or STDIN in args.files:
        raise UsageError("several FILEs are different ones, and none of them is stdin")
    if args.path is not None or args.resolve is not None:
        raise UsageError("--path and --resolve are for a single FILE; name one")
    if not (args.write or args.diff or args.json or args.check):
        raise UsageError(
            "several results do not go to stdout; add --write, --diff, --json or --check"
        )
    if args.format not in (None, *get_args(SplitFormat)):
        raise UsageError(
            f"--format {args.format} has no parts for several files; send a patch or a diff that"
            " names them, or give one FILE"
        )


def _changes_of(
    args: argparse.Namespace, contents: Mapping[str, tuple[Path, bytes]], settings: Settings
) -> Sequence[FileChange]:
    """The change of each file. Raises ApplyCommandError for what is not done here."""
    has_text = {name: bool(content) for name, (_, content) in contents.items()}
    update = read_update(args.update, settings)
    check_files(update, args.files)
    try:
        changes = split_update(update, has_text=has_text, update_format=args.format)
    except SnippetError as error:
        raise ApplyCommandError(str(error)) from error
    for change in changes:
        name = shown_line(change.path)
        if change.action in ("delete", "move"):
            raise ApplyCommandError(
                f"the update is to {change.action} {name}, which is not done here; do it"
                " yourself and take it out of the update"
            )
        if change.path not in contents:
            raise ApplyCommandError(
                f"the update adds {name}; create it, empty, and name it as a FILE"
            )
    return changes


def _show(args: argparse.Namespace, answers: Mapping[str, Answer]) -> None:
    """Print diffs, or all as JSON, to stdout."""
    if args.diff:
        results = [one for one in answers.values() if not isinstance(one, Problem)]
        show_diff("".join(one.diff or "" for one in results))
    if args.json:
        files: list[dict[str, Any]] = [
            {"path": name, "problem" if isinstance(answer, Problem) else "result": as_json(answer)}
            for name, answer in answers.items()
        ]
        print(msgspec.json.encode({"files": files}).decode())
    sys.stdout.flush()


def _report(name: str, answer: Answer) -> int:
    """Say what is wrong with one file; its exit code."""
    if isinstance(answer, Problem) or answer.status not in ("applied", "unchanged"):
        say(f"{shown_line(name)}: ", end="")
    try:
        return report_answer(answer)
    except ApplyCommandError as error:
        say(error)
        return EXIT_ERROR


def _write(
    args: argparse.Namespace,
    contents: Mapping[str, tuple[Path, bytes]],
    answers: Mapping[str, Answer],
) -> None:
    files = []
    for name, answer in answers.items():
        assert not isinstance(answer, Problem), "a problem is not accepted"
        files.append(EditedFile(*contents[name], answer))
    write_files(files, asks=args.review)
