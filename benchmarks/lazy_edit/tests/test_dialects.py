"""Every dialect of an edit must lead the second merger, which shares no code, to the same text."""

import random

import pytest
from lazy_edit_bench.corpus import tasks_of
from lazy_edit_bench.dialects import write_update
from lazy_edit_bench.kinds import KINDS, kind_of
from lazy_edit_bench.readers import UndecidedError, apply_strictly, is_expansion
from lazy_edit_bench.task import DIALECTS, Edit, Treatment


def _pair(seed: int) -> tuple[str, str]:
    """A file with repeated lines, and a few random changes of it."""
    rng = random.Random(seed)
    old = [f"{'  ' * rng.randint(0, 3)}line {rng.randint(0, 25)}" for _ in range(60)]
    new = list(old)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(new))
        match rng.randrange(3):
            case 0:
                new[at] = f"changed {rng.random()}"
            case 1:
                new.insert(at, f"new {rng.random()}")
            case _:
                del new[at : at + rng.randint(1, 3)]
    end = rng.choice(["\n", ""])
    return "\n".join(old) + end, "\n".join(new) + end


@pytest.mark.parametrize("dialect", ["search_replace", "diff", "hashline", "whole_file"])
def test_an_exact_dialect_leads_back_to_the_result(dialect):
    num_written = 0
    for seed in range(150):
        original, result = _pair(seed)
        update = write_update(dialect, "a.txt", original, result)
        if update is not None:
            num_written += 1
            assert apply_strictly(dialect, original, update) == result
    assert num_written > 100


def test_markers_lead_back_or_are_undecided_but_are_always_an_expansion():
    num_merged = 0
    for seed in range(150):
        original, result = _pair(seed)
        update = write_update("markers", "a.py", original, result)
        if update is None:
            continue
        assert is_expansion(original, update, result), seed
        try:
            num_merged += apply_strictly("markers", original, update) == result
        except UndecidedError:
            continue
    assert num_merged > 60


def test_a_result_with_a_line_of_nowhere_is_no_expansion():
    original = "a\nb\nc\nd\n"
    update = "# ... existing code ...\nb\nnew\n# ... existing code ...\n"
    assert is_expansion(original, update, "a\nb\nnew\nc\nd\n")
    assert not is_expansion(original, update, "a\nb\nnew\nother\nc\nd\n")
    assert not is_expansion(original, update, "a\nb\nc\nd\n")


@pytest.mark.parametrize("dialect", ["search_replace", "diff", "hashline"])
def test_the_second_merger_refuses_a_file_whose_lines_were_changed(dialect):
    original, result = "a\nb\nc\n", "a\nB\nc\n"
    update = write_update(dialect, "a.txt", original, result)
    with pytest.raises(UndecidedError):
        apply_strictly(dialect, original.replace("b", "other"), update)


def test_a_block_in_two_places_is_undecided():
    update = "a.txt\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"
    with pytest.raises(UndecidedError, match="2 places"):
        apply_strictly("search_replace", "x\na\nx\n", update)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("replace", "a = 1\nb = 2\n", "a = 1\nb = 3\n"),
        ("insert", "a = 1\n", "a = 1\nb = 2\n"),
        ("delete", "a = 1\nb = 2\n", "a = 1\n"),
        ("import", "import os\na = 1\n", "import os\nimport re\na = 1\n"),
        ("rename", "total = 1\nprint(total)\n", "amount = 1\nprint(amount)\n"),
        ("move", "a()\nb()\nc()\nd()\n", "b()\nc()\nd()\na()\n"),
        ("wrap", "a()\nb()\nc()\n", "if ready:\n    a()\n    b()\nc()\n"),
        ("several", "a = 1\nb = 2\nc = 3\n", "a = 9\nb = 2\nc = 3\nd = 4\n"),
    ],
)
def test_kinds(kind, old, new):
    assert kind in KINDS
    assert kind_of("a.py", old, new) == kind


def test_all_dialects_have_a_writer():
    for dialect in DIALECTS:
        assert write_update(dialect, "a.py", "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 5\nc = 3\n")


def test_checks_tell_confirmed_from_disputed_and_unconfirmed():
    original = "".join(f"line {n}\n" for n in range(8)) + "}\nend\n}\n"
    update = "line 2\nnew\nline 3\n"
    right = original.replace("line 2\n", "line 2\nnew\n")

    def check(result: str, sent: str = update, treat: Treatment = "apply") -> str:
        edit = Edit(
            id="x", path="a.py", original=original, results=(result,), update=sent, treat=treat
        )
        return tasks_of([edit])[0].checked

    assert check(right) == "merged"
    assert check(right, treat="ask") == "stated"
    assert check(right.replace("line 3", "other")) == ""
    assert check(original.replace("line 4\n", "x\n}\n", 1), "line 3\nx\n}\n") == "expanded"
    without_lines = original.replace("line 4\nline 5\n", "")
    assert check(without_lines, "line 3\n# ... existing code ...\nline 6\n") == "disputed"
