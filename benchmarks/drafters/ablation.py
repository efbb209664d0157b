"""Cases made harder by rule: code moved within the expected file, or a name changed throughout.

The original and the update stay as they are, so nothing announces the change to a drafter.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from apply_service.evaluate.cases.case_file import Case

_NAME = re.compile(r"[A-Za-z_]\w{3,}")
_MIN_BLOCK_LINES = 4
_MAX_BLOCK_LINES = 60
_MIN_NAME_USES = 4
_MAX_NAME_USES = 16


def move_block(case: Case) -> Case | None:
    """The case with one block of the expected file moved elsewhere, or None if it has no three.

    A block is a run of lines that begins unindented after a blank line. Which one moves, and where
    to, follows from the case's id alone.
    """
    lines = case.expected.split("\n")
    blocks = _blocks(lines)
    movable = [
        number
        for number, block in enumerate(blocks)
        if _MIN_BLOCK_LINES <= len(block) <= _MAX_BLOCK_LINES
    ]
    if len(blocks) < 3 or not movable:
        return None
    seed = zlib.crc32(case.id.encode())
    source = movable[seed % len(movable)]
    block = blocks.pop(source)
    target = (source + 1 + seed // 7 % (len(blocks) - 1)) % len(blocks)
    blocks.insert(target, block)
    moved = "\n".join(line for kept in blocks for line in kept)
    return msgspec.structs.replace(case, expected=moved)


def rename_identifier(case: Case) -> Case | None:
    """The case with one name of the original replaced throughout the expected file, or None.

    The name is chosen by the case's id among those used 4 to 16 times.
    """
    uses = Counter(_NAME.findall(case.expected))
    known = set(_NAME.findall(case.original))
    names = sorted(
        name
        for name, count in uses.items()
        if _MIN_NAME_USES <= count <= _MAX_NAME_USES and name in known
    )
    if not names:
        return None
    name = names[zlib.crc32(case.id.encode()) % len(names)]
    renamed = re.sub(rf"\b{name}\b", f"{name}_renewed", case.expected)
    return msgspec.structs.replace(case, expected=renamed)


def _blocks(lines: Sequence[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    is_after_blank = True
    for line in lines:
        if line and not line[0].isspace() and is_after_blank and blocks[-1]:
            blocks.append([])
        blocks[-1].append(line)
        is_after_blank = not line.strip()
    return blocks
