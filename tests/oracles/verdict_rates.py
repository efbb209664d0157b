"""How often the verdict is right: `python tests/oracles/verdict_rates.py build/cases/test.jsonl`.

Judges the true result of every case, then the same results with one fault put in at random.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from apply_service.bench.cases import read_cases
from apply_service.edit.text_file import split_lines
from apply_service.edit.verdict import judge

Fault = Callable[[random.Random, list[str], list[str]], list[str]]

MIN_LINES = 6


def _place(generator: random.Random, lines: list[str], length: int = 1) -> int:
    return generator.randrange(max(1, len(lines) - length + 1))


def drop_line(generator: random.Random, _original: list[str], lines: list[str]) -> list[str]:
    place = _place(generator, lines)
    return lines[:place] + lines[place + 1 :]


def drop_three_lines(generator: random.Random, _original: list[str], lines: list[str]) -> list[str]:
    place = _place(generator, lines, 3)
    return lines[:place] + lines[place + 3 :]


def drop_import(generator: random.Random, original: list[str], lines: list[str]) -> list[str]:
    places = [
        place
        for place, line in enumerate(lines)
        if line.startswith(("import ", "from ")) and line in original
    ]
    place = generator.choice(places) if places else len(lines)
    return lines[:place] + lines[place + 1 :]


def swap_lines(generator: random.Random, _original: list[str], lines: list[str]) -> list[str]:
    place = _place(generator, lines, 2)
    return [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]]


def indent_line(generator: random.Random, _original: list[str], lines: list[str]) -> list[str]:
    place = _place(generator, lines)
    return [*lines[:place], "    " + lines[place], *lines[place + 1 :]]


def repeat_four_lines(
    generator: random.Random, _original: list[str], lines: list[str]
) -> list[str]:
    place = _place(generator, lines, 4)
    return lines[: place + 4] + lines[place:]


def lose_second_half(
    _generator: random.Random, _original: list[str], lines: list[str]
) -> list[str]:
    return lines[: len(lines) // 2]


def change_word(generator: random.Random, _original: list[str], lines: list[str]) -> list[str]:
    place = _place(generator, lines)
    return [*lines[:place], lines[place] + "x", *lines[place + 1 :]]


def leave_marker(generator: random.Random, _original: list[str], lines: list[str]) -> list[str]:
    place = _place(generator, lines)
    return [*lines[:place], "# ... existing code ...", *lines[place:]]


def return_original(_generator: random.Random, original: list[str], _lines: list[str]) -> list[str]:
    return list(original)


def keep(_generator: random.Random, _original: list[str], lines: list[str]) -> list[str]:
    return lines


FAULTS: tuple[Fault, ...] = (
    drop_line,
    drop_three_lines,
    drop_import,
    swap_lines,
    indent_line,
    repeat_four_lines,
    lose_second_half,
    change_word,
    leave_marker,
    return_original,
)


def rates(path: Path, fault: Fault) -> Counter[str]:
    """Statuses of all cases with one fault each; results that the fault left alone do not count."""
    generator = random.Random(0)
    statuses: Counter[str] = Counter()
    for case in read_cases(path):
        original, update, expected = (
            split_lines(text)[0] for text in (case.original, case.update, case.expected)
        )
        if len(expected) < MIN_LINES:
            continue
        result = fault(generator, original, expected)
        if fault is keep or result != expected:
            statuses[judge(original, update, result).status] += 1
    return statuses


def main() -> None:
    """Print one row a fault: how many, and which statuses."""
    path = Path(sys.argv[1])
    for fault in (keep, *FAULTS):
        statuses = rates(path, fault)
        total = statuses.total()
        shares = ", ".join(
            f"{status} {count / total:.1%}" for status, count in statuses.most_common()
        )
        print(f"{fault.__name__:<20} n={total:<6} {shares}")


if __name__ == "__main__":
    main()
