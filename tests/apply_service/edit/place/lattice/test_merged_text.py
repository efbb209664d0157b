"""The text of a merge: blank lines at the seams, and lines that keep the space they had."""

from __future__ import annotations

import pytest

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.lattice.merges import MergeSource
from apply_service.edit.place.score.tree_score import load_scores

FILE = """\
import os
import sys


def first():
    one = 1

    return one


def second():
    return 2
"""


def texts(update: str, file: str = FILE) -> list[str]:
    """All merges of an update, with fitted scores."""
    source = MergeSource(
        file.splitlines(),
        update.splitlines(),
        path="a.py",
        language=None,
        local=load_scores().candidate,
        step=load_scores().step,
    )
    return ["\n".join(merge.lines) + "\n" for merge in source.merges()]


@pytest.mark.parametrize(
    ("update", "old", "new"),
    [
        pytest.param(
            "# ... existing code ...\nimport sys\nimport time\n# ... existing code ...\n",
            "import sys\n",
            "import sys\nimport time\n",
            id="a line joins its kin",
        ),
        pytest.param(
            "# ... existing code ...\ndef between():\n    return 1.5\n\n\ndef second():\n"
            "# ... existing code ...\n",
            "def second():\n",
            "def between():\n    return 1.5\n\n\ndef second():\n",
            id="a definition is set off as sent",
        ),
        pytest.param(
            "# ... existing code ...\ndef third():\n    return 3\n",
            "    return 2\n",
            "    return 2\n\n\ndef third():\n    return 3\n",
            id="a new definition is set off as the others are",
        ),
        pytest.param(
            "# ... existing code ...\n    one = 1\n\n    return one + 1\n# ... existing code ...\n",
            "return one\n",
            "return one + 1\n",
            id="a blank line inside stays",
        ),
        pytest.param(
            "# ... existing code ...\n# remove second\n",
            "\n\ndef second():\n    return 2\n",
            "",
            id="blank lines go with the last definition",
        ),
        pytest.param(
            "# ... existing code ...\n# remove first\n# ... existing code ...\n",
            "def first():\n    one = 1\n\n    return one\n\n\n",
            "",
            id="blank lines above stay",
        ),
        pytest.param(
            "# ... existing code ...\ndef first():\n    try:\n        # ... existing code ...\n"
            "    finally:\n        done()\n\n\ndef second():\n# ... existing code ...\n",
            "    one = 1\n\n    return one\n",
            "    try:\n        one = 1\n\n        return one\n    finally:\n        done()\n",
            id="a wrapped gap keeps its blank lines",
        ),
    ],
)
def test_a_merge_is_right_to_the_byte(update: str, old: str, new: str) -> None:
    assert FILE.count(old) == 1
    assert FILE.replace(old, new) in texts(update)


def test_two_definitions_that_go_leave_the_gap_of_one() -> None:
    file = f"{FILE}\n\ndef third():\n    return 3\n"
    update = "import sys\n\n# first and second removed\n\ndef third():\n# ... existing code ...\n"
    expected = "import os\nimport sys\n\n\ndef third():\n    return 3\n"
    assert expected in texts(f"# ... existing code ...\n{update}", file)


def test_lines_sent_again_keep_the_space_that_they_had() -> None:
    file = "first = 1  \n \t\nsecond = 2\n"
    update = "first = 1\n\nsecond = 3\n"
    assert "first = 1  \n \t\nsecond = 3\n" in texts(update, file)


def test_new_lines_have_the_space_that_was_sent() -> None:
    update = "# ...\n    one = 1\n    two = 2  \n \t\n    three = 3\n\n    return one\n# ...\n"
    expected = FILE.replace("one = 1\n", "one = 1\n    two = 2  \n \t\n    three = 3\n")
    assert expected in texts(update)


@pytest.mark.parametrize(
    ("above", "new"),
    [
        ("self.size = 1\nself.name = 2", "self.kind = 3"),
        ("from a import b\nfrom c import d", "from e import f"),
    ],
)
def test_one_more_line_of_a_block_stands_without_a_gap(above: str, new: str) -> None:
    file = f"{above}\n\nlast = options\n"
    update = f"# ...\n{new}\n\nlast = options\n"
    found = texts(update, file)
    assert f"{above}\n{new}\n\nlast = options\n" in found
    assert f"{above}\n\n{new}\n\nlast = options\n" not in found


def test_a_line_that_stands_alone_as_the_others_do_keeps_its_gap() -> None:
    file = "export const a = 1\n\nexport const b = 2\n\nexport const d = 4\n"
    update = "// ...\nexport const c = 3\n\nexport const d = 4\n"
    expected = file.replace("export const d", "export const c = 3\n\nexport const d")
    found = texts(update, file)
    assert expected in found
    assert expected.replace("2\n\n", "2\n") not in found


def test_filled_lines_and_places_count_alike() -> None:
    original = OriginalFacts(FILE.splitlines(), "python")
    assert [original.place_of(number) for number in original.numbers] == [*range(len(original))]
    assert original.place_of(len(FILE.splitlines())) == len(original)
