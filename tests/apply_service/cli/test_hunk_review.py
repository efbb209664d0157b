"""Changes that are taken one by one, against all changes of the same texts in any encoding."""

from __future__ import annotations

import codecs
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.cli.hunk_review import review_changes
from apply_service.edit.text.diff import unified_diff
from apply_service.edit.text.text_file import TextFile

MARKS = {
    "latin-1": b"",
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
}
# A letter whose UTF-16 has the byte of a newline, and one of two units.
LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "@@ -1 +1 @@\n", "\u0a0a\u010a\r\n", "😀\n", "--- x\n"]),
    max_size=40,
)
TEXTS = st.builds(lambda lines, end: "".join(lines) + end, LINES, st.sampled_from(["", "end"]))


def reviewed(monkeypatch: pytest.MonkeyPatch, before: bytes, after: bytes, typed: str) -> bytes:
    diff = unified_diff(TextFile.from_bytes(before).decode(), TextFile.from_bytes(after).decode())
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(typed))
        return review_changes(before, after, diff)


@given(before=TEXTS, after=TEXTS, encoding=st.sampled_from(sorted(MARKS)))
def test_all_changes_make_the_result_and_none_the_file(
    before: str, after: str, encoding: str
) -> None:
    old, new = (MARKS[encoding] + text.encode(encoding, "ignore") for text in (before, after))
    with pytest.MonkeyPatch.context() as patch:
        assert reviewed(patch, old, new, "a\n") == new
        assert reviewed(patch, old, new, "d\n") == old
        assert reviewed(patch, old, new, "") == old


@given(data=st.data(), before=TEXTS, after=TEXTS)
def test_taken_one_after_the_other_in_any_choice_they_make_the_result(
    data: st.DataObject, before: str, after: str
) -> None:
    """What is left out at first is what the diff to the result still has."""
    old, new = before.encode(), after.encode()
    count = len(re.findall(r"^@@ ", unified_diff(before, after), re.MULTILINE))
    answers = data.draw(st.lists(st.sampled_from("yn"), min_size=count, max_size=count))
    with pytest.MonkeyPatch.context() as patch:
        half = reviewed(patch, old, new, "".join(f"{answer}\n" for answer in answers))
        if set(answers) <= {"y"}:
            assert half == new
        if set(answers) <= {"n"}:
            assert half == old
        assert reviewed(patch, half, new, "a\n") == new
