"""A command at a terminal of its own: what is typed, and everything that is shown."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence

_LIMIT_S = 60


def run_at_terminal(
    command: Sequence[str],
    typed: str,
    *,
    environment: Mapping[str, str],
    stdout_too: bool = False,
    ends_after: str | None = None,
) -> tuple[int, str, bytes]:
    """Run a command with stdin and stderr at a terminal: exit code, what it shows, and stdout.

    With `stdout_too` stdout is the terminal as well. A command that goes on is sent SIGTERM once
    it has shown `ends_after`.
    """
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command,
        stdin=theirs,
        stderr=theirs,
        stdout=theirs if stdout_too else subprocess.PIPE,
        env={"TERM": "xterm", **environment},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        try:
            while piece := _read(ours):
                shown += piece
                if ends_after is not None and ends_after.encode() in shown:
                    process.terminate()
                    ends_after = None
        finally:
            os.close(ours)
        stdout = b"" if process.stdout is None else process.stdout.read()
        return process.wait(_LIMIT_S), shown.decode().replace("\r\n", "\n"), stdout


def _read(descriptor: int) -> bytes:
    """What comes next; nothing once the other side is closed, which Linux calls an error."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
