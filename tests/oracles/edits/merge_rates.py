"""How good the merge is: `python tests/oracle.py edits.merge_rates build/cases/test.jsonl`.

Plans every case without a model. `exact` is the share of best paths that are the expected text,
`unique` the share of plans that claim to be the only one and how many of these are exact, `among`
the share of cases whose expected text is one of the plan's valid merges. Cases that must be
refused count as right if there is no path, no claim, or a finding.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from apply_service.edit.place.merge import MergePlan, plan_merge, splice
from apply_service.edit.read.snippet import SnippetError, read_snippet
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.text.text_file import split_lines


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case; all flags but `is_refused` speak of cases with an answer."""

    style: str
    language: str
    must_refuse: bool
    is_exact: bool = False
    is_unique: bool = False
    is_among: bool = False
    is_refused: bool = False


@dataclass(slots=True)
class Rates:
    """Counts over outcomes."""

    outcomes: list[Outcome] = field(default_factory=list)

    def row(self) -> str:
        """The counts and shares as one line."""
        answered = [one for one in self.outcomes if not one.must_refuse]
        refusals = [one for one in self.outcomes if one.must_refuse]
        claimed = [one for one in answered if one.is_unique]
        cells = [
            _share("exact", sum(one.is_exact for one in answered), len(answered)),
            _share("unique", len(claimed), len(answered)),
            _share("exact there", sum(one.is_exact for one in claimed), len(claimed)),
            _share("among", sum(one.is_among for one in answered), len(answered)),
        ]
        if refusals:
            cells.append(_share("refused", sum(one.is_refused for one in refusals), len(refusals)))
        return "  ".join(cells)


def outcomes(path: Path) -> Iterator[Outcome]:
    """One outcome a case of a case file."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            case = json.loads(line)
            yield _outcome(case)


def _outcome(case: dict[str, str]) -> Outcome:
    original, update = _lines(case["original"]), _lines(case["update"])
    must_refuse = bool(case.get("must_refuse"))
    language = language_of(case["path"], case.get("language"), original)
    labels = (case.get("style") or "", language or "unknown", must_refuse)
    try:
        snippet = read_snippet(update, original, path=case["path"], language=language)
    except SnippetError:
        return Outcome(*labels, is_refused=True)
    plan = plan_merge(original, snippet, language=language)
    if must_refuse:
        is_refused = plan.best is None or not plan.is_unique or bool(plan.findings)
        return Outcome(*labels, is_refused=is_refused)
    return _compared(plan, original, _lines(case["expected"]), labels)


def _compared(
    plan: MergePlan, original: list[str], expected: list[str], labels: tuple[str, str, bool]
) -> Outcome:
    is_exact = plan.best is not None and splice(original, plan.best) == expected
    is_among = plan.accepts(expected) is not None
    return Outcome(*labels, is_exact=is_exact, is_unique=plan.is_unique, is_among=is_among)


def _lines(text: str) -> list[str]:
    return list(split_lines(text.replace("\r\n", "\n"))[0])


def _share(name: str, count: int, total: int) -> str:
    return f"{name} {count / total if total else 0:.1%} ({count}/{total})"


def _grouped(found: Iterable[Outcome], name: str) -> dict[str, Rates]:
    groups: defaultdict[str, Rates] = defaultdict(Rates)
    for outcome in found:
        groups[getattr(outcome, name)].outcomes.append(outcome)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1].outcomes)))


def main() -> None:
    """Print the rates of a case file, in all and by language and style."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    path = parser.parse_args().cases
    start = perf_counter()
    found = list(outcomes(path))
    seconds = perf_counter() - start
    print(f"{path}: {len(found)} cases, {1000 * seconds / max(len(found), 1):.0f} ms a case")
    print(f"  {'all':<40} {Rates(found).row()}")
    for name in ("language", "style"):
        for group, rates in _grouped(found, name).items():
            print(f"  {group[:40]:<40} {rates.row()}")


if __name__ == "__main__":
    main()
