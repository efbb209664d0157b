"""Shows diffs as git does: in colours on a terminal, and longer ones through a pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from apply_service.shown_text import shown

_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_HEADERS = ("--- ", "+++ ")
# As git sets them: `less` ends at once where the text fits, shows colours, and leaves the text.
_PAGER = "less"
_PAGER_OPTIONS = {"LESS": "FRX", "LV": "-c"}


def has_colours(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """True if a stream shows colours and nobody asked for none (https://no-color.org)."""
    is_dumb = environment.get("TERM") == "dumb"
    return stream.isatty() and not is_dumb and not environment.get("NO_COLOR")


def coloured(line: str, stream: TextIO, *, is_header: bool = False) -> str:
    """A line of a diff, without its newline, as `stream` shows it: no control character acts."""
    line = shown(line)
    colour = _BOLD if is_header else _COLOURS.get(line[:1])
    return line if colour is None or not has_colours(stream) else f"{colour}{line}{_PLAIN}"


def show_diff(diff: str) -> None:
    """Print a unified diff to stdout; on a terminal in colours and, if it is long, page by page.

    Beside a terminal, such as in a file, it is what was made, to the byte.
    """
    if not has_colours(sys.stdout):
        _write(shown(diff) if sys.stdout.isatty() else diff)
        return
    lines = diff.split("\n")
    text = "\n".join(
        coloured(line, sys.stdout, is_header=at < 2 and line.startswith(_HEADERS))
        for at, line in enumerate(lines)
    )
    is_long = len(lines) > shutil.get_terminal_size().lines
    if not (is_long and _try_page(text)):
        _write(text)


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def _try_page(text: str) -> bool:
    """Show a text in the user's pager; False if there is none."""
    try:
        command = shlex.split(os.environ.get("PAGER", _PAGER))
    except ValueError:  # a quote without its end
        return False
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        return False
    sys.stdout.flush()
    # A reader may leave before the end.
    environment = {**_PAGER_OPTIONS, **os.environ}
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as pager,
        suppress(BrokenPipeError),
    ):
        pager.communicate(text.encode())
    return True
