"""The tagged message: what is code, what is update, and when it is refused to guess."""

from __future__ import annotations

from contextlib import suppress

import pytest

from apply_service.http.compat.morph_message import MorphMessage, parse_morph_message
from apply_service.http.problems import ProblemError

FORM = "<code>a</code>\n<update>b</update>\n"


def parsed(text: str) -> MorphMessage:
    message = parse_morph_message(text)
    assert message is not None
    return message


@pytest.mark.parametrize(
    ("text", "code", "update", "instruction"),
    [
        ("<code>a\n</code>\n<update>b\n</update>", "a\n", "b\n", None),
        ("<code>a\n</code><edit>b\n</edit>", "a\n", "b\n", None),
        ("  <code></code> \r\n\t<update></update>\n", "", "", None),
        ("<instruction>do</instruction><code>a</code><update>b</update>", "a", "b", "do"),
        ("<instructions> do\nit </instructions>\n<code>a</code>\n<edit>b</edit>", "a", "b",
         "do\nit"),
        ("<instruction>put\n<code> in</instruction>\n<code>a</code>\n<update>b</update>", "a", "b",
         "put\n<code> in"),
        ("So:\n<instruction>do</instruction><code>a</code>\n<update>b</update>", "a", "b", "do"),
        ("put <update> into <code>:\n<code>a</code>\n<update>b</update>", "a", "b", None),
        ("Instruction: do it\n<code>a</code>\n<update>b</update>", "a", "b", "do it"),
        ("<code>a</code>\n<update>b</update>\nInstruction: do it\n", "a", "b", "do it"),
        ("<instruction> </instruction>\n<code>a</code>\n<update>b</update>", "a", "b", None),
        ("<code>a</code> <update>b</update> c</update>", "a", "b</update> c", None),
        ("<code>x</code>y</code>\n<update><code>z</code></update>", "x</code>y", "<code>z</code>",
         None),
    ],
)  # fmt: skip
def test_pieces_reach_from_the_first_tag_to_the_last(
    text: str, code: str, update: str, instruction: str | None
) -> None:
    message = parsed(text)
    assert (message.code, message.update) == (code, update)
    assert message.instruction == instruction


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "what does <code>a</code> mean?",
        "<code>a</code>",
        "<code>a</code>\n<update>b",
        "<code>a</code>\n<update>b</edit>",
        "<update>b</update>\n<code>a</code>",
        "<code>a</code> and then <update>b</update>",
    ],
)
def test_what_is_no_edit(text: str) -> None:
    assert parse_morph_message(text) is None


@pytest.mark.parametrize(
    ("code", "update"),
    [("a\n" + FORM, "b\n"), ("a\n", FORM), (FORM + FORM, FORM), (FORM * 5, "b\n")],
)
def test_a_form_within_the_form_is_left_whole(code: str, update: str) -> None:
    message = parsed(f"<code>{code}</code>\n<update>{update}</update>")
    assert (message.code, message.update) == (code, update)


@pytest.mark.parametrize(
    ("code", "update"),
    [
        ("a</code>\n<update>\n", "b"),
        ("a", "b</code>\n<update>"),
        ("a</code>\n", FORM),
        (FORM * 8, "b\n"),
    ],
)
def test_what_can_be_cut_in_two_ways_is_refused(code: str, update: str) -> None:
    with pytest.raises(ProblemError, match="the border between them is unclear") as caught:
        parse_morph_message(f"<code>{code}</code>\n<update>{update}</update>")
    assert caught.value.problem.status == 400
    assert "/v1/code/apply" in (caught.value.problem.remedy or "")


@pytest.mark.parametrize(
    ("text", "code", "update"),
    [
        # Both tags on lines of their own: the file is what stands between these lines.
        ("<code>\na\n\n</code>\n<edit>\nb\n\n</edit>", "a\n", "b\n"),
        ("<code>\r\na\r\n\r\n</code>\r\n<edit>\r\nb\r\n</edit>", "a\r\n", "b\r\n"),
        # The only newline at the end may be the file's own.
        ("<code>\na\n</code>\n<edit>\nb\n</edit>", "a\n", "b\n"),
        ("<code>\n</code>\n<update>\nb\n</update>", "", "b\n"),
        # A file that begins with an empty line.
        ("<code>\na\n</code>\n<update>b\n</update>", "\na\n", "b\n"),
    ],
)
def test_lines_of_the_tags_are_not_of_the_file(text: str, code: str, update: str) -> None:
    message = parsed(text)
    assert (message.code, message.update) == (code, update)


def test_an_answer_is_enclosed_where_that_is_asked_for() -> None:
    asking = parsed("Answer in <updated-code>.\n<code>a</code>\n<update>b</update>")
    assert asking.enclose("c\n") == "<updated-code>c\n</updated-code>"
    quiet = parsed("<code><updated-code></code>\n<update>b</update>")
    assert quiet.enclose("c\n") == "c\n"


@pytest.mark.parametrize(
    "piece", ["</code>\n<update>", "<code>", "</instruction>", "<instruction>", "\n \n<code>", " "]
)
@pytest.mark.timeout(30)
def test_hostile_messages_cost_no_more_than_their_length(piece: str) -> None:
    """A quadratic search would need minutes for these."""
    text = piece * (2_000_000 // len(piece))
    for message in (text, f"<code>{text}</code>\n<update>{text}</update>"):
        with suppress(ProblemError):
            parse_morph_message(message)


def test_words_of_the_instruction_are_no_wish_for_tags() -> None:
    words = "<instruction>explain <updated-code></instruction>"
    assert not parsed(f"{words}{FORM}").is_enclosed
    assert parsed(f"{words}{FORM}Answer in <updated-code> tags.").is_enclosed
