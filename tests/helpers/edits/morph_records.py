"""Edits of compacted files as Morph's SDK sends them.

`tests/cases/morph_compacted` has one a line: an edit, the result that must come, and the
headers and body of the SDK's request. The paragraph that explains the form to a model is there in
our words. `tests/clients/real/test_morph_sdk.py` records them anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from case_files import read_records

_PARAGRAPH = re.compile(
    r"(?<=^LARGE-FILE ANCHOR PROTOCOL:\n)(?P<theirs>(?:.+\n)*?.+?)"
    r"(?=</instruction>\n<code>⟪MORPH_DEFINITIONS_BEGIN_(?P<number>\d+)⟫$)",
    re.MULTILINE,
)
# It has what could mislead a reader of the message: a tag, the mark of the code, a reference.
_OURS = (
    "In <code> a table comes before ⟪MORPH_CODE_BEGIN_{number}⟫.\n"
    "Each ⟪M{number}:N:kind⟫ stands for a piece in the table; leave all that stays as it is."
)


@dataclass(frozen=True, slots=True)
class MorphRecord:
    """One edit and the request that the SDK makes for it."""

    name: str
    original: str
    update: str
    instruction: str
    expected: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def content(self) -> str:
        """The text of the message."""
        content: str = self.body["messages"][0]["content"]
        return content

    def with_content(self, content: str) -> dict[str, Any]:
        """The body with another message."""
        return self.body | {"messages": [{"role": "user", "content": content}]}


def morph_records() -> list[MorphRecord]:
    """All records, in the order of the file."""
    return [MorphRecord(**record) for record in read_records("morph_compacted")]


def in_our_words(content: str) -> str:
    """A message of the SDK in which our words explain the form."""
    paragraph = _PARAGRAPH.search(content)
    assert paragraph is not None
    number = paragraph["number"]
    for part in ("<code>", f"⟪MORPH_CODE_BEGIN_{number}⟫", f"⟪M{number}:"):
        assert part in paragraph["theirs"]
    return _PARAGRAPH.sub(_OURS.format(number=number), content)
