"""Prepares standard streams that are closed, lose their reader, or have another encoding."""

from __future__ import annotations

import io
import os
import sys


def prepare_streams() -> None:
    """Open the null device for each closed stream, and write UTF-8 whatever the locale is.

    No file that is opened later gets the number of a closed stream, so nothing printed ends in it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def drop_output() -> None:
    """Discard the rest of stdout: its reader has gone, and a later flush must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
