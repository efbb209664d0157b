"""Features of a whole merge: names that are lost, new or defined twice."""

from __future__ import annotations

import re

from apply_service.edit.place.candidates.original_facts import Definition, OriginalFacts
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_view import MergeView
from apply_service.edit.text.words import WORD

NAME_FEATURES: FeatureSet[MergeView, float] = FeatureSet()
IMPORT = re.compile(
    r"(?:import|from|use|using|#include|require|export .* from|const .*require\()\b|#include"
)
# Definitions that are compared with each other.
MAX_KIN = 20
_add = NAME_FEATURES.add


@_add
def defined_twice(view: MergeView) -> float:
    """Names that are defined more often than once, and than before."""
    before = view.original.names
    return sum(num > max(before[name], 1) for name, num in view.result.names.items())


@_add
def names_lost(view: MergeView) -> float:
    """Names that nothing defines any more."""
    return len(view.lost_names)


@_add
def names_lost_used(view: MergeView) -> float:
    """Lost names that the text still uses."""
    return sum(name in view.result.word_counts for name in view.lost_names)


@_add
def definitions_fewer(view: MergeView) -> float:
    """Definitions lost, counted by name."""
    return sum((view.original.names - view.result.names).values())


@_add
def names_new(view: MergeView) -> float:
    """Names that are new."""
    return sum(name not in view.original.names for name in view.result.names)


@_add
def bindings_lost_used(view: MergeView) -> float:
    """Variables that are used though nothing assigns them any more."""
    return sum(name in view.result.word_counts for name in view.lost_bindings)


@_add
def least_kin(view: MergeView) -> float:
    """How much a lost definition has in common with the new one most alike: the least share.

    A renamed one has much; a new one that took its place by mistake has little.
    """
    new = [one for one in view.result.definitions if one.name not in view.original.names]
    lost = set(view.lost_names)
    if not new or not lost:
        return 1.0
    bodies = [_body(view.result, one) for one in new[:MAX_KIN]]
    old = [one for one in view.original.definitions if one.name in lost][:MAX_KIN]
    return min(max(_kin(_body(view.original, one), body) for body in bodies) for one in old)


def _body(text: OriginalFacts, one: Definition) -> frozenset[str]:
    """The telling lines of a definition below its header, or the header if there are none."""
    lines = text.stripped[one.header + 1 : one.end]
    return frozenset(line for line in lines if len(line) > 3) or frozenset(
        text.stripped[one.header : one.header + 1]
    )


def _kin(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(min(len(one), len(other)), 1)


@_add
def words_lost(view: MergeView) -> float:
    """Words that the text has no more and that no sent line has."""
    lost = {word for line in view.gone for word in WORD.findall(line)}
    return sum(
        word not in view.result.word_counts and word not in view.reading.words for word in lost
    )


@_add
def names_lost_unsent(view: MergeView) -> float:
    """Lost names that the update does not speak of."""
    return sum(name not in view.reading.words for name in view.lost_names)


@_add
def imports_lost_used(view: MergeView) -> float:
    """Imported names that the text still uses, though no import has them any more."""
    lost = {name for line in view.gone if IMPORT.match(line) for name in WORD.findall(line)}
    if not lost:
        return 0.0
    lines = zip(view.result.words, view.result.stripped, strict=True)
    imported = {name for words, line in lines if IMPORT.match(line) for name in words}
    return len((lost & view.result.word_counts.keys()) - imported)


@_add
def definitions_respaced(view: MergeView) -> float:
    """Definitions that stand on another depth than before."""
    before = view.original.name_indents
    return sum(
        name in before and indent != before[name]
        for name, indent in view.result.name_indents.items()
    )
