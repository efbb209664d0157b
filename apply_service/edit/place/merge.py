"""The merges that an update may mean, the likeliest first, and how certain that one is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from apply_service.edit.finding import Finding
from apply_service.edit.place.exact_merges import MAX_DOUBTFUL, OverlapError, exact_merges
from apply_service.edit.place.lattice.layers import layers_of
from apply_service.edit.place.merge_findings import (
    anchor_not_found,
    no_common_order,
    no_place,
    removal_not_found,
    too_many_segments,
)
from apply_service.edit.place.placement import Placement
from apply_service.edit.place.score.ranked_merges import rank_merges
from apply_service.edit.place.score.tree_score import load_scores
from apply_service.edit.place.sent_part import SentPart
from apply_service.edit.read.segment import EXPLICIT_FORMATS, Segment, Snippet
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import parse

MAX_SEGMENTS = 400
# Of merges that the scores say are right with this probability, so many are: chosen on edits that
# the fit has not seen, so that no more wrong ones are applied than before; docs/benchmarks.md.
MIN_CERTAINTY = 0.78
# Where the first merge is wrong, another one is right in so many of the blind cases.
OTHERS_SHARE = 0.6
MIN_PROBABILITY = 1e-4
# Merges that are less likely than this, by their logarithm, are no rivals of the first.
MIN_WEIGHT = -4.0


@dataclass(frozen=True, kw_only=True)
class MergePlan:
    """At most eight merges of one original and one update, and what is known of them.

    `merges` are whole texts that differ in more than blank lines; `weights` are their
    log-probabilities, which need not sum to 1: perhaps none is right. `certainty` is the
    probability that the first one is.
    `parts` are what was sent, where the first merge puts it. `snippet` is the reading of the update
    that led there. With an error among the `findings` there is no merge.
    """

    original_lines: Sequence[str]
    merges: tuple[tuple[str, ...], ...] = ()
    weights: tuple[float, ...] = ()
    certainty: float = 0.0
    parts: tuple[SentPart, ...] = ()
    findings: tuple[Finding, ...] = ()
    snippet: Snippet | None = None

    @property
    def best(self) -> tuple[str, ...] | None:
        """The likeliest merge; None if there is none."""
        return self.merges[0] if self.merges else None

    @cached_property
    def likely(self) -> tuple[int, ...]:
        """The numbers of the merges that may be meant; a certain one has no rivals.

        None of them leaves out what was sent and stands in the first.
        """
        first = tuple(range(len(self.merges[:1])))
        if self.is_certain or not self.merges:
            return first
        rivals = takewhile(
            lambda number: self.weights[number] >= MIN_WEIGHT, range(1, len(self.merges))
        )
        sent = self._sent_in(0)
        return (*first, *(number for number in rivals if sent <= self._sent_in(number)))

    def _sent_in(self, number: int) -> Counter[str]:
        """The sent lines that a merge has, without their indentation."""
        segments = () if self.snippet is None else self.snippet.segments
        sent = Counter(
            line.text.strip()
            for segment in segments
            for line in segment.lines
            if not line.is_optional
        )
        stripped = map(str.strip, self.merges[number])
        return sent & Counter(line for line in stripped if line in sent)

    @property
    def mass(self) -> float:
        """The probability that one of the merges is right."""
        if len(self.merges) < 2:
            return self.certainty
        return min(sum(map(math.exp, self.weights)), 1.0)

    @property
    def is_certain(self) -> bool:
        """Whether the likeliest merge may be applied without asking anybody."""
        return bool(self.merges) and self.certainty >= MIN_CERTAINTY

    def told(self, number: int | None, *, accuracy: float) -> MergePlan:
        """This plan after a witness named merge `number`, or with None said that none is right.

        The witness is right with `accuracy`. If it is wrong, what it named may be the one wrong
        thing that looked right, so the odds of what it named grow by accuracy / (1 - accuracy) and
        no more, however many merges there are. At 0.5 nothing changes.
        """
        shares = [math.exp(weight) for weight in self.weights]
        shares[:1] = [min(share, self.certainty) for share in shares[:1]]
        none_share = max(1.0 - sum(shares), 0.0)
        factors = [accuracy if place == number else 1 - accuracy for place in range(len(shares))]
        told = [share * factor for share, factor in zip(shares, factors, strict=True)]
        total = sum(told) + none_share * (accuracy if number is None else 1 - accuracy)
        ranked = sorted(range(len(told)), key=lambda place: -told[place])
        found = [max(told[place] / total, MIN_PROBABILITY**2) for place in ranked]
        is_same = ranked[:1] == [0]
        return replace(
            self,
            merges=tuple(self.merges[place] for place in ranked),
            weights=tuple(map(math.log, found)),
            certainty=found[0],
            parts=self.parts if is_same else (),
        )

    @cached_property
    def layers(self) -> tuple[tuple[Placement, ...], ...]:
        """The likely merges as placements: those of a layer exclude each other, in their order.

        The placement number n of a layer that has several belongs to the likely merge n.
        """
        return layers_of(self.original_lines, [self.merges[number] for number in self.likely])

    @property
    def open_placements(self) -> frozenset[Placement]:
        """What may be meant where the likely merges differ; empty if there is one alone."""
        return frozenset[Placement]().union(*(layer for layer in self.layers if len(layer) > 1))

    def path(self, number: int = 0) -> tuple[Placement, ...]:
        """The placements of merge `number`, in order."""
        if number not in self.likely:
            return tuple(one for (one,) in layers_of(self.original_lines, [self.merges[number]]))
        place = self.likely.index(number)
        return tuple(layer[place] if len(layer) > 1 else layer[0] for layer in self.layers)

    def number_of(
        self, result_lines: Sequence[str], *, ignores_blank_lines: bool = False
    ) -> int | None:
        """Which of the merges a text is; None if it is none of them."""

        def seen(lines: Sequence[str]) -> list[str]:
            return [line for line in lines if line.strip() or not ignores_blank_lines]

        wanted = seen(result_lines)
        texts = enumerate(self.merges)
        return next((number for number, merge in texts if seen(merge) == wanted), None)


def plan_merge(
    original_lines: Sequence[str],
    update_lines: Sequence[str],
    snippet: Snippet | None = None,
    *,
    path: str | None = None,
    language: str | None = None,
    instruction: str | None = None,
) -> MergePlan:
    """Find what an update may mean; `snippet` is what `read_snippet` made of it, if it could.

    An `instruction` makes lines suspicious that change although it does not speak of them.

    Raises BudgetSpentError if that takes too many comparisons.
    """
    if snippet is not None and len(snippet.segments) > MAX_SEGMENTS:
        finding = too_many_segments(len(snippet.segments), MAX_SEGMENTS)
        return _without_merge(original_lines, snippet, finding)
    if snippet is not None and snippet.format in EXPLICIT_FORMATS:
        try:
            is_ordered = snippet.format in ("diff", "patch")
            exact = exact_merges(original_lines, snippet.segments, is_ordered=is_ordered)
        except OverlapError:
            return _without_merge(original_lines, snippet, no_common_order(snippet))
        if exact is not None:
            return MergePlan(
                original_lines=original_lines,
                merges=exact.merges,
                weights=exact.weights,
                certainty=exact.certainty,
                parts=exact.parts,
                snippet=snippet,
            )
    scores = load_scores()
    ranked = rank_merges(
        original_lines, update_lines, scores, path=path, language=language, instruction=instruction
    )
    misfit = next(ranked.merges[0].misfits(), None) if ranked.merges else None
    if not ranked.merges or misfit is not None:
        finding = _reason(
            original_lines, snippet, misfit, language_of(path, language, original_lines)
        )
        return _without_merge(original_lines, snippet, finding)
    first = ranked.merges[0]
    certainty = ranked.certainty
    if snippet is not None and snippet.format in EXPLICIT_FORMATS:
        certainty = min(certainty, MAX_DOUBTFUL)  # the old lines do not stand in the file
    return MergePlan(
        original_lines=original_lines,
        merges=_with_shared_lines(merge.lines for merge in ranked.merges),
        weights=_weights(certainty, ranked.log_shares(scores.scale)),
        certainty=certainty,
        parts=tuple(first.sent_parts(update_lines)),
        snippet=first.reading.snippet,
    )


def _weights(certainty: float, log_shares: Sequence[float]) -> tuple[float, ...]:
    """Log-probabilities: the first merge has the certainty, and others share most of the rest."""
    first = min(max(certainty, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
    others = [math.exp(share) for share in log_shares[1:]]
    rest = OTHERS_SHARE * (1 - first) / max(sum(others), MIN_PROBABILITY)
    found = [min(first, max(rest * share, MIN_PROBABILITY**2)) for share in others]
    return (math.log(first), *map(math.log, found))


def _with_shared_lines(texts: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The texts with one string for all lines that are equal, which matters where they are long."""
    known: dict[str, str] = {}
    return tuple(tuple(known.setdefault(line, line) for line in lines) for lines in texts)


def _without_merge(
    original_lines: Sequence[str], snippet: Snippet | None, *findings: Finding
) -> MergePlan:
    return MergePlan(original_lines=original_lines, findings=findings, snippet=snippet)


def _reason(
    original_lines: Sequence[str],
    snippet: Snippet | None,
    misfit: Segment | None,
    language: str | None,
) -> Finding:
    """Why there is no merge."""
    if misfit is not None:
        return anchor_not_found(misfit, original_lines)
    if snippet is None:
        return no_place(1)
    tree = parse(original_lines, language)
    symbols = find_definitions(original_lines) if tree is None else tree.symbols
    known = [symbol.name for symbol in symbols if symbol.kind != "import"]
    for removal in snippet.removals:
        if not {removal.name, removal.name.rpartition(".")[2]}.intersection(known):
            return removal_not_found(removal, known)
    for segment in snippet.segments:
        if segment.old is not None and any(map(str.strip, segment.old)):
            return anchor_not_found(segment, original_lines)
    lines = (line.number for segment in snippet.segments for line in segment.lines)
    return no_place(next(lines, 1))
