"""A parser of command lines that suggests the word that was probably meant."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from apply_client.shown_text import shown

# Two words that share fewer of their letters are not slips of one another.
_LIKENESS = 0.75


class SuggestingParser(argparse.ArgumentParser):
    """Suggests the nearest command, choice or flag; so do the parsers of its commands."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """The namespace, with no unknown arguments: the command that has them reports them."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            near = _nearest(unknown[0].partition("=")[0], self._option_string_actions)
            hint = f", did you mean {near}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """End with the usage and what is wrong."""
        super().error(shown(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = _nearest(str(value), map(str, action.choices or ()))
            if near:
                error.message = f"there is no {value!r}, did you mean {near!r}?"
            raise


class ShowVersion(argparse.Action):
    """Prints the version that is installed of the program, and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(
            option_strings, dest=dest, nargs=0, default=argparse.SUPPRESS, help="print the version"
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"{parser.prog} {version(parser.prog)}")
        except PackageNotFoundError:
            print(f"{parser.prog} is not installed")
        parser.exit()


def _nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` is a typo of, such as two letters swapped."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=_LIKENESS)), None)


def positive_int(text: str) -> int:
    """The type of a flag that is a positive number."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value
