"""`apply-client apply`: one edit of one file."""

from __future__ import annotations

import argparse
import sys
from typing import Any, get_args

import msgspec

from apply_client.cli.choice_prompt import ask_which, can_ask, print_choices
from apply_client.cli.edit_report import as_json, check_files, print_findings, write_files
from apply_client.cli.exit_codes import DESCRIPTION, EXIT_REJECTED, exit_code_of
from apply_client.cli.service_flags import add_edit_flags, retry_policy_of
from apply_client.cli.shown_diff import show_diff
from apply_client.cli.suggesting_parser import positive_int
from apply_client.client import ApplyClient
from apply_client.edit import ApplyOptions, Edit, Sampling, UpdateFormat
from apply_client.errors import (
    APIStatusError,
    EditRejectedError,
    UnknownChoiceError,
    UnprocessableEditError,
)
from apply_client.protocol.exchange import DEFAULT_RETRY
from apply_client.protocol.wire import ApplyResult
from apply_client.shown_text import say, shown_line
from apply_client.update_text import InputError, read_bytes, read_update
from apply_client.workspace.open_file import OpenFile, open_file
from apply_client.workspace.write_policy import WritePolicy

DEFAULT_TIMEOUT_S = 120.0


def add_apply_command(subparsers: Any) -> None:
    """Register `apply`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "apply",
        usage="%(prog)s FILE... [--update SNIPPET_FILE] [--diff | --json | --check] [--write]"
        " [flags]",
        help="merge a lazy update into a file",
        description="Merge a lazy update into FILE, or one patch into several files, which are"
        " written all or none. The merged file goes to stdout, findings to stderr."
        f" {DESCRIPTION}",
    )
    parser.add_argument(
        "files",
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
    add_edit_flags(parser, timeout_s=DEFAULT_TIMEOUT_S)
    parser.add_argument("--checks", choices=("on", "off"))
    parser.add_argument("--on-doubt", choices=("ask", "best", "refuse"))
    parser.add_argument("--speculation", choices=("on", "off"))
    parser.add_argument(
        "--max-tokens", type=positive_int, help="longest answer, by default what is needed"
    )
    parser.set_defaults(run=run_apply)


def run_apply(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code. Raises ApplyClientError."""
    if args.update is None:
        if sys.stdin.isatty():
            raise InputError("there is no update; name its file with --update, or send it to stdin")
        args.update = "-"
    if args.review and not (args.write and can_ask(*args.files, args.update)):
        raise InputError(
            "--review asks at a terminal what to write; add --write, and name the file of the"
            " update"
        )
    if args.check and args.write:
        raise InputError("--check writes nothing; leave it or --write out")
    if args.instruction is not None and not _is_text(args.instruction):
        raise InputError("--instruction has bytes that are not UTF-8; send text in UTF-8")
    if len(args.files) > 1:
        return _apply_to_several(args)
    (file,) = args.files
    if file == "-" and (args.update == "-" or args.write):
        raise InputError(
            "FILE is stdin, which cannot be the update as well, nor be written; name one of them"
        )
    opened = None if file == "-" else open_file(file)
    original = read_bytes("-") if opened is None else opened.content
    update = read_update(args.update)
    check_files(update, args.files)
    edit = Edit(
        original,
        update,
        format=args.format,
        path=None if opened is None else opened.label,
        instruction=args.instruction,
        options=_options(args),
        resolve=args.resolve,
    )
    with _client(args) as client:
        try:
            may_ask = not (args.json or args.check) and can_ask(file, args.update)
            result = _ask(client, edit, may_ask=may_ask)
        except (UnprocessableEditError, UnknownChoiceError) as error:
            return _report_refusal(args, error)
    return _report_result(args, result, opened)


def _apply_to_several(args: argparse.Namespace) -> int:
    from apply_client.cli.several_files import apply_to_several

    with _client(args) as client:
        return apply_to_several(args, _options(args), client)


def _client(args: argparse.Namespace) -> ApplyClient:
    retry = retry_policy_of(args.timeout, max_retries=DEFAULT_RETRY.max_retries)
    return ApplyClient(args.url, retry=retry)


def _ask(client: ApplyClient, edit: Edit[bytes], *, may_ask: bool) -> ApplyResult[bytes]:
    """The result of an edit; who sits at the terminal may say what is meant."""
    try:
        result = client.apply_edit(edit)
    except APIStatusError as error:
        chosen = ask_which(error.choices) if may_ask and error.choices else None
        if chosen is None:
            raise
        return client.resolve(edit, chosen)
    chosen = ask_which(result.choices) if may_ask and result.choices else None
    return result if chosen is None else client.resolve(edit, chosen)


def _is_text(argument: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in argument)


def _options(args: argparse.Namespace) -> ApplyOptions:
    sampling = None if args.max_tokens is None else Sampling(max_tokens=args.max_tokens)
    return ApplyOptions(
        scope=args.scope,
        checks=args.checks,
        use_model=args.use_model,
        on_doubt=args.on_doubt,
        speculation=args.speculation,
        model=args.model,
        sampling=sampling,
        include=("decisions",) if args.json else (),
    )


def _report_refusal(args: argparse.Namespace, error: APIStatusError) -> int:
    if args.json:
        print(msgspec.json.encode(error.problem).decode())
    if isinstance(error, EditRejectedError):
        say("rejected: the result failed its checks")
        print_findings(error.findings)
    else:
        say(f"refused: {error}")
    print_choices(error.choices, has_diffs=False)
    return EXIT_REJECTED


def _report_result(
    args: argparse.Namespace, result: ApplyResult[bytes], opened: OpenFile | None
) -> int:
    if args.json:
        print(msgspec.json.encode(as_json(result)).decode())
    elif args.diff:
        show_diff(result.diff or "")
    elif not (args.write or args.check):
        sys.stdout.buffer.write(result.merged)
    sys.stdout.flush()
    if not result.is_sure:
        say(result.status.replace("_", " "))
        print_findings(result.findings)
        print_choices(result.choices, has_diffs=False)
    if args.write and opened is not None:
        policy = WritePolicy(accepts_review=args.accept_review)
        if policy.is_written(result.status):
            write_files([(opened, result)], asks=args.review)
        elif not result.is_sure:
            say(f"{shown_line(args.files[0])} {policy.fate(result.status)}")
    return exit_code_of(result.status)
