"""`apply-service apply`: one edit from the command line, here or on a running server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from apply_service.apply.errors import UsageError
from apply_service.cli.answer import KEY_VARIABLE, URL_VARIABLE, answer_edit
from apply_service.cli.choice_prompt import ask_which, can_ask, print_choices
from apply_service.cli.file_writer import write_result
from apply_service.cli.hunk_review import review_changes
from apply_service.cli.shown_diff import show_diff
from apply_service.cli.suggesting_parser import positive_int
from apply_service.cli.undo import remember_write
from apply_service.config import Settings
from apply_service.edit.forms.form import UpdateFormat
from apply_service.edit.text.text_file import TextFile, TextFileError
from apply_service.http.problems import Problem
from apply_service.http.schemas import (
    ApplyBody,
    ApplyResult,
    Base64Content,
    FindingBody,
    SamplingBody,
)
from apply_service.observe.progress import Progress

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_REVIEW, EXIT_REJECTED = 0, 1, 2, 3, 4

_STDIN = Path("-")
_EXIT_BY_STATUS = {
    "applied": EXIT_OK,
    "unchanged": EXIT_OK,
    "needs_review": EXIT_REVIEW,
    "rejected": EXIT_REJECTED,
}


class ApplyCommandError(Exception):
    """The command cannot be carried out; the message says why."""


def add_apply_command(subparsers: Any) -> argparse.ArgumentParser:
    """Register `apply`; settings flags are added by the caller."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "apply",
        usage="%(prog)s FILE [--update SNIPPET_FILE] [--diff | --json | --check] [--write] [flags]",
        help="merge a lazy update into a file",
        description="Merge a lazy update into FILE. The merged file or its diff goes to stdout,"
        " then findings to stderr. Exit codes: 0 applied or unchanged, 1 error, 2 usage, 3 needs"
        f" review, 4 rejected, 130 Ctrl-C. With {URL_VARIABLE} a running server does the work,"
        f" which is sent the API key of {KEY_VARIABLE}.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the file to edit, - reads stdin")
    parser.add_argument(
        "--update", metavar="SNIPPET_FILE", help="the update, by default stdin, as for -"
    )
    parser.add_argument(
        "--format",
        choices=get_args(UpdateFormat),
        metavar="FORMAT",
        help="how the update is written, such as old_new for JSON of old and new strings",
    )
    parser.add_argument(
        "--path", metavar="NAME", help="its name for language and diff, by default FILE"
    )
    parser.add_argument("--instruction", help="one sentence that says what the edit is for")
    parser.add_argument(
        "--resolve", metavar="ID", help="the choice that is meant, of those the edit came back with"
    )
    parser.add_argument("--write", action="store_true", help="write the result into FILE")
    parser.add_argument(
        "--accept-review", action="store_true", help="with --write: write needs_review as well"
    )
    parser.add_argument(
        "--review", action="store_true", help="with --write: ask about each change at the terminal"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--diff", action="store_true", help="print a unified diff")
    form.add_argument("--json", action="store_true", help="print the whole answer as JSON")
    form.add_argument("--check", action="store_true", help="print no result; see the exit code")
    parser.add_argument("--scope", choices=("auto", "file", "region"), default="auto")
    parser.add_argument("--checks", choices=("on", "off"), default="on")
    parser.add_argument("--speculation", choices=("on", "off"), default="on")
    parser.add_argument(
        "--max-tokens", type=positive_int, help="longest answer, by default what is needed"
    )
    return parser


def run_apply(args: argparse.Namespace, settings: Settings, environment: Mapping[str, str]) -> int:
    """Carry the command out; the exit code. Raises what reading, applying or writing raises."""
    if args.update is None:
        args.update = _piped_update()
    _check_flags(args)
    content = _read(args.file, remedy="create it, empty for a new file")
    body = _body_of(args, content)
    answer = _shown_answer(body, settings, environment)
    may_ask = not (args.json or args.check) and can_ask(str(args.file), args.update)
    if answer.choices and may_ask:
        chosen = ask_which(answer.choices)
        if chosen is not None:
            body = msgspec.structs.replace(body, resolve=chosen.id)
            answer = _shown_answer(body, settings, environment)
    if isinstance(answer, Problem):
        return _report_problem(args, answer)
    return _report_result(args, answer, content)


def _shown_answer(
    body: ApplyBody, settings: Settings, environment: Mapping[str, str]
) -> ApplyResult | Problem:
    """The answer to an edit; stderr shows how far it is."""
    progress = Progress(sys.stderr)
    try:
        return answer_edit(body, settings, environment, progress)
    finally:
        progress.clear()


def _check_flags(args: argparse.Namespace) -> None:
    """Raise UsageError for what stdin cannot be, and for bytes that are no text."""
    for flag, text in (("--instruction", args.instruction), ("--path", args.path)):
        if text is not None and text != _as_text(text):
            raise UsageError(f"{flag} has bytes that are not UTF-8: {text!r}; send text in UTF-8")
    if args.review and not (args.write and can_ask(str(args.file), args.update)):
        raise UsageError(
            "--review asks at a terminal what to write; add --write, and name the file of the"
            " update"
        )
    if args.check and args.write:
        raise UsageError("--check writes nothing; leave it or --write out")
    if args.file != _STDIN:
        return
    if Path(args.update) == _STDIN:
        raise UsageError(
            "FILE and --update are both -, and stdin is one text; name a file for one of them"
        )
    if args.write:
        raise UsageError("--write needs a FILE, and - is stdin; take the text from stdout")


def _piped_update() -> str:
    """Stdin as the name of the update. Raises UsageError if nothing is sent to it."""
    if sys.stdin.isatty():
        raise UsageError("there is no update; name its file with --update, or send it to stdin")
    return str(_STDIN)


def _read(path: Path, *, remedy: str) -> bytes:
    if path == _STDIN:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ApplyCommandError(f"{path} does not exist; {remedy}") from error
    except IsADirectoryError as error:
        raise ApplyCommandError(f"{path} is a folder; name a file in it") from error
    except OSError as error:
        raise ApplyCommandError(
            f"cannot read {path}: {error.strerror or error}; name a file that you may read"
        ) from error


def _shown_name(file: Path) -> str | None:
    return None if file.is_absolute() or file == _STDIN else _as_text(file.as_posix())


def _as_text(argument: str) -> str:
    """What a name or flag says, with a mark in the place of bytes that are no UTF-8."""
    return argument.encode(errors="surrogateescape").decode(errors="replace")


def _body_of(args: argparse.Namespace, content: bytes) -> ApplyBody:
    _decode(content, args.file)
    update = _read(Path(args.update), remedy="name the file of the update, or - for stdin")
    return ApplyBody(
        original=Base64Content(content),
        update=_decode(update, args.update),
        format=args.format,
        instruction=args.instruction,
        path=args.path or _shown_name(args.file),
        scope=args.scope,
        checks=args.checks,
        speculation=args.speculation,
        use_model=args.use_model,
        model=args.model,
        on_doubt=args.on_doubt,
        resolve=args.resolve,
        include=["decisions"] if args.json else [],
        sampling=SamplingBody(max_tokens=args.max_tokens),
    )


def _decode(content: bytes, name: Path | str) -> str:
    try:
        return TextFile.from_bytes(content).decode()
    except TextFileError as error:
        raise ApplyCommandError(f"{'stdin' if str(name) == '-' else name}: {error}") from error


def _report_problem(args: argparse.Namespace, problem: Problem) -> int:
    if args.json:
        print(msgspec.json.encode(problem).decode())
    if problem.findings is None:
        print_choices(problem.choices or (), has_diffs=False)
        remedy = f"; {problem.remedy}" if problem.remedy else ""
        raise ApplyCommandError(f"{problem.detail}{remedy}")
    print("rejected: the result failed its checks", file=sys.stderr)
    _print_findings(problem.findings)
    print_choices(problem.choices or (), has_diffs=False)
    return EXIT_REJECTED


def _report_result(args: argparse.Namespace, result: ApplyResult, content: bytes) -> int:
    exit_code = _EXIT_BY_STATUS[result.status]
    merged = result.merged.base64 if isinstance(result.merged, Base64Content) else b""
    if args.json:
        print(msgspec.json.encode(result).decode())
    elif args.diff:
        show_diff(result.diff or "")
    elif not (args.write or args.check):
        sys.stdout.buffer.write(merged)
    sys.stdout.flush()
    if exit_code != EXIT_OK:
        print(result.status.replace("_", " "), file=sys.stderr)
        _print_findings(result.findings)
        print_choices(result.choices, has_diffs=False)
    is_accepted = exit_code == EXIT_OK or (result.status == "needs_review" and args.accept_review)
    if args.write and not is_accepted:
        print(f"{args.file} was not written", file=sys.stderr)
        return exit_code
    if args.write and args.review and merged != content:
        merged = review_changes(content, merged, result.diff or "")
        if merged == content:
            print(f"{args.file} was not written: no change was taken", file=sys.stderr)
    if args.write and merged != content:
        for loss in write_result(args.file, merged, expected=content):
            print(f"warning: {args.file}: {loss}", file=sys.stderr)
        try:
            remember_write(args.file, before=content, after=merged)
        except OSError as error:
            print(f"warning: undo will not know of this: {error}", file=sys.stderr)
    return exit_code


def _print_findings(findings: list[FindingBody]) -> None:
    for finding in findings:
        print(f"  {finding.severity} {finding.code}: {finding.message}", file=sys.stderr)
        print(f"    {finding.hint}", file=sys.stderr)
