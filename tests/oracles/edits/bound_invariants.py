"""What no model can do under the constraint: `python tests/oracle.py edits.bound_invariants`.

    python tests/oracle.py edits.bound_invariants build/cases/dev.jsonl --seeds 2

Answers every case in file scope along the grammar, in the embedded model's tokens, with the oracle
where the expected file is a path (seed 0) and with random choices (seed 1 and following). Counts
what must be zero: lines of no source, lines of the update that are missing, and lines of the
original that are gone and neither lie under a directive, nor in what the update names as old, nor
in a definition that it replaces, nor between or beside the anchors of a segment; and those that
`removed_lines` does not list. Lines are compared without indentation, blank ones not at all.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from apply_service.apply.attempt import Attempt
from apply_service.apply.conclusion import conclude
from apply_service.apply.merge_constraint import MergeConstraint
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.edit.place.placement import Placement
from apply_service.edit.text.blank_lines import squeeze
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.models.store import resolve_model
from apply_service.prompts.errors import TextNotEncodableError
from apply_service.prompts.profile import load_profile
from benchmarks.drafters.replay_case import ReplayCase, to_tokens
from lookup.constraint import TokenNotAllowedError

MUST_BE_ZERO = (
    "lines of no source",
    "lines of the update missing",
    "gone, elsewhere",
    "gone, not listed",
)


def choose(
    case: ReplayCase, constraint: MergeConstraint, seed: int
) -> tuple[list[int], list[Placement]] | None:
    """The tokens of an answer and the placements behind it; None if the truth is no path."""
    grammar = constraint.grammar()
    written: list[int] = []
    if seed == 0:
        written = list(case.answer)
        try:
            grammar.advance_all(written)
        except TokenNotAllowedError:
            return None
        if not grammar.is_complete:
            return None
    generator = random.Random(f"{seed} {case.case.id}")
    while not grammar.is_complete:
        run = grammar.forced_run() or [generator.choice(grammar.allowed_next())]
        grammar.advance_all(run)
        written += run
    chosen = dict.fromkeys((one.segment, one.placement) for one in grammar.chosen())
    return written, [constraint.placements[segment][number] for segment, number in chosen]


def count(case: ReplayCase, plan: EditPlan, lines: Sequence[str]) -> Counter[str]:
    """What is invented, missing or not listed in a result."""
    assert plan.snippet is not None, "the answer was bound"
    original, result = _filled(plan.original_lines), _filled(lines)
    segments = plan.snippet.segments
    sent = _filled(text for segment in segments for text in segment.texts)
    required = _filled(
        line.text for segment in segments for line in segment.lines if not line.is_optional
    )
    listed = conclude(plan, Attempt(source="model", lines=tuple(lines))).verdict.removed_lines
    return Counter(
        {
            "lines of no source": (result - original - sent).total(),
            "lines of the update missing": (required - result).total(),
            "gone, not listed": (original - result - _filled(one.text for one in listed)).total(),
        }
    )


def gone_lines(plan: EditPlan, placements: Sequence[Placement]) -> Iterator[str]:
    """For each filled line of the original that is not kept, where it stood."""
    assert plan.merge is not None, "the answer was bound"
    covered = {place for one in placements for place in range(one.start, one.end)}
    for span in plan.merge.removed:
        for place in range(span.start, span.end):
            if place not in covered and plan.original_lines[place].strip():
                yield "gone, under a directive"
    for placement in placements:
        yield from _gone_for(plan, placement)


def _gone_for(plan: EditPlan, placement: Placement) -> Iterator[str]:
    """Where the lines stood that a placement drops."""
    original = plan.original_lines
    before = [squeeze(text) for text in original[placement.start : placement.end]]
    matcher = SequenceMatcher(None, before, [squeeze(t) for t in placement.lines], autojunk=False)
    kept = {
        block.a + offset
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
        if before[block.a + offset]
    }
    words = set(" ".join(placement.lines).replace("(", " ").replace(":", " ").split())
    symbols = () if plan.tree is None else plan.tree.symbols
    replaced = {
        place
        for symbol in symbols
        if symbol.name in words and placement.start <= symbol.header < placement.end
        for place in range(symbol.start, symbol.end)
    }
    for offset, text in enumerate(before):
        if not text or offset in kept:
            continue
        anchors = (min(kept, default=offset) < offset, offset < max(kept, default=offset))
        if placement.reason == "explicit":
            yield "gone, named by the update"
        elif all(anchors):
            yield "gone, between anchors"
        elif placement.start + offset in replaced:
            yield "gone, in a replaced definition"
        elif any(anchors):
            yield "gone, beside an anchor"
        else:
            yield "gone, elsewhere"


def _filled(lines: Iterable[str]) -> Counter[str]:
    """How often each line stands there, blank ones and indentation aside."""
    return Counter(filter(None, map(squeeze, lines)))


def main() -> None:
    """Print the counts; 1 if one is not zero that must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="take every so many-th case only")
    parser.add_argument("--list", action="store_true", help="name the cases with a violation")
    args = parser.parse_args()
    profile = load_profile("embedded", resolve_model("embedded").path)
    totals: Counter[str] = Counter()
    for case in list(read_cases(args.cases))[:: args.every]:
        if case.must_refuse:
            continue
        totals["cases"] += 1
        try:
            prepared = to_tokens(case, profile, has_merge=False)
        except TextNotEncodableError:
            totals["cases not encodable"] += 1
            continue
        plan, constraint = prepared.planned.plan, prepared.try_constrain()
        if plan is None or constraint is None:
            totals["cases without a grammar"] += 1
            continue
        for seed in range(args.seeds):
            found = choose(prepared, constraint, seed)
            if found is None:
                totals["cases whose truth is no path"] += 1
                continue
            token_ids, placements = found
            totals["answers"] += 1
            lines = prepared.prompt.parse_answer(token_ids)
            counted = count(prepared, plan, lines) + Counter(gone_lines(plan, placements))
            totals += counted
            if args.list and any(counted[name] for name in MUST_BE_ZERO):
                print(seed, case.id, dict(counted), [one.reason for one in placements])
    for name in sorted(totals.keys() | set(MUST_BE_ZERO)):
        print(f"{name:<36}{totals[name]:>8}{'   must be 0' if name in MUST_BE_ZERO else ''}")
    raise SystemExit(any(totals[name] for name in MUST_BE_ZERO))


if __name__ == "__main__":
    main()
