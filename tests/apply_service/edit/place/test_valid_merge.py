"""The places that are found are exactly the valid ones; brute force is the oracle."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.edits.brute_merge import all_paths, result_of, valid_spans
from oracles.edits.valid_merge import ValidPlaces, is_valid_merge

from apply_service.edit.place.alike_lines import AlikeLines
from apply_service.edit.place.lazy_places import LazyPlacer
from apply_service.edit.place.merge import plan_merge, splice
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.runs import Run
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights

LINES = ("alpha = one()", "beta = two()", "beta = three()", "}", "", "  gamma(delta)", "@kappa")
originals = st.lists(st.sampled_from(LINES), min_size=1, max_size=7)
segments = st.lists(
    st.sampled_from((*LINES, "zeta(eta, theta)", "alpha = ones()", "gamma(delta)", "@iota")),
    min_size=1,
    max_size=4,
).filter(lambda lines: bool(lines[0].strip() and lines[-1].strip()))


def make_segment(texts: list[str]) -> Segment:
    lines = tuple(SegmentLine(text, number + 2) for number, text in enumerate(texts))
    return Segment(lines=lines)


def alike_runs(original: list[str], segment: list[str]) -> list[Run]:
    index = LineIndex(original)
    alike = AlikeLines(index, Similarity(index.stripped), WordWeights(index.stripped))
    return list(alike.runs(segment))


@settings(max_examples=300, deadline=None)
@given(originals, segments, st.booleans(), st.booleans())
def test_the_spots_found_are_exactly_the_valid_ones(
    original: list[str], segment: list[str], is_first: bool, is_last: bool
) -> None:
    placer = LazyPlacer(segment, LineIndex(original), is_first=is_first, is_last=is_last)
    found = {(spot.start, spot.end) for spot in placer.spots()}
    valid = valid_spans(original, segment, is_first=is_first, is_last=is_last)
    assert found <= valid
    assert placer.is_limited or found == valid


@settings(max_examples=150, deadline=None)
@given(originals, segments)
def test_lines_that_are_alike_add_valid_spots_and_take_none_away(
    original: list[str], segment: list[str]
) -> None:
    index, alike = LineIndex(original), alike_runs(original, segment)
    plain = {(spot.start, spot.end) for spot in LazyPlacer(segment, index).spots()}
    spots = LazyPlacer(segment, index, alike_runs=alike).spots()
    places = ValidPlaces(original, segment, further_runs=alike)
    assert plain <= {(spot.start, spot.end) for spot in spots}
    assert all(places.is_valid(spot.start, spot.end) for spot in spots)


@settings(max_examples=150, deadline=None)
@given(originals, st.lists(segments, min_size=1, max_size=2), originals)
def test_the_paths_are_all_merges_and_membership_accepts_exactly_their_results(
    original: list[str], texts: list[list[str]], other: list[str]
) -> None:
    snippet = Snippet(format="lazy", segments=tuple(map(make_segment, texts)))
    plan = plan_merge(original, snippet)
    layers = [plan.candidates[number] for number in plan.order]
    expected = {result_of(original, path) for path in all_paths(layers)}
    if any(finding.severity == "error" for finding in plan.findings):
        expected = set()
    paths = list(plan.paths(100_000))
    assert {tuple(splice(original, path)) for path in paths} == expected
    weights = [path.weight for path in paths]
    assert all(left >= right - 1e-5 for left, right in pairwise(weights))
    assert plan.num_paths(100_000) == len(paths)
    for result in expected:
        accepted = plan.accepts(result)
        assert accepted is not None
        assert tuple(splice(original, accepted)) == result
    assert (plan.accepts(other) is not None) == (tuple(other) in expected)


@settings(max_examples=150, deadline=None)
@given(originals, segments)
def test_placements_that_the_lines_speak_for_are_valid_merges(
    original: list[str], texts: list[str]
) -> None:
    snippet = Snippet(format="lazy", segments=(make_segment(texts),))
    plan = plan_merge(original, snippet)
    places = [ValidPlaces(original, texts, further_runs=alike_runs(original, texts))]
    for path in plan.paths(1000):
        if path.placements[0].reason in ("context", "similar"):
            assert is_valid_merge(original, places, path.placements)
