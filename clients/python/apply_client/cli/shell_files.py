"""`apply-client completion SHELL` and `man`: what a shell and `man` are given."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from apply_client.cli.exit_codes import EXIT_OK
from apply_client.update_text import InputError

SHELLS = ("bash", "zsh", "tcsh")


def add_shell_commands(
    subparsers: Any, build_parser: Callable[[], argparse.ArgumentParser]
) -> None:
    """Register `completion` and `man`; `build_parser` makes the parser that they describe."""
    completion = subparsers.add_parser(
        "completion",
        help="print what a shell needs to complete commands",
        description="Print a script that completes commands and flags. bash: `apply-client"
        " completion bash > ~/.local/share/bash-completion/completions/apply-client`; zsh: as"
        " `_apply-client` into a folder of $fpath.",
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or tcsh")
    completion.set_defaults(run=lambda args: _print_completion(build_parser(), args.shell))
    manual = subparsers.add_parser(
        "man",
        help="print the manual page",
        description="Print the manual page: `apply-client man >"
        " ~/.local/share/man/man1/apply-client.1`, then `man apply-client`.",
    )
    manual.set_defaults(run=lambda _args: _print_manual(build_parser()))


def _print_completion(parser: argparse.ArgumentParser, shell: str) -> int:
    _check_installed("shtab")
    import shtab

    for action in _actions(parser):
        if isinstance(action.metavar, str) and action.metavar.endswith("FILE"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell))
    return EXIT_OK


def _print_manual(parser: argparse.ArgumentParser) -> int:
    _check_installed("argparse_manpage")
    from argparse_manpage.manpage import Manpage

    page = Manpage(parser, format="single-commands-section")
    page.description = "has a running apply-service merge edits into files"
    page.manual = page.prog
    page.source = f"{page.prog} {version('apply-client')}"
    print(str(page).replace("\nPOSITIONAL ARGUMENTS\n", "\nCOMMANDS\n", 1), end="")
    return EXIT_OK


def _check_installed(package: str) -> None:
    if find_spec(package) is None:
        raise InputError(f"this needs the package {package}; install 'apply-client[shell]'")


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
