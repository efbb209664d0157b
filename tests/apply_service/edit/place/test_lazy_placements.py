"""Blank lines beside markers: a habit of the update, or lines of the result."""

from __future__ import annotations

import pytest

from apply_service.edit.place.lazy_placements import MIN_AIRY_SIDES, is_airy
from apply_service.edit.place.merge import plan_merge, splice
from apply_service.edit.read.snippet import read_snippet

PYTHON = """\
def run(a):
    start(a)
    first(a)
    second(a)
    third(a)
    stop(a)
"""
TYPESCRIPT = """\
export function run(job: Job): void {
  job.start();
  job.first();
  job.second();
  job.third();
  job.stop();
}
"""
METHODS = """\
class A:
    def one(self):
        return 1

    def two(self):
        return 2
"""


def merged(original: str, update: str, language: str) -> str:
    lines = original.splitlines()
    plan = plan_merge(
        lines, read_snippet(update.splitlines(), lines, language=language), language=language
    )
    assert plan.best is not None
    return "\n".join(splice(lines, plan.best)) + "\n"


def is_update_airy(update: str) -> bool:
    return is_airy(read_snippet(update.splitlines(), PYTHON.splitlines()).segments)


def test_blank_lines_at_all_markers_are_not_written() -> None:
    update = (
        "# ...\n\n    start(a)\n    log('started', a)\n\n"
        "# ...\n\n    third(a)\n    log('third', a)\n\n# ...\n"
    )
    assert merged(PYTHON, update, "python") == PYTHON.replace(
        "    start(a)\n", "    start(a)\n    log('started', a)\n"
    ).replace("    third(a)\n", "    third(a)\n    log('third', a)\n")


def test_blank_lines_in_front_of_new_lines_are_not_written_either() -> None:
    update = (
        "// ...\n\n  log('first', job);\n  job.first();\n\n"
        "// ...\n\n  log('stop', job);\n  job.stop();\n\n// ...\n"
    )
    assert merged(TYPESCRIPT, update, "typescript") == TYPESCRIPT.replace(
        "  job.first();\n", "  log('first', job);\n  job.first();\n"
    ).replace("  job.stop();\n", "  log('stop', job);\n  job.stop();\n")


@pytest.mark.parametrize("blank", ["", "    "])
def test_a_blank_line_at_one_marker_alone_is_written_as_it_is_sent(blank: str) -> None:
    new = f"    start(a)\n    log('started', a)\n{blank}\n"
    update = f"# ...\n{new}# ...\n    third(a)\n    stop(a)\n# ...\n"
    expected = PYTHON.replace("    start(a)\n", new)
    assert merged(PYTHON, update, "python").splitlines()[:5] == expected.splitlines()[:5]


def test_definitions_are_set_off_all_the_same() -> None:
    between = "    def between(self):\n        return 1.5\n"
    three = "    def three(self):\n        return 3\n"
    one, two = METHODS[len("class A:\n") :].split("\n\n")
    update = f"# ...\n\n{one}\n\n{between}\n# ...\n\n{two}\n{three}\n# ...\n"
    assert merged(METHODS, update, "python") == f"class A:\n{one}\n\n{between}\n{two}\n{three}"


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ("# ...\n\na\n\n# ...", True),
        ("# ...\n\na\n# ...\nb\n\n# ...", True),
        ("# ...\na\n\n# ...\nb\n# ...", False),
        ("# ...\na\n# ...\nb\n# ...", False),
        ("# ...\n\na\n", False),
        ("# ...\n  \t\na\n\n# ...", True),
        ("# ...\na\n\nb\n\nc\n# ...", False),
    ],
)
def test_two_blank_sides_are_a_habit(update: str, expected: bool) -> None:
    assert is_update_airy(update) is expected


def test_no_segments_have_no_habit() -> None:
    assert not is_airy(())
    assert MIN_AIRY_SIDES > 1
