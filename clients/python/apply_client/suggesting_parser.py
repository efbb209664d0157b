"""A parser of command lines that knows which word was probably meant."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from typing import Any


class SuggestingParser(argparse.ArgumentParser):
    """Names the nearest command, choice or flag; so do the parsers of its commands."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """The namespace and nothing that is unknown: the command that has it says so itself."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flag = unknown[0].partition("=")[0]
            near = difflib.get_close_matches(flag, self._option_string_actions, n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            words = list(map(str, action.choices or ()))
            near = difflib.get_close_matches(str(value), words, n=1)
            if near:
                error.message = f"there is no {value!r}, did you mean {near[0]!r}?"
            raise


def positive_int(text: str) -> int:
    """The type of a flag that counts something."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value
