"""Finds halves of surrogate pairs in decoded JSON, which no encoding can store."""

from __future__ import annotations

from typing import Any


def find_lone_surrogate(value: Any, *, path: str = "", whole: str) -> tuple[str, str] | None:
    """The path of the first one, in a value or a member's name, and a sentence that says where.

    `whole` is what the value without a path is called.
    """
    if isinstance(value, str):
        position = _position_in(value)
        return None if position is None else (path, _sentence(path or whole, position))
    children: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        for name, item in value.items():
            named = name.encode("utf-8", "backslashreplace").decode()
            child = f"{path}.{named}" if path else named
            position = _position_in(name)
            if position is not None:
                return child, _sentence(f"the name of the member {child}", position)
            children.append((child, item))
    elif isinstance(value, list):
        children = [(f"{path}[{place}]", item) for place, item in enumerate(value)]
    found = (find_lone_surrogate(item, path=child, whole=whole) for child, item in children)
    return next((one for one in found if one is not None), None)


def _position_in(text: str) -> int | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _sentence(what: str, position: int) -> str:
    return f"{what} has a lone surrogate at character {position}"
