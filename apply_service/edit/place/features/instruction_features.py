"""Features of a whole merge: whether the instruction speaks of what changes.

An instruction names little of what it asks for, but lines that were copied with mistakes, or
forgotten, it does not name at all.
"""

from __future__ import annotations

from rapidfuzz import fuzz

from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_view import MergeView

INSTRUCTION_FEATURES: FeatureSet[MergeView, float] = FeatureSet()
# What a feature is without an instruction.
UNSAID = -1.0
ALIKE_RATIO = 75
_add = INSTRUCTION_FEATURES.add


@_add
def has_instruction(view: MergeView) -> float:
    """There is an instruction."""
    return bool(view.said)


@_add
def num_unsaid(view: MergeView) -> float:
    """Changed stretches that the instruction does not speak of."""
    return len(view.unsaid) if view.said else UNSAID


@_add
def unsaid_share(view: MergeView) -> float:
    """The part of the changed stretches that the instruction does not speak of."""
    return len(view.unsaid) / max(len(view.changes), 1) if view.said else UNSAID


@_add
def num_unsaid_lost(view: MergeView) -> float:
    """Lines that are lost where nothing comes and that the instruction does not speak of."""
    if not view.said:
        return UNSAID
    return sum(len(gone) for gone, come in view.unsaid if not come)


@_add
def num_unsaid_alike(view: MergeView) -> float:
    """Lines that change a little, of which the instruction does not speak: perhaps mistakes."""
    if not view.said:
        return UNSAID
    return sum(
        fuzz.ratio(old, new) >= ALIKE_RATIO
        for gone, come in view.unsaid
        if len(gone) == len(come)
        for old, new in zip(gone, come, strict=True)
    )
