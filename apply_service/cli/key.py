"""`apply-service key create|list|revoke`: the API keys that a server on this machine accepts."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from apply_service.http.guard.keys.key_file import (
    SCOPES,
    KeyFile,
    KeyFileError,
    KeyRecord,
    Scope,
    default_key_path,
)

_DEFAULT_SCOPES = "apply,batch"
_MAX_NAME_LENGTH = 100


def add_key_commands(subparsers: Any) -> None:
    """Register `key`."""
    parser = subparsers.add_parser(
        "key", help="create, list and revoke API keys", description=__doc__
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a key and show it, this once")
    create.add_argument("--name", required=True, help="what the key is for, such as ci")
    create.add_argument(
        "--scopes",
        default=_DEFAULT_SCOPES,
        help=f"what it opens, with commas between: {', '.join(SCOPES)} (all of it); unset,"
        f" {_DEFAULT_SCOPES}",
    )
    create.add_argument(
        "--expires-days", type=float, metavar="DAYS", help="when it ends; not said, never"
    )
    actions.add_parser("list", help="show names, scopes and dates; the keys themselves are gone")
    revoke = actions.add_parser("revoke", help="make a key worthless, within a second")
    revoke.add_argument("key", metavar="ID_OR_NAME")
    for action in actions.choices.values():
        action.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
        action.add_argument("--keys-file", metavar="FILE", help="the file; unset, by the settings")


def run_key_command(args: argparse.Namespace, keys_file: str | None) -> int:
    """Change or show the file. Raises KeyFileError."""
    file = KeyFile(Path(keys_file) if keys_file else default_key_path())
    if args.action == "create":
        _create(file, args)
    elif args.action == "revoke":
        record = file.revoke(args.key)
        print(f"revoked {record.id} ({record.name}); running servers refuse it within a second")
    else:
        sys.stdout.write(_format(file.read(), datetime.now(UTC)))
    return 0


def _create(file: KeyFile, args: argparse.Namespace) -> None:
    """The key alone goes to stdout, so that it can be piped to where it is needed."""
    name = args.name.strip()
    if not name.isprintable() or not 0 < len(name) <= _MAX_NAME_LENGTH:
        raise KeyFileError(
            f"the name {args.name!r} cannot be shown in a list; take 1 to {_MAX_NAME_LENGTH}"
            " printable characters"
        )
    days = args.expires_days
    if days is not None and not 0 < days <= 36_500:
        raise KeyFileError(f"a key cannot end in {days:g} days; take more than 0, up to 36500")
    is_first = not file.read()
    created = file.create(
        name, _scopes(args.scopes), expires_in=None if days is None else timedelta(days=days)
    )
    print(created.text)
    scopes = ", ".join(created.record.scopes)
    print(
        f"{created.record.id} ({name}) with {scopes}; the key is shown this once, its hash is in"
        f" {file.path}",
        file=sys.stderr,
    )
    if is_first and file.path == default_key_path():
        print(
            "Servers that started without keys stay open until they are restarted, unless their"
            f" keys_file is {file.path}.",
            file=sys.stderr,
        )


def _scopes(text: str) -> tuple[Scope, ...]:
    """The scopes that a text names, in their own order. Raises KeyFileError."""
    words = {word.strip() for word in text.split(",") if word.strip()}
    unknown = sorted(words.difference(SCOPES))
    if unknown or not words:
        shown = ", ".join(unknown) or text
        raise KeyFileError(f"no such scope: {shown!r}; choose among {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in words)


def _format(records: tuple[KeyRecord, ...], now: datetime) -> str:
    if not records:
        return "no keys; make one with `apply-service key create --name NAME`\n"
    rows = [("ID", "NAME", "SCOPES", "CREATED", "STATE")]
    rows += [
        (
            record.id,
            record.name,
            ",".join(record.scopes),
            f"{record.created_at:%Y-%m-%d}",
            _state(record, now),
        )
        for record in records
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[4]])
        + "\n"
        for row in rows
    )


def _state(record: KeyRecord, now: datetime) -> str:
    if record.revoked_at is not None:
        return f"revoked {record.revoked_at:%Y-%m-%d}"
    if record.expires_at is None:
        return "active"
    word = "until" if record.is_active(now) else "expired"
    return f"{word} {record.expires_at:%Y-%m-%d}"
