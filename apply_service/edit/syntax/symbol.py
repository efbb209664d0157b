"""A definition in a source file: what it is called and which lines it takes."""

from __future__ import annotations

import msgspec


# A large file has a hundred thousand: a struct is made ten times as fast as a frozen dataclass.
class Symbol(msgspec.Struct, frozen=True, gc=False):
    """A named definition on lines `[start, end)`, counted from 0.

    `start` takes in decorators, attributes and the comment that is attached to the definition;
    `header` is the line with the name. `kind` is one of "function", "class", "section", "key",
    "rule", "constant", "import" or "other": what may replace what. `parent` is the index of the
    symbol around it in the same list, None at the top level. `is_complete` is false for a
    definition in a snippet whose body is cut by a marker or by the end of the snippet.
    """

    name: str
    kind: str
    start: int
    header: int
    end: int
    parent: int | None = None
    is_complete: bool = True
