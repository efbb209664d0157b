"""What is asked about doubtful edits, and whether the right text is among the answers. By hand.

`python tests/oracle.py edits.offered_choices FILE…` asks no model. For each file it prints how many
edits that have an answer are right without a question, and how many are if the caller answers one
question by the truth; how many of a hundred edits lead to a question, with how many choices. Of the
questions that have an answer it prints how often the right text is among the choices and among the
first two, without and with the questions about lines that are left out without a word
(blank lines not counted). Then it prints how many of these questions there are, how often a half
had to be made, and how often one of the two is right. Of edits with two readings it prints how
often both are offered. Every choice of such a question is resolved once; one that cannot be is an
error.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apply_service.apply.choices import Choice, choice_id, choices_among
from apply_service.apply.conclusion import doubt_about, settle_doubt, try_conclude_alone
from apply_service.apply.errors import ApplyError, DoubtfulUpdateError
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.edit.place.score.ranked_merges import filled
from apply_service.edit.read.snippet import SnippetError
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case


@dataclass(frozen=True, slots=True)
class Answered:
    """A case as the service answers it without a model; a refusal has neither text nor choices."""

    plan: EditPlan | None = None
    applied: Sequence[str] | None = None
    choices: Sequence[Choice] = ()


def ask(case: Case) -> Answered:
    """What comes of a case."""
    edit = edit_of_case(case, use_model="never")
    try:
        plan = plan_edit(edit, max_file_bytes=sys.maxsize)
    except DoubtfulUpdateError as error:
        plan = plan_edit(replace(edit, resolve="none"), max_file_bytes=sys.maxsize)
        return Answered(plan=plan, choices=error.choices)
    except (ApplyError, SnippetError):
        return Answered()
    outcome = try_conclude_alone(plan)
    if outcome is None:
        return Answered(plan=plan)
    is_sure = outcome.verdict.status in ("applied", "unchanged")
    applied = outcome.lines if is_sure else None
    return Answered(plan=plan, applied=applied, choices=settle_doubt(plan, outcome).choices)


def right_texts(case: Case) -> list[list[str]]:
    """The texts that are right, blank lines not counted."""
    return [filled(split_lines(text)[0]) for text in case.results]


def count(case: Case, plan: EditPlan, choices: Sequence[Choice]) -> Counter[str]:
    """What is true of one question."""
    merge = plan.merge
    assert merge is not None, "choices come from a merge"
    texts = {choice_id(plan.edit, text): text for text in doubt_about(plan, merge).texts()}
    plain = choices_among(plan.edit, merge.merges, merge.weights)
    before, after = ([filled(texts[one.id]) for one in found] for found in (plain, choices))
    right = right_texts(case)
    is_pair = choices[0].reason.endswith("without a word.")
    made = is_pair and texts[choices[1].id] not in merge.merges
    found = Counter(pairs=is_pair, made=made)
    if is_pair:
        for choice in choices:
            asked = replace(plan.edit, resolve=choice.id)
            outcome = try_conclude_alone(plan_edit(asked, max_file_bytes=sys.maxsize))
            assert outcome is not None, case.id
            assert outcome.lines == texts[choice.id], case.id
    if not case.must_refuse:
        for name, offered in (("before", before), ("after", after)):
            found[f"among {name}"] = any(text in right for text in offered)
            found[f"two {name}"] = any(text in right for text in offered[:2])
        found.update(one_answer=1, pair_right=is_pair and found["two after"])
        found.update(made_right=made and after[1] in right)
    elif case.also:
        found["two readings"] = 1
        for name, offered in (("before", before), ("after", after)):
            found[f"both {name}"] = all(text in offered for text in right[:2])
    return found


def main() -> int:
    """Measure on files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    for path in parser.parse_args().files:
        found: Counter[str] = Counter()
        for case in read_cases(path):
            answered = ask(case)
            found["cases"] += 1
            found["with answer"] += not case.must_refuse
            if answered.applied is not None and not case.must_refuse:
                found["applied right"] += filled(answered.applied) in right_texts(case)
            if answered.plan is not None and answered.choices:
                found.update(questions=1, choices=len(answered.choices))
                found += count(case, answered.plan, answered.choices)
        settled = found["applied right"] + found["among after"]
        print(
            f"{path.name}: of {found['with answer']} edits with an answer"
            f" {found['applied right']} applied and right, {settled} with one question answered;"
            f" {found['questions']} questions of {found['cases']} edits,"
            f" {found['choices'] / max(found['questions'], 1):.1f} choices each"
        )
        print(
            f"    {found['one_answer']} questions with an answer: among the choices"
            f" {found['among before']} → {found['among after']}, first two {found['two before']} →"
            f" {found['two after']}; left out without a word {found['pairs']}, one of the two right"
            f" {found['pair_right']}, made {found['made']}, made one right {found['made_right']};"
            f" both of two readings {found['both before']} → {found['both after']} of"
            f" {found['two readings']}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
