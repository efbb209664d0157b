"""`apply-service man`: the manual page of all commands, made from their help."""

from __future__ import annotations

import argparse
from typing import Any

from apply_service.version import service_version


def add_manual_command(subparsers: Any) -> None:
    """Register `man`."""
    subparsers.add_parser(
        "man",
        help="print the manual page",
        description="Print the manual page: `apply-service man >"
        " ~/.local/share/man/man1/apply-service.1`, then `man apply-service`.",
    )


def print_manual(parser: argparse.ArgumentParser) -> None:
    """Print the page, for all commands of a parser."""
    from argparse_manpage.manpage import Manpage

    page = Manpage(parser, format="single-commands-section")
    page.description = "merges edits of coding agents into files"
    page.manual = page.prog
    page.source = f"{page.prog} {service_version()}"
    print(str(page).replace("\nPOSITIONAL ARGUMENTS\n", "\nCOMMANDS\n", 1), end="")
