"""Whether a text is sound by the strict grammar of its language, where Python has one."""

from __future__ import annotations

import ast
import json
import tomllib
import warnings

MAX_CHARS = 400_000


def is_sound(text: str, language: str | None) -> bool | None:
    """True or False for Python, JSON and TOML; None for others and for texts over a limit.

    Tree-sitter forgives what these refuse, such as a line of Python that is too deep.
    """
    if language not in ("python", "json", "toml") or len(text) > MAX_CHARS:
        return None
    try:
        if language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)
        elif language == "json":
            json.loads(text)
        else:
            tomllib.loads(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
