"""Decides if lines above an update without a leading marker stay or are meant to go.

What names the file, opens a comment or ends a block stays, and so does what binds a name that the
result uses. An import goes of which the update takes the last use away, or which it writes anew.
Of anything else that binds a name it is unclear.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Literal

from apply_service.edit.place.opinion.placement import MergePath
from apply_service.edit.place.opinion.splice import splice
from apply_service.edit.text.bindings import bound_names, is_import_line
from apply_service.edit.text.block_bounds import closes_block
from apply_service.edit.text.definition_names import definition_name
from apply_service.edit.text.words import IDENTIFIER

Fate = Literal["stays", "goes", "unclear"]

# So few lines may have been left out so that they go, and so many are hardly meant to.
MAX_LEFT_OUT = 3
MAX_IN_DOUBT = 8
# New lines say again what stands above them if so many of their words do; of right results of
# agents none has more than 0.6.
MIN_RESTATED_SHARE = 0.65
MIN_RESTATED_WORDS = 2
MAX_RESTATED = 16
_FILE_HEADS = ("#!", "package ", "<?php", "<?xml", "<!DOCTYPE", "#pragma once")
# These bring names along that cannot be told from the line, or pass theirs on.
_OPAQUE = ("using ", "export ", "#include", "pub ")
_IMPORTS = ("import ", "from ", "use ")


def is_code(text: str) -> bool:
    """Whether a stripped line says more than the kind or name of a file, or the end of a block."""
    return bool(text) and not closes_block(text) and not text.startswith(_FILE_HEADS)


def first_lines_fate(original_lines: Sequence[str], path: MergePath) -> Fate:
    """The fate of the lines above the first placement of a merge.

    They go only if all of them do.
    """
    first = path.placements[0]
    lost = [line.strip() for line in original_lines[: first.start] if line.strip()]
    num_code = sum(map(is_code, lost))
    is_cut = any(span.start < first.start for span in path.removed)
    if not 0 < num_code <= MAX_LEFT_OUT or is_cut:
        return "stays"
    used = _words(splice(original_lines, path)[first.start :])
    used_before = _words(original_lines[first.start :])
    sent = _imported(first.lines)
    fates = {_fate(line, used, used_before, sent) for line in lost}
    if fates == {"goes"}:
        return "goes"
    return "stays" if fates == {"stays"} else "unclear"


def says_again(original_lines: Sequence[str], path: MergePath) -> bool:
    """Whether a merge begins with new lines that repeat the words of the few lines above them.

    As a new comment does that is meant to take the place of the one at the head of the file.
    Definitions stay.
    """
    first = path.placements[0]
    above = [line for line in original_lines[: first.start] if line.strip()]
    is_cut = any(span.start < first.start for span in path.removed)
    if not 0 < len(above) <= MAX_RESTATED or is_cut:
        return False
    known = {line.strip() for line in original_lines}
    new = list(takewhile(lambda line: not line.strip() or line.strip() not in known, first.lines))
    if any(definition_name(line) is not None for line in (*above, *new)):
        return False
    words = {word for word in _words(new) if len(word) > 1}
    num_known = len(words & _words(above))
    return len(words) >= MIN_RESTATED_WORDS and num_known >= MIN_RESTATED_SHARE * len(words)


def _fate(line: str, used: set[str], used_before: set[str], sent: frozenset[str]) -> Fate:
    names = bound_names(line)
    if not names or not is_code(line) or line.startswith(_OPAQUE):
        return "stays"
    if not is_import_line(line):
        return "unclear" if names.isdisjoint(used) else "stays"
    if not names.isdisjoint(used - sent):
        return "stays"
    is_idle = names.isdisjoint(used_before) and names.isdisjoint(sent)
    return "unclear" if is_idle else "goes"


def may_go(lost: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the lines beyond an update without a marker at its border may be meant to go.

    They may if they are not many, or if the update binds anew what they bind.
    """
    num_code = sum(is_code(line.strip()) for line in lost)
    if num_code <= MAX_IN_DOUBT:
        return bool(num_code)
    return not _bound_outside(lost).isdisjoint(_bound_outside(new) | _imported(new))


def _bound_outside(lines: Iterable[str]) -> frozenset[str]:
    """The names that lines without indentation bind."""
    return frozenset().union(*(bound_names(line) for line in lines if line[:1].strip()))


def _imported(lines: Iterable[str]) -> frozenset[str]:
    """The names that lines import, each in one line or in a list over several."""
    names: set[str] = set()
    is_open = False
    for line in lines:
        begins_list = line.startswith(_IMPORTS) and line.rstrip().endswith(("(", "{"))
        if is_open or begins_list:
            names.update(IDENTIFIER.findall(line))
            is_open = not any(closer in line for closer in ")}")
        elif is_import_line(line):
            names |= bound_names(line)
    return frozenset(names)


def _words(lines: Iterable[str]) -> set[str]:
    return {word for line in lines for word in IDENTIFIER.findall(line)}
