"""What a judge of a known accuracy would settle, and what it would settle wrongly.

`python tests/oracle.py edits.judge_gain FILE…` reads case files and takes each case in doubt. A
judge that is right with a probability names the right choice that often, and else the likeliest
wrong one, which is the worst that it can do. The figures are expectations, not draws: for each
accuracy of the judge and each `judge_accuracy`, of all doubts the share applied and right, and of
what is applied the share that is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from apply_service.evaluate.cases.case_file import read_cases
from apply_service.evaluate.judging import Doubt, JudgedDoubt, find_doubts

TRUE_ACCURACIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SETTINGS = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def expected(doubts: Sequence[Doubt], true_accuracy: float, setting: float) -> tuple[float, float]:
    """Doubts applied and right, and applied and wrong."""
    right = wrong = 0.0
    for doubt in doubts:
        misled = 0 if doubt.truth != 0 else (1 if len(doubt.choices) > 1 else None)
        for number, share in ((doubt.truth, true_accuracy), (misled, 1 - true_accuracy)):
            outcome = JudgedDoubt(doubt, number, True, "", None).outcome(setting)
            right += share * (outcome == "right")
            wrong += share * (outcome == "wrong")
    return right, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    doubts = [
        doubt for path in parser.parse_args().files for doubt in find_doubts(list(read_cases(path)))
    ]
    num_first = sum(doubt.truth == 0 for doubt in doubts)
    num_none = sum(doubt.truth is None for doubt in doubts)
    print(f"{len(doubts)} doubts; likeliest right {num_first}, no choice right {num_none}")
    print("setting  " + "  ".join(f"judge {true:.2f}  " for true in TRUE_ACCURACIES))
    for setting in SETTINGS:
        cells = []
        for true_accuracy in TRUE_ACCURACIES:
            right, wrong = expected(doubts, true_accuracy, setting)
            share_wrong = wrong / (right + wrong) if right + wrong else 0.0
            cells.append(f"{100 * right / len(doubts):4.0f} % {100 * share_wrong:4.1f} %")
        print(f"   {setting:.2f}  " + "  ".join(cells))


if __name__ == "__main__":
    main()
