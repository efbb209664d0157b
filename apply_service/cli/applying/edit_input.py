"""What `apply` reads: files, the update, and the request that they make."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from apply_service.apply.errors import UsageError
from apply_service.cli.named_files import why_incomplete
from apply_service.config import Settings
from apply_service.edit.forms.form import UpdateFormat
from apply_service.edit.text.text_file import TextFile, TextFileError
from apply_service.http.schemas import ApplyBody, Base64Content, SamplingBody
from apply_service.regular_file import SizeError, read_regular, read_whole
from apply_service.shown_text import shown_line

STDIN = Path("-")


class ApplyCommandError(Exception):
    """The command cannot be carried out; the message says why."""


def piped_update() -> str:
    """Stdin as the name of the update. Raises UsageError if nothing is sent to it."""
    if sys.stdin.isatty():
        raise UsageError("there is no update; name its file with --update, or send it to stdin")
    return str(STDIN)


def read_file(path: Path, settings: Settings) -> bytes:
    """A file to edit. Raises ApplyCommandError."""
    remedy = "see to its name and folder; for a new file, create it, empty"
    return _read(path, settings, remedy=remedy)


def read_update(name: str, settings: Settings) -> str:
    """The text of the update. Raises ApplyCommandError."""
    remedy = "name the file of the update, or - for stdin"
    return check_text(_read(Path(name), settings, remedy=remedy), name)


def check_text(content: bytes, name: Path | str) -> str:
    """The text of a file. Raises ApplyCommandError if it has none."""
    try:
        return TextFile.from_bytes(content).decode()
    except TextFileError as error:
        shown = "stdin" if str(name) == "-" else shown_line(name)
        raise ApplyCommandError(f"{shown}: {error}") from error


def check_files(update: str, files: Sequence[Path]) -> None:
    """Raise UsageError for an update of several files that are not all named."""
    reason = why_incomplete(update, [file.as_posix() for file in files])
    if reason is not None:
        raise UsageError(reason)


def as_text(argument: str) -> str:
    """What a name or flag says, with a mark in the place of bytes that are no UTF-8."""
    return argument.encode(errors="surrogateescape").decode(errors="replace")


def shown_name(file: Path) -> str | None:
    """The name of a file as the request tells it; None where it says nothing."""
    return None if file.is_absolute() or file == STDIN else as_text(file.as_posix())


def body_of(
    args: argparse.Namespace,
    content: bytes,
    update: str,
    *,
    path: str | None,
    update_format: UpdateFormat | None,
) -> ApplyBody:
    """The request for one file, with the options of the command."""
    return ApplyBody(
        original=Base64Content(content),
        update=update,
        format=update_format,
        instruction=args.instruction,
        path=path,
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


def _read(path: Path, settings: Settings, *, remedy: str) -> bytes:
    # What is sent to a server may be larger than what is taken here; it says so itself.
    max_bytes = max(settings.max_file_bytes, settings.max_body_bytes)
    name = shown_line(path)
    try:
        if path == STDIN:
            return read_whole(sys.stdin.buffer, max_bytes=max_bytes)
        return read_regular(path, max_bytes=max_bytes)
    except FileNotFoundError as error:
        raise ApplyCommandError(f"{name} does not exist; {remedy}") from error
    except IsADirectoryError as error:
        raise ApplyCommandError(f"{name} is a folder; name a file in it") from error
    except SizeError as error:
        raise ApplyCommandError(
            f"cannot read {name}: {error.strerror}; take a smaller one, or raise --max-file-bytes"
        ) from error
    except OSError as error:
        raise ApplyCommandError(
            f"cannot read {name}: {error.strerror or error}; name a file that you may read, or -"
            " for stdin"
        ) from error
