"""`apply-service apply`: edits from the command line, here or on a running server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from apply_service.apply.errors import UsageError
from apply_service.cli.answer import KEY_VARIABLE, URL_VARIABLE
from apply_service.cli.applying.asking import Answer, ask_for
from apply_service.cli.applying.choice_prompt import can_ask
from apply_service.cli.applying.edit_input import (
    STDIN,
    as_text,
    body_of,
    check_files,
    check_text,
    piped_update,
    read_file,
    read_update,
    shown_name,
)
from apply_service.cli.applying.edit_report import (
    EditedFile,
    as_json,
    is_accepted,
    report_answer,
    write_files,
)
from apply_service.cli.shown_diff import show_diff
from apply_service.cli.suggesting_parser import positive_int
from apply_service.config import Settings
from apply_service.edit.forms.form import UpdateFormat
from apply_service.http.problems import Problem
from apply_service.shown_text import say, shown_line


def add_apply_command(subparsers: Any) -> argparse.ArgumentParser:
    """Register `apply`; settings flags are added by the caller."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "apply",
        usage="%(prog)s FILE... [--update SNIPPET_FILE] [--diff | --json | --check] [--write]"
        " [flags]",
        help="merge a lazy update into a file",
        description="Merge a lazy update into FILE, or one patch into several files, which are"
        " written all or none. The merged file or its diff goes to stdout, then findings to"
        " stderr. Exit codes: 0 applied or unchanged, 1 error, 2 usage, 3 needs review, 4 rejected,"
        f" 130 Ctrl-C. With {URL_VARIABLE} a running server does the work, which is sent the API"
        f" key of {KEY_VARIABLE}.",
    )
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="the file to edit, - reads stdin; several for a patch or diff that names them",
    )
    parser.add_argument(
        "--update", metavar="SNIPPET_FILE", help="the update, by default stdin, as for -"
    )
    parser.add_argument(
        "--stdin", dest="update", action="store_const", const="-", help="as --update -"
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
        args.update = piped_update()
    _check_flags(args)
    if len(args.files) > 1:
        # It brings the readers of patches, which an edit of one file may do without.
        from apply_service.cli.applying.several_files import apply_to_several

        return apply_to_several(args, settings, environment)
    (file,) = args.files
    if file == STDIN:
        _check_stdin(args)
    content = read_file(file, settings)
    check_text(content, file)
    update = read_update(args.update, settings)
    check_files(update, args.files)
    body = body_of(
        args,
        content,
        update,
        path=args.path or shown_name(file),
        update_format=args.format,
    )
    may_ask = not (args.json or args.check) and can_ask(str(file), args.update)
    answer = ask_for(body, settings, environment, may_ask=may_ask)
    _show(args, answer)
    exit_code = report_answer(answer)
    if args.write and not isinstance(answer, Problem):
        if is_accepted(exit_code, args):
            write_files([EditedFile(file, content, answer)], asks=args.review)
        else:
            say(f"{shown_line(file)} was not written")
    return exit_code


def _check_flags(args: argparse.Namespace) -> None:
    """Raise UsageError for flags that exclude each other, and for bytes that are no text."""
    for flag, text in (("--instruction", args.instruction), ("--path", args.path)):
        if text is not None and text != as_text(text):
            raise UsageError(f"{flag} has bytes that are not UTF-8: {text!r}; send text in UTF-8")
    if args.review and not (args.write and can_ask(*map(str, args.files), args.update)):
        raise UsageError(
            "--review asks at a terminal what to write; add --write, and name the file of the"
            " update"
        )
    if args.check and args.write:
        raise UsageError("--check writes nothing; leave it or --write out")


def _check_stdin(args: argparse.Namespace) -> None:
    """Raise UsageError for what stdin cannot be."""
    if Path(args.update) == STDIN:
        raise UsageError(
            "FILE and --update are both -, and stdin is one text; name a file for one of them"
        )
    if args.write:
        raise UsageError("--write needs a FILE, and - is stdin; take the text from stdout")


def _show(args: argparse.Namespace, answer: Answer) -> None:
    """Print the result to stdout, in the form that is wanted."""
    if args.json:
        print(msgspec.json.encode(as_json(answer)).decode())
    elif isinstance(answer, Problem):
        return
    elif args.diff:
        show_diff(answer.diff or "")
    elif not (args.write or args.check):
        sys.stdout.buffer.write(EditedFile(STDIN, b"", answer).merged)
    sys.stdout.flush()
