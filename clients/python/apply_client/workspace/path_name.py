"""Checks names of files as agents write them, before they are looked up below a root."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import unquote

from apply_client.workspace.errors import PathRefusedError

MAX_NAME_CHARACTERS = 4096
ON_WINDOWS = os.name == "nt"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_DRIVE = re.compile(r"[A-Za-z]:")
# They make a name look like another one where it is shown.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Folders that hold what version control remembers, and programs that it runs.
_PROTECTED = frozenset({".git", ".hg", ".svn", ".jj"})
_SHORT_NAME = re.compile(r"git~\d+")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\..*)?")


def relative_parts(
    name: str, roots: Sequence[str], *, on_windows: bool = ON_WINDOWS
) -> tuple[str, ...]:
    """The parts of `name` below the root, with `..` and links not resolved yet.

    An absolute name must begin with one of `roots`, the spellings of the root. Raises
    PathRefusedError.
    """
    _check_characters(name)
    _check_disguise(name)
    plain = name.replace("\\", "/") if on_windows else name
    if not on_windows and ("\\" in name or _DRIVE.match(name)):
        raise PathRefusedError(
            name, "is a path of Windows; name the file from the root, with forward slashes"
        )
    if plain.startswith("/") or _DRIVE.match(plain):
        plain = _below_root(plain, name, roots, on_windows=on_windows)
    elif _URL.match(plain):
        raise PathRefusedError(name, "is an address; name the file from the root")
    if plain.split("/")[0].startswith("~") and "/" in plain:
        raise PathRefusedError(name, "begins with ~, which stands for nothing here")
    parts = tuple(part for part in plain.split("/") if part not in ("", "."))
    if not parts or plain.endswith(("/", "/.")):
        raise PathRefusedError(name, "names a folder; name a file in it")
    for part in parts:
        check_part(part, name, on_windows=on_windows)
    return parts


def check_part(part: str, name: str, *, on_windows: bool = ON_WINDOWS) -> None:
    """Raise PathRefusedError for a part of the path of `name` that may not be entered."""
    if part == "..":
        raise PathRefusedError(name, "has `..` in it; name the file from the root")
    if is_protected(part):
        raise PathRefusedError(name, f"leads into {part!a}, which belongs to version control")
    if on_windows and (
        ":" in part or part[-1] in " ." or _DEVICE.fullmatch(part.casefold().rstrip(" ."))
    ):
        raise PathRefusedError(name, f"has the part `{part}`, which Windows takes for another name")


def is_protected(part: str) -> bool:
    """True if some file system takes this part for a folder of version control.

    Some ignore case, some drop trailing dots and spaces, some drop characters without width.
    """
    visible = "".join(one for one in part if unicodedata.category(one) != "Cf")
    plain = unicodedata.normalize("NFKC", visible).casefold().partition(":")[0].rstrip(" .")
    return plain in _PROTECTED or _SHORT_NAME.fullmatch(plain) is not None


def _check_characters(name: str) -> None:
    if not name.strip():
        raise PathRefusedError(name, "is no name; name a file of the workspace")
    if len(name) > MAX_NAME_CHARACTERS:
        raise PathRefusedError(
            f"{name[:60]}…", f"has {len(name)} characters; at most {MAX_NAME_CHARACTERS} are taken"
        )
    for one in name:
        if unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") or one in _REORDERING:
            raise PathRefusedError(
                name, f"has the character U+{ord(one):04X}; send the name without it"
            )


def _check_disguise(name: str) -> None:
    """Refuse names that become another path when they are decoded or normalised on the way."""
    decoded = unquote(unquote(name, errors="replace"), errors="replace")
    for form in (decoded, unicodedata.normalize("NFKC", name)):
        has_new_border = any(form.count(one) != name.count(one) for one in "/\\\0")
        parts = re.split(r"[/\\]", form)
        if form != name and (has_new_border or any(map(_is_special, parts))):
            raise PathRefusedError(name, f"is another form of `{form!a:.60}`; send the plain name")


def _is_special(part: str) -> bool:
    return part in (".", "..") or is_protected(part)


def _below_root(plain: str, name: str, roots: Sequence[str], *, on_windows: bool) -> str:
    for root in roots:
        prefix = root.replace("\\", "/") if on_windows else root
        prefix = prefix.rstrip("/") + "/"
        head = plain[: len(prefix)]
        if head == prefix or (on_windows and head.casefold() == prefix.casefold()):
            return plain[len(prefix) :]
    raise PathRefusedError(name, f"is not below {roots[0]}; name the file from there")
