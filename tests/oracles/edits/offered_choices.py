"""What is asked about doubtful edits, and whether the right text is among the answers. By hand.

`python tests/oracle.py edits.offered_choices FILE…` asks no model. Of the edits that have an answer
and lead to a question it prints for each file how often the right text is among the choices and
among the first two, without and with the questions about lines that are left out without a word
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
from dataclasses import replace
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


def ask(case: Case) -> tuple[EditPlan, Sequence[Choice]] | None:
    """The choices of a case, as the service gives them without a model; None without a question."""
    edit = edit_of_case(case, use_model="never")
    try:
        plan = plan_edit(edit, max_file_bytes=sys.maxsize)
    except DoubtfulUpdateError as error:
        return plan_edit(replace(edit, resolve="none"), max_file_bytes=sys.maxsize), error.choices
    except (ApplyError, SnippetError):
        return None
    outcome = try_conclude_alone(plan)
    choices = () if outcome is None else settle_doubt(plan, outcome).choices
    return (plan, choices) if choices else None


def count(case: Case, plan: EditPlan, choices: Sequence[Choice]) -> Counter[str]:
    """What is true of one question."""
    merge = plan.merge
    assert merge is not None, "choices come from a merge"
    texts = {choice_id(plan.edit, text): text for text in doubt_about(plan, merge).texts()}
    plain = choices_among(plan.edit, merge.merges, merge.weights)
    before, after = ([filled(texts[one.id]) for one in found] for found in (plain, choices))
    right = [filled(split_lines(text)[0]) for text in case.results]
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
            question = ask(case)
            if question is not None:
                found += count(case, *question)
        print(
            f"{path.name:28} {found['one_answer']} questions with an answer: among the choices"
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
