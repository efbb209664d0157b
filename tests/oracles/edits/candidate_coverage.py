"""How often the right merge is among the candidates of all segments. By hand.

`python tests/oracle.py edits.candidate_coverage FILE…` looks for a way from the original to the
expected text: candidates that do not overlap, one a segment, with the lines between them kept as
they are or moved as a whole. Blank lines do not count. `--misses OUT` lists the cases without one;
not for cases that nobody may read.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from apply_service.edit.place.lattice.merges import MergeSource
from apply_service.edit.place.score.ranked_merges import filled
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case, read_cases
from training.merges.truth import Truth


def covers(case: Case) -> tuple[bool, int]:
    """Whether a right merge is among the candidates of any reading, and how many they are."""
    original, _ = split_lines(case.original)
    update, _ = split_lines(case.update)
    source = MergeSource(
        original, update, path=case.path, language=case.language, local=None, step=None
    )
    beams = [beam for _, beam in source.beams]
    num_candidates = sum(len(part.candidates) for beam in beams for part in beam.parts)
    return any(
        Truth(source.original, beam.parts, filled(split_lines(text)[0])).exists
        for beam in beams
        for text in case.results
    ), num_candidates


def main() -> int:
    """Print a line a file and kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--misses", type=Path)
    chosen = parser.parse_args()
    sys.setrecursionlimit(10_000)
    missed: list[dict[str, str]] = []
    for path in chosen.files:
        kinds: Counter[str] = Counter()
        right: Counter[str] = Counter()
        num_candidates, began = 0, time.perf_counter()
        for case in read_cases(path):
            if case.must_refuse and not case.also:
                continue
            is_covered, found = covers(case)
            num_candidates += found
            for kind in ("all", case.style or ""):
                kinds[kind] += 1
                right[kind] += is_covered
            if not is_covered:
                missed.append({"file": path.name, "id": case.id, "kind": case.style or ""})
        seconds = (time.perf_counter() - began) / max(kinds["all"], 1)
        mean = num_candidates / max(kinds["all"], 1)
        print(f"{path.name}: {seconds * 1000:.0f} ms and {mean:.0f} candidates a case")
        for kind in sorted(kinds, key=lambda name: -kinds[name]):
            share = right[kind] / kinds[kind]
            print(f"  {kind:20} {right[kind]:4} of {kinds[kind]:4} {share:7.1%}", flush=True)
    if chosen.misses:
        chosen.misses.write_text("".join(json.dumps(miss) + "\n" for miss in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
