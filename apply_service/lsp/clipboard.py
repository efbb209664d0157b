"""Reads the clipboard by the programs that systems have for it."""

from __future__ import annotations

import shutil
import subprocess

_TIMEOUT_S = 5.0
_COMMANDS = (
    ("pbpaste",),
    ("wl-paste", "--no-newline"),
    ("xclip", "-selection", "clipboard", "-out"),
    ("xsel", "--clipboard", "--output"),
    ("powershell.exe", "-NoProfile", "-Command", "Get-Clipboard -Raw"),
)


class ClipboardError(Exception):
    """The clipboard cannot be read, or has no text."""


def read_clipboard() -> str:
    """The text in the clipboard. Raises ClipboardError."""
    reasons = []
    for command in _COMMANDS:
        program = shutil.which(command[0])
        if program is None:
            continue
        try:
            run = subprocess.run(
                [program, *command[1:]], capture_output=True, timeout=_TIMEOUT_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            reasons.append(f"{command[0]}: {error}")
            continue
        text = run.stdout.decode(errors="replace")
        if not text.strip():
            raise ClipboardError("the clipboard has no text; copy the update first")
        return text
    names = ", ".join(command[0] for command in _COMMANDS)
    raise ClipboardError(
        "the clipboard cannot be read"
        + (f" ({'; '.join(reasons)})" if reasons else f"; install one of {names}")
        + ", or send the update with the command"
    )
