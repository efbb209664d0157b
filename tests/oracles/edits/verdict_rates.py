"""How often the verdict is right: `python tests/oracle.py edits.verdict_rates CASES.jsonl`.

Judges the true result of every case, the same results broken in every way of `corruptions`, and
the wrong answers of real models that `model_failures` has collected.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from oracles.damage.corruptions import Corruption, corruptions, random_corruption
from oracles.damage.model_failures import read_failures

from apply_service.edit.finding import Finding
from apply_service.edit.place.merge import MergePlan, plan_merge
from apply_service.edit.verdict.verdict import Verdict, judge
from apply_service.edit.read.segment import Snippet
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.case_statistics import wilson_interval
from apply_service.evaluate.cases.case_file import Case, read_cases

CORRUPTED_SHARE = 0.3
FLAGGED = ("needs_review", "rejected")


class JudgedCase:
    """A case read and planned once, to judge many results of it."""

    def __init__(self, original: str, update: str, path: str) -> None:
        self.original = list(TextFile.from_text(original).lines)
        self.update = list(TextFile.from_text(update).lines)
        language = language_of(path, None, self.original)
        self.tree = parse(self.original, language)
        self.snippet: Snippet | None = None
        self.plan: MergePlan | None = None
        try:
            self.snippet = read_snippet(self.update, self.original, path=path, language=language)
        except SnippetError:
            return
        self.plan = plan_merge(self.original, self.snippet, tree=self.tree, language=language)

    def judge(self, lines: Sequence[str]) -> Verdict:
        """The verdict; an update that cannot be read would be refused before any answer."""
        if self.snippet is None:
            finding = Finding(code="unreadable", severity="error", message="", hint="")
            return Verdict("rejected", (finding,))
        return judge(self.original, self.snippet, lines, plan=self.plan, tree=self.tree)

    def is_valid_merge(self, lines: Sequence[str]) -> bool:
        """Whether the plan takes the lines for a merge of this update."""
        return self.plan is not None and self.plan.accepts(list(lines)) is not None


class Rates:
    """Statuses by kind of result, apart for results that are valid merges."""

    def __init__(self) -> None:
        self.truth: Counter[str] = Counter()
        self.truth_codes: Counter[str] = Counter()
        self.num_sure = self.num_sure_flagged = 0
        self.broken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.other_merges: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.failures: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.num_answers = self.num_silent = self.num_applied = 0
        self.missed: list[str] = []

    def add_case(self, case: Case, *, seed: int) -> None:
        """Judge the truth and all corruptions of one case."""
        judged = JudgedCase(case.original, case.update, case.path)
        expected = list(TextFile.from_text(case.expected).lines)
        verdict = judged.judge(expected)
        self.truth[verdict.status] += 1
        if judged.plan is not None and judged.plan.is_unique:
            self.num_sure += 1
            self.num_sure_flagged += verdict.status in FLAGGED
        if verdict.status in FLAGGED:
            self.truth_codes.update({finding.code for finding in verdict.findings})
        for corruption in corruptions(case, seed=seed):
            self._add_corruption(case, judged, corruption)
        self._add_answer(case, judged, expected, seed)

    def add_failures(self, path: Path) -> None:
        """Judge wrong answers of real models that came to their end."""
        for failure in read_failures(path):
            if failure.ending == "complete":
                judged = JudgedCase(failure.original, failure.update, failure.path)
                lines = TextFile.from_text(failure.result).lines
                status = judged.judge(lines).status
                self.failures[failure.model][status] += 1
                if status not in FLAGGED:
                    self.missed.append(f"model {failure.model}: {failure.id}")

    def _add_corruption(self, case: Case, judged: JudgedCase, corruption: Corruption) -> None:
        status = judged.judge(corruption.lines).status
        is_valid = judged.is_valid_merge(corruption.lines)
        (self.other_merges if is_valid else self.broken)[corruption.kind][status] += 1
        if status not in FLAGGED:
            self.missed.append(f"{corruption.kind}{' (valid)' if is_valid else ''}: {case.id}")

    def _add_answer(self, case: Case, judged: JudgedCase, truth: list[str], seed: int) -> None:
        """A model that answers wrongly in `CORRUPTED_SHARE` of all cases."""
        is_wrong = self.num_answers % 10 < CORRUPTED_SHARE * 10
        corruption = random_corruption(case, seed=seed + 1) if is_wrong else None
        answer = truth if corruption is None else list(corruption.lines)
        is_applied = judged.judge(answer).status not in FLAGGED
        self.num_answers += 1
        self.num_applied += is_applied
        self.num_silent += is_applied and answer != truth


def share(count: int, total: int) -> str:
    """A share with its count and its 95 % interval."""
    low, high = wilson_interval(count, total)
    value = count / total if total else 0.0
    return f"{value:7.2%}  {count:>6} of {total:<6} [{low:.2%}, {high:.2%}]"


def report(rates: Rates) -> Iterator[str]:
    """The figures as lines of text."""
    total = rates.truth.total()
    num_flagged = sum(rates.truth[status] for status in FLAGGED)
    yield f"true results not applied        {share(num_flagged, total)}"
    yield f"  by code: {dict(rates.truth_codes.most_common())}"
    yield f"  where the plan is unique      {share(rates.num_sure_flagged, rates.num_sure)}"
    for name, kinds in (("broken", rates.broken), ("other valid merge", rates.other_merges)):
        for kind, statuses in sorted(kinds.items()):
            flagged = sum(statuses[status] for status in FLAGGED)
            yield f"{name}, {kind:<24} {share(flagged, statuses.total())}"
        statuses = sum(kinds.values(), Counter())
        flagged = sum(statuses[status] for status in FLAGGED)
        yield f"{name}, all flagged: {share(flagged, statuses.total())}"
        yield f"{name}, rejected:    {share(statuses['rejected'], statuses.total())}"
    for model, statuses in rates.failures.items():
        flagged = sum(statuses[status] for status in FLAGGED)
        yield f"wrong answers of {model}: flagged {share(flagged, statuses.total())}"
    yield f"answers of which 30 % are broken: applied {share(rates.num_applied, rates.num_answers)}"
    yield f"  applied and wrong (silent)      {share(rates.num_silent, rates.num_answers)}"


def main() -> None:
    """Read the command line, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="number of cases")
    parser.add_argument("--every", type=int, default=1, help="take each n-th case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", type=Path, default=None, metavar="JSONL")
    parser.add_argument("--show-missed", action="store_true", help="print what was not flagged")
    args = parser.parse_args()
    rates = Rates()
    for case in islice(read_cases(args.cases), 0, args.limit, args.every):
        rates.add_case(case, seed=args.seed)
    if args.failures is not None:
        rates.add_failures(args.failures)
    print("\n".join(report(rates)))
    if args.show_missed:
        print("\n".join(rates.missed))


if __name__ == "__main__":
    main()
