from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.merge import MergePlan, plan_merge
from apply_service.edit.place.placement import MergePath, Placement, RemovedSpan
from apply_service.edit.place.splice import splice
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.regional_update import marker_of, predicted_rival, regional_update
from apply_service.edit.regions import Region

MARKER = "# ... existing code ..."


def placement(segment: int, start: int, end: int, *lines: str) -> Placement:
    return Placement(
        segment=segment, start=start, end=end, lines=lines, weight=1.0, reason="context"
    )


@st.composite
def merges(draw: st.DrawFn) -> tuple[list[str], MergePath, list[Region]]:
    """An original, a path over it, and regions that cut no placement."""
    original = [f"line {number}" for number in range(draw(st.integers(1, 20)))]
    borders = sorted(draw(st.lists(st.integers(0, len(original)), max_size=8)))
    placements, removed = [], []
    for number, (start, end) in enumerate(zip(borders[::2], borders[1::2], strict=False)):
        if start == end or draw(st.booleans()):
            lines = [f"new {number} {row}" for row in range(draw(st.integers(1, 3)))]
            placements.append(placement(len(placements), start, end, *lines))
        else:
            removed.append(RemovedSpan(start, end, f"name_{number}"))
    cuts = {0, len(original)} | {
        cut
        for cut in draw(st.sets(st.integers(0, len(original)), max_size=4))
        if not any(
            part.start < cut < part.end or part.start == cut == part.end
            for part in (*placements, *removed)
        )
    }
    ordered = sorted(cuts)
    regions = [Region(*pair) for pair in pairwise(ordered)]
    return original, MergePath(placements=tuple(placements), removed=tuple(removed)), regions


@given(merges())
def test_regions_together_predict_the_whole_merge(
    merge: tuple[list[str], MergePath, list[Region]],
) -> None:
    original, path, regions = merge
    spliced: list[str] = []
    position = 0
    for part in sorted((*path.placements, *path.removed), key=lambda part: (part.start, part.end)):
        spliced += original[position : part.start]
        spliced += part.lines if isinstance(part, Placement) else ()
        position = part.end
    spliced += original[position:]
    directives = [f"# remove {removed.name}" for removed in path.removed]
    updates = [
        regional_update(original, path, region, marker=MARKER, directives=directives)
        for region in regions
    ]
    assert [line for update in updates for line in update.predicted] == spliced
    shown = [line for update in updates for line in update.lines]
    assert all(line in shown for part in path.placements for line in part.lines)
    assert all(directive in shown for directive in directives)


def test_markers_stand_for_what_is_left_out() -> None:
    path = MergePath(
        placements=(placement(0, 1, 2, "b", "B"), placement(1, 4, 5, "e!")),
        removed=(RemovedSpan(5, 6, "f"),),
    )
    update = regional_update(
        list("abcdefg"), path, Region(1, 7), marker=MARKER, directives=["# remove f"]
    )
    assert update.lines == ("b", "B", MARKER, "e!", "# remove f", MARKER)
    assert update.segments == (("b", "B"), ("e!",))
    assert update.predicted == ("b", "B", "c", "d", "e!", "g")


def test_a_note_with_several_names_is_written_once() -> None:
    path = MergePath(placements=(), removed=(RemovedSpan(1, 2, "b"), RemovedSpan(2, 4, "c")))
    note = "# b and c removed"
    update = regional_update(
        list("abcde"), path, Region(0, 5), marker=MARKER, directives=[note, note]
    )
    assert update.lines == (MARKER, note, MARKER)
    assert update.predicted == ("a", "e")


def test_the_marker_is_the_updates_own_or_that_of_the_language() -> None:
    assert (
        marker_of(["a", "  -- ... rest of code ..."], ["x"], "python") == "-- ... rest of code ..."
    )
    assert marker_of(["-a", "+b"], ["a"], "python") == "# ... existing code ..."
    assert marker_of(["-a", "+b"], ["a"], "html") == "<!-- ... existing code ... -->"
    assert marker_of(["-a", "+b"], ["a"], None) == "// ... existing code ..."


TWICE = ["a = 1", "b = 1", "", "a = 1", "c = 1"]


def plan_of(update: list[str], original: list[str]) -> MergePlan:
    return plan_merge(original, read_snippet(update, original))


def test_the_rival_is_the_likeliest_other_merge() -> None:
    plan = plan_of(["# ...", "a = 1", "print(a)", "# ..."], TWICE)
    assert plan.best is not None
    whole = Region(0, len(TWICE))
    texts = {tuple(splice(TWICE, path)) for path in plan.paths(100)}
    rival = predicted_rival(plan, whole)
    assert rival in texts
    assert rival != tuple(splice(TWICE, plan.best))
    assert sorted(rival) == sorted([*TWICE, "print(a)"])


def test_a_rival_keeps_to_its_region() -> None:
    plan = plan_of(["# ...", "a = 1", "print(a)", "# ..."], TWICE)
    halves = [predicted_rival(plan, Region(0, 3)), predicted_rival(plan, Region(3, 5))]
    for rival, lines in zip(halves, (TWICE[:3], TWICE[3:]), strict=True):
        assert not rival or [line for line in rival if line != "print(a)"] == lines


def test_without_another_merge_there_is_no_rival() -> None:
    original = [
        "import os",
        "",
        "",
        "def load(path):",
        "    text = os.read(path)",
        "    return text",
    ]
    update = ["# ...", "    text = os.read(path)", "    text = text.strip()", "    return text"]
    plan = plan_of(update, original)
    assert plan.is_unique
    assert predicted_rival(plan, Region(0, len(original))) == ()
