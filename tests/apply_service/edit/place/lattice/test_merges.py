"""What an update may mean, before any score is fitted."""

from __future__ import annotations

import pytest

from apply_service.edit.place.lattice.merges import MAX_MERGES, MergeSource

FILE = ["class Box:", "    def size(self):", "        return 1", "", "    def name(self):"]
FILE += ["        return self.label"]


def source(update: str, original: list[str] = FILE) -> MergeSource:
    return MergeSource(
        original, update.splitlines(), path="store.py", language=None, local=None, step=None
    )


def test_merges_are_few_and_different() -> None:
    found = source("# ...\n    return None\n# ...\n")
    texts = {tuple(line for line in merge.lines if line.strip()) for merge in found.merges()}
    assert 1 < len(texts) <= MAX_MERGES
    assert len(found.features(found.merges())) == len(texts)


@pytest.mark.parametrize(
    ("original", "update"),
    [
        (["a" * 100_000 + str(number) for number in range(20)], "a" * 100_000 + "7b"),
        (["x" + " " * 100_000 + "= 1", "y = 2"], "x" + " " * 100_000 + "= 3"),
        (["}"] * 2000, "}\n}\n}"),
        (["if a {"] * 300 + ["}"] * 300, "}\ngo()\n}"),
        ([], "x = 1"),
    ],
)
def test_odd_lines_come_to_an_end(original: list[str], update: str) -> None:
    found = source(f"// ...\n{update}\n// ...\n", original)
    assert len(found.features(found.merges())) == len(found.merges())


def test_a_removal_may_name_what_has_a_dot_in_its_name() -> None:
    lines = ".card {\n  gap: 1px;\n}\n\n.card h2 {\n  margin: 0;\n}\n".splitlines()
    update = ["/* ... */", "/* remove .card h2 */", "/* ... */"]
    source = MergeSource(lines, update, path="a.css", language=None, local=None, step=None)
    assert lines[:3] in [list(merge.lines) for merge in source.merges()]


def test_an_update_with_news_never_leaves_the_text_as_it_is() -> None:
    lines = ["def first():", "    return 1"]
    source = MergeSource(
        lines, ["def first():", "    return 2"], path="a.py", language=None, local=None, step=None
    )
    assert lines not in [list(merge.lines) for merge in source.merges()]


def test_parts_that_cannot_be_sent_in_that_order_are_put_into_the_order_of_the_file() -> None:
    """No way leads through them as they were sent: the first one is the last in the file."""
    names = "abcd"
    lines = [line for name in names for line in (f"def {name}():", f"    return '{name}'")]
    marker = "# ... existing code ..."
    update = [line for name in "cba" for line in (f"# Remove {name}", marker)]
    found = source("\n".join(update), lines)
    assert [list(merge.lines) for merge in found.merges()] == [lines[-2:]]
