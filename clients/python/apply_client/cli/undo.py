"""`apply-client undo`: takes the last `apply --write` back, of one file or several."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from apply_client.cli.exit_codes import EXIT_OK
from apply_client.cli.last_write import LastWrite
from apply_client.shown_text import shown_line
from apply_client.update_text import InputError
from apply_client.workspace.errors import ContentConflictError
from apply_client.workspace.open_file import open_file

PROGRAM = "apply-client"


def add_undo_command(subparsers: Any) -> None:
    """Register `undo`."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "undo",
        help="take the last apply --write back, if nobody wrote since",
        description="Write the files of the last `apply --write` as they were before. If one of"
        " them has changed since, none is written.",
    )
    parser.set_defaults(run=run_undo)


def run_undo(_args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code. Raises ApplyClientError."""
    last = LastWrite(PROGRAM)
    try:
        kept = last.read()
    except FileNotFoundError as error:
        raise InputError("there is no write to undo; `apply --write` keeps the last one") from error
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{last.path} cannot be read: {error}; remove it") from error
    files = [open_file(one.path) for one in kept]
    for one, file in zip(kept, files, strict=True):
        if file.file.sha256 != one.after_sha256:
            raise ContentConflictError(
                str(one.path),
                "has changed since it was written; compare it with `git diff` or an editor",
            )
    for one, file in zip(kept, files, strict=True):
        file.replace(one.before)
        print(f"{shown_line(one.path)} is as it was before the last apply --write")
    last.forget()
    return EXIT_OK
