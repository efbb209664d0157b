"""Cases made from other cases: the result stays what it was, and the update is what it says."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from apply_service.evaluate.cases.case_file import Case
from training.generated.clones import clone_cases
from training.generated.definitions import definition_cases
from training.generated.sloppy import CHANGES, sloppy_cases
from training.generated.small_files import MAX_LINES, small_file_cases
from training.generated.wraps import wrapped_cases
from training.merges.examples import fold_of

FILE = """\
import os


class Store:
    def load(self, path):
        text = path.read_text()
        # Blank lines say nothing.
        lines = [line for line in text.split("\\n") if line]
        return parse(lines)

    def save(self, path, items):
        path.write_text(dump(items))
        return len(items)
"""
UPDATE = """\
# ... existing code ...
        text = path.read_text()
        # Blank lines say nothing.
        lines = [line for line in text.split("\\n") if line]
        check(lines)
        return parse(lines)
# ... existing code ...
"""
CASE = Case(
    id="store",
    path="store.py",
    original=FILE,
    update=UPDATE,
    expected=FILE.replace("        return parse", "        check(lines)\n        return parse"),
)


def changed(name: str, seed: int = 0) -> list[str]:
    """The lines of the update, changed in one way."""
    made = list(sloppy_cases([CASE] * len(CHANGES), len(CHANGES), seed))
    (case,) = (one for one in made if one.style == f"sloppy {name}")
    assert (case.original, case.expected) == (CASE.original, CASE.expected)
    assert case.id == "sloppy-store"
    return case.update.splitlines()


def test_each_way_changes_the_update_and_nothing_else() -> None:
    made = list(sloppy_cases([CASE] * len(CHANGES), len(CHANGES)))
    assert {case.style for case in made} == {f"sloppy {name}" for name in CHANGES}
    assert all(case.update != UPDATE for case in made)


def test_what_each_way_does() -> None:
    lines = UPDATE.splitlines()
    assert changed("quotes")[3] == lines[3].replace('"', "'")
    assert changed("unit")[1] == "    text = path.read_text()"
    assert changed("left")[1:3] == ["text = path.read_text()", "# Blank lines say nothing."]
    assert changed("comments") == [line for line in lines if "Blank" not in line]
    assert changed("remarks")[4].startswith("        check(lines) # ")
    assert changed("signs")[4] == "+        check(lines)"
    assert changed("prose")[-1] == "```"
    assert "existing code" not in "\n".join(changed("dots"))
    assert len(changed("marker")) == len(lines) - 1
    numbers = [int(line.strip().split()[0].strip(":|")) for line in changed("numbers")]
    assert numbers == list(range(numbers[0], numbers[0] + len(lines)))
    assert changed("forgotten") == [line for line in lines if "Blank" not in line]
    mistaken = changed("mistakes")
    assert mistaken[4] == lines[4]
    assert 1 <= sum(left != right for left, right in zip(mistaken, lines, strict=True)) <= 2


@pytest.mark.parametrize("seed", range(4))
def test_a_wrap_holds_lines_that_were_there_one_step_deeper(seed: int) -> None:
    (case,) = wrapped_cases([CASE], 1, seed)
    assert case.original == FILE
    old, new = FILE.splitlines(), case.expected.splitlines()
    deeper = [line for line in new if line not in old and line[4:] in old and line.strip()]
    assert deeper
    assert not any(line in case.update.splitlines() for line in deeper)


@pytest.mark.parametrize("seed", range(8))
def test_a_new_definition_is_the_last_of_its_block(seed: int) -> None:
    case = msgspec.structs.replace(CASE, original=FILE * 2)
    made = list(definition_cases([case], 4, seed))
    assert made
    for one in made:
        assert one.expected == case.original
        sent = {line.strip() for line in one.update.splitlines()}
        new = Counter(one.expected.splitlines()) - Counter(one.original.splitlines())
        assert any("def " in line for line in new)
        assert {line.strip() for line in new if line.strip()} <= sent
        assert fold_of(one) == fold_of(case)


MARKER = "# ... existing code ..."
ROWS = "import ast\nimport bisect\nimport csv\nimport dis\nimport enum\n"
PARAGRAPHS = "".join(f"\n\ndef part_{n}(x):\n    y_{n} = x\n    return y_{n}\n" for n in range(6))


def test_new_lines_between_others_are_sent_with_one_that_the_file_has_once() -> None:
    whole = ROWS + PARAGRAPHS
    files = [msgspec.structs.replace(CASE, original=whole + f"\n\nLAST = {n}\n") for n in range(9)]
    made = list(definition_cases(files, 30))
    kinds = {case.style for case in made}
    assert {"generated definition, middle", "generated definition, row"} <= kinds
    for case in made:
        first, *shown, last = case.update.splitlines()
        assert set(shown) <= {"", *case.expected.splitlines()}
        if case.style == "generated definition, first":
            assert last == MARKER
            assert first == "def part_0(x):"
        assert case.must_refuse == (case.style == "generated definition, alone")
        if case.style not in ("generated definition, middle", "generated definition, row"):
            continue
        assert first.strip() == last.strip() == MARKER
        assert set(shown).intersection(filter(None, case.original.splitlines()))
        assert len(case.original) < len(case.expected)


def test_the_last_of_a_row_is_sent_in_its_block() -> None:
    file = "class Box:\n    size = Number()\n    name = Text()\n    lid = Flag()\n\n" + "\n" * 3
    files = [msgspec.structs.replace(CASE, original=f"{file}LAST = {n}\n") for n in range(9)]
    made = list(definition_cases(files, 9))
    assert {case.style for case in made} == {"generated definition, field"}
    for case in made:
        header, inner, field, *rest = case.update.removeprefix(f"{MARKER}\n").splitlines()
        assert (header, inner.strip(), field) == ("class Box:", MARKER, "    lid = Flag()")
        assert {*map(str.strip, rest)} <= {MARKER}
        assert case.expected.replace(f"{field}\n", "") == case.original


TESTS = "".join(
    f"\n\ndef test_part_{name}(box):\n    box.add({number})\n    value = box.find_{name}()\n"
    f"    assert value.total == {number}\n    assert value.name == {name!r}\n"
    for number, name in enumerate(("apples", "pears", "plums", "cherries"))
)


@pytest.mark.parametrize("seed", range(6))
def test_a_clone_joins_the_others_and_a_renamed_one_takes_the_place_of_its_own(seed: int) -> None:
    files = [msgspec.structs.replace(CASE, original=f"import box{TESTS}# {n}\n") for n in range(8)]
    made = list(clone_cases(files, 24, seed))
    assert {case.style for case in made} == {"generated clone", "generated renamed"}
    for case in made:
        old, new = Counter(case.original.splitlines()), Counter(case.expected.splitlines())
        sent = set(case.update.splitlines())
        come = [line for line in new - old if line.strip()]
        assert sum(line.startswith("def test_part_") for line in come) == 1
        assert set(come) <= sent
        gone = [line for line in old - new if line.strip()]
        assert bool(gone) == (case.style == "generated renamed")
        assert fold_of(case) in {fold_of(one) for one in files}


def test_a_small_file_has_what_the_edit_touches_and_little_else() -> None:
    wide = PARAGRAPHS.join(["", FILE])
    files = [
        msgspec.structs.replace(
            CASE, original=f"{wide}# {n}\n", expected=CASE.expected.join([PARAGRAPHS, f"# {n}\n"])
        )
        for n in range(12)
    ]
    made = list(small_file_cases(files, 12))
    assert made
    for case in made:
        assert case.update == UPDATE
        assert len(case.original.splitlines()) <= MAX_LINES
        old, new = Counter(case.original.splitlines()), Counter(case.expected.splitlines())
        assert new - old == Counter(["        check(lines)"])
        assert not old - new
        assert set(old) < set(files[0].original.splitlines()) | {f"# {n}" for n in range(12)}
