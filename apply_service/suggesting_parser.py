"""A parser of command lines that knows which word was probably meant."""

from __future__ import annotations

import argparse
import difflib
from typing import Any


class SuggestingParser(argparse.ArgumentParser):
    """Names the nearest word where only some are allowed; so do the parsers of its commands."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            words = list(map(str, action.choices or ()))
            near = difflib.get_close_matches(str(value), words, n=1)
            if near:
                error.message = f"there is no {value!r}, did you mean {near[0]!r}?"
            raise
