"""Bytes are sacred: without an edit they come back, with one only the edited lines differ."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apply_service.edit.text.text_file import (
    BINARY_PROBE_BYTES,
    BinaryFileError,
    EncodingLostError,
    LoneSurrogateError,
    TextFile,
    split_lines,
)

MARKS = {
    "utf-8": b"",
    "utf-8-bom": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
TEXTS = st.text(
    st.one_of(
        st.sampled_from("\n\r\t\f\v\u2028\u0085\ufeffaé😀 "),
        st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"),
    )
)


@given(st.binary(max_size=200))
@example(b"a\r\nb\rc\n\x0cd")
@example(b"\xff\xfea")
@example(b"\xff\xfe\x00\x00")
@example(b"\xef\xbb\xbf\xff")
@example(b"\r")
@example(b"\r\n")
@example(b"\n\n")
@example(b"caf\xe9\r\n")
def test_any_bytes_come_back_or_are_refused(content: bytes) -> None:
    try:
        file = TextFile.from_bytes(content)
    except BinaryFileError:
        assert b"\0" in content
        return
    assert file.encode(file.lines) == content


@given(TEXTS, st.sampled_from(sorted(MARKS)))
@example("a\r\n" * 3 + "b", "utf-16-be")
@example("\x0c\n\u2028x\r", "utf-8")
def test_all_encodings_come_back(text: str, name: str) -> None:
    encoding = name.removesuffix("-bom")
    content = MARKS[name] + text.encode(encoding)
    file = TextFile.from_bytes(content)
    assert file.encode(file.lines) == content
    assert file.decode() == (text[1:] if not MARKS[name] and text[:1] == "\ufeff" else text)


@given(TEXTS)
def test_text_comes_back(text: str) -> None:
    file = TextFile.from_text(text)
    assert file.decode() == text
    assert all("\n" not in line for line in file.lines)


def test_nul_behind_the_probe_is_text() -> None:
    content = b"a" * BINARY_PROBE_BYTES + b"\0\r\nb"
    file = TextFile.from_bytes(content)
    assert file.encode(file.lines) == content
    with pytest.raises(BinaryFileError, match="byte 8191"):
        TextFile.from_bytes(content[1:])
    with pytest.raises(BinaryFileError, match="byte 2"):
        TextFile.from_text("é\0")


@pytest.mark.parametrize(
    ("text", "lines", "has_final_newline"),
    [
        ("a\nb\n", ["a", "b"], True),
        ("a\nb", ["a", "b"], False),
        ("", [], False),
        ("\n", [""], True),
        ("a\n\n", ["a", ""], True),
        ("a\x0cb\u2028c\rd\ne", ["a\x0cb\u2028c\rd", "e"], False),
    ],
)
def test_lines_end_at_newline_only(text: str, lines: list[str], has_final_newline: bool) -> None:
    assert split_lines(text) == (lines, has_final_newline)
    assert list(TextFile.from_text(text).lines) == lines


def test_kept_lines_keep_their_ending_and_new_ones_take_the_neighbours() -> None:
    file = TextFile.from_bytes(b"a\r\nb\nc\r\nd\n")
    assert file.encode(["a", "new", "b", "c", "d"]) == b"a\r\nnew\r\nb\nc\r\nd\n"
    assert file.encode(["a", "b", "new", "c", "d"]) == b"a\r\nb\nnew\nc\r\nd\n"
    assert file.encode(["b", "c"]) == b"b\nc\r\n"
    assert file.encode(["new", "a", "b", "c", "d"]) == b"new\r\na\r\nb\nc\r\nd\n"


@pytest.mark.parametrize(
    ("original", "lines", "result"),
    [
        ("a\r\nb\nc\r\nd\n", ["a", "B", "c", "d"], "a\r\nB\nc\r\nd\n"),
        ("a\nb\r\nc\nd\n", ["A", "B", "c", "d"], "A\nB\r\nc\nd\n"),
        ("a\r\nbanana\nc\r\n", ["a", "new", "bananas", "c"], "a\r\nnew\r\nbananas\nc\r\n"),
        ("a\r\nb\nc", ["a", "b", "C"], "a\r\nb\nC"),
    ],
)
def test_a_line_replaced_one_for_one_keeps_its_own_ending(
    original: str, lines: list[str], result: str
) -> None:
    assert TextFile.from_text(original).join(lines) == result


def test_a_text_keeps_its_byte_order_mark_outside_its_lines() -> None:
    file = TextFile.from_text("\ufeffa\r\nb")
    assert file.lines == ("a", "b")
    assert file.join(["x", "b"]) == "\ufeffx\r\nb"
    assert file.encode(["x"]) == b"\xef\xbb\xbfx"


def test_cr_alone_ends_lines_where_nothing_else_does() -> None:
    file = TextFile.from_text("a\rb\rc\r")
    assert file.lines == ("a", "b", "c")
    assert file.join(["a", "new", "b", "c"]) == "a\rnew\rb\rc\r"
    assert TextFile.from_text("a\rb\n").lines == ("a\rb",)


def test_crlf_file_stays_crlf() -> None:
    file = TextFile.from_bytes(b"a\r\nb")
    assert file.encode(["a", "x", "b"]) == b"a\r\nx\r\nb"
    assert file.encode(["a", "b", "x"]) == b"a\r\nb\r\nx"
    assert file.encode([]) == b""


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6), st.lists(st.booleans(), max_size=6))
def test_edits_of_mixed_files_decode_to_the_edited_lines(
    lines: list[str], endings: list[bool]
) -> None:
    content = "".join("k" + ("\r\n" if is_crlf else "\n") for is_crlf in endings)
    file = TextFile.from_text(content + "tail")
    assert list(TextFile.from_text(file.join(lines)).lines) == lines


def test_a_result_that_the_encoding_cannot_hold() -> None:
    file = TextFile.from_bytes(b"caf\xe9\n")
    assert file.encoding == "latin-1"
    assert file.encode(["th\xe9"]) == b"th\xe9\n"
    with pytest.raises(EncodingLostError, match=r"line 2 .* U\+20AC, .*latin-1"):
        file.encode(["a", "€"])


def test_lone_surrogates_are_refused_with_their_position() -> None:
    with pytest.raises(LoneSurrogateError, match=r"U\+D800 at character 3 \(line 2\)"):
        TextFile.from_text("ab\n\ud800")
    with pytest.raises(LoneSurrogateError, match="the result"):
        TextFile.from_text("ab").encode(["\udfff"])


def test_an_empty_file_takes_a_final_newline() -> None:
    assert TextFile.from_text("").encode(["a"]) == b"a\n"
    assert TextFile.from_text("").encode([]) == b""
