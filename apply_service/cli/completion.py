"""`apply-service completion SHELL`: what a shell needs to complete commands and flags."""

from __future__ import annotations

import argparse
from typing import Any

SHELLS = ("bash", "zsh", "tcsh")


def add_completion_command(subparsers: Any) -> None:
    """Register `completion`."""
    parser = subparsers.add_parser(
        "completion",
        help="print what a shell needs to complete commands",
        description="Print a script that completes commands and flags. bash: `apply-service"
        " completion bash > ~/.local/share/bash-completion/completions/apply-service`; zsh: as"
        " `_apply-service` into a folder of $fpath.",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or tcsh")


def print_completion(parser: argparse.ArgumentParser, shell: str) -> None:
    """Print the script for all commands of a parser."""
    import shtab

    for action in _actions(parser):
        if isinstance(action.metavar, str) and action.metavar.endswith("FILE"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    found: list[argparse.Action] = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                found += _actions(below)
    return found
