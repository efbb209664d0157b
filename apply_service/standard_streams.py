"""Streams that whoever started the process closed, or stopped reading."""

from __future__ import annotations

import os
import sys


def open_missing_streams() -> None:
    """Put the null device in the place of each closed standard stream.

    No file that is opened later gets its number, so nothing printed ends in that file.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def drop_output() -> None:
    """Send the rest of stdout nowhere: its reader has gone, and a later flush must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
