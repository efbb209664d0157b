"""Features of a whole merge: the text that comes out, beside the original."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_view import MergeView
from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.read.readings import has_note
from apply_service.edit.text.brackets import BLOCK_OPENERS

RESULT_FEATURES: FeatureSet[MergeView, float] = FeatureSet()
_add = RESULT_FEATURES.add


@_add
def num_shallow(view: MergeView) -> float:
    """Lines behind an opened block that are no deeper, more than before."""
    return view.flaws.num_shallow - view.flaws_before.num_shallow


@_add
def num_jumps(view: MergeView) -> float:
    """Lines deeper than the line above, which opens no block, more than before."""
    return view.flaws.num_jumps - view.flaws_before.num_jumps


@_add
def errors_added(view: MergeView) -> float:
    """It has more syntax errors than the original."""
    return view.result.num_errors - view.original.num_errors


@_add
def kept_share(view: MergeView) -> float:
    """The part of the original that stays."""
    kept = sum((view.result.counts & view.original.counts).values())
    return kept / max(len(view.original), 1)


@_add
def num_lines_before(view: MergeView) -> float:
    """How long the original is: in a short one little evidence is enough."""
    return len(view.original)


@_add
def num_gone(view: MergeView) -> float:
    """Lines that are lost."""
    return sum(view.gone.values())


@_add
def num_gone_unsent(view: MergeView) -> float:
    """Telling lines that are lost and not in the update."""
    sent = view.reading.shape.counts
    return sum(num for line, num in view.gone.items() if line not in sent and len(line) > 4)


@_add
def num_lines_more(view: MergeView) -> float:
    """By how much the file grows."""
    return len(view.result) - len(view.original)


@_add
def num_twice(view: MergeView) -> float:
    """Lines of the original that stand there once more."""
    known = view.original.counts
    return sum(num for line, num in view.come.items() if line in known and len(line) > 6)


@_add
def num_sent_missing(view: MergeView) -> float:
    """Telling lines that were sent and do not come."""
    missing = view.reading.shape.counts - view.result.counts
    return sum(num for line, num in missing.items() if len(line) > 3)


@_add
def balance_change(view: MergeView) -> float:
    """Brackets that are open at the end, more than before."""
    return view.result.depths[-1] - view.original.depths[-1]


@_add
def num_dead(view: MergeView) -> float:
    """Lines that cannot be reached behind a return, more than before."""
    return len(view.flaws.dead_lines) - len(view.flaws_before.dead_lines)


@_add
def num_headers_gone(view: MergeView) -> float:
    """Lines lost that open a block, and that the update does not show."""
    sent = view.reading.shape.counts
    return sum(
        num for line, num in view.gone.items() if line.endswith(BLOCK_OPENERS) and line not in sent
    )


@_add
def num_comments_gone(view: MergeView) -> float:
    """Comments that are lost and not sent."""
    sent = view.reading.shape.counts
    return sum(num for line, num in view.gone.items() if line not in sent and is_comment(line))


@_add
def num_cosmetic(view: MergeView) -> float:
    """Lines that change in signs alone, such as quotes."""
    both = _counted_by(_letters, view.gone) & _counted_by(_letters, view.come)
    return sum(num for text, num in both.items() if len(text) > 3)


@_add
def num_respaced(view: MergeView) -> float:
    """Lines that only change their indentation."""
    gone = view.original.full_counts - view.result.full_counts
    come = view.result.full_counts - view.original.full_counts
    return sum((_counted_by(str.strip, gone) & _counted_by(str.strip, come)).values())


@_add
def num_notes_come(view: MergeView) -> float:
    """New lines with a remark that looks like a note to the reader."""
    return sum(has_note(line) for line in view.come)


@_add
def is_unsound(view: MergeView) -> float:
    """The text breaks the strict grammar of its language (Python, JSON, TOML): -1 if unknown."""
    if view.original.is_sound is not True:
        return -1.0
    return view.result.is_sound is False


@_add
def num_labels_twice(view: MergeView) -> float:
    """Keys, fields and patterns that stand once more in one block, more than before."""
    return view.flaws.num_labels_twice - view.flaws_before.num_labels_twice


def _letters(line: str) -> str:
    return "".join(filter(str.isalnum, line))


def _counted_by(key: Callable[[str], str], counts: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for line, num in counts.items():
        found[key(line)] += num
    return found
