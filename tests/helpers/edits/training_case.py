"""Small training cases, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from training.case_file import TrainingCase


def training_case(
    original: Sequence[str], expected: Sequence[str], update: Sequence[str] = (), *, name: str
) -> TrainingCase:
    """The case `name` of a Python file that becomes `expected` by `update`."""
    return TrainingCase(
        id=name,
        path="a.py",
        language="python",
        package="package",
        original="\n".join(original) + "\n",
        update="\n".join(update) + "\n",
        expected="\n".join(expected) + "\n",
        style="context",
        generator_version=1,
    )
