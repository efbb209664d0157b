"""The compacted form of Morph's SDK: its own requests, and everything that only looks like them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from morph_records import MorphRecord, morph_records
from oracle_service import OracleService
from recorded_requests import events_of, streamed_text
from server_thread import serving

from apply_service.apply.errors import FileTooLargeError
from apply_service.http.compat.chat_reading import chat_conversation_of
from apply_service.http.compat.compacted_code import APPLY_CONTEXT_HEADER, try_expand_message
from apply_service.http.compat.edits import ChatEdit, chat_edit_of, morph_message_of
from apply_service.http.compat.schemas import ChatBody, ChatMessageBody
from apply_service.http.problems import Problem, ProblemError

RECORDS = morph_records()
RECORD = RECORDS[0]
MAX_BYTES = 1 << 20
NEWLINE = re.compile(r"(\r\n|\n|\r)")


@pytest.fixture(scope="module")
def client(tiny_model_dir: Path) -> Iterator[httpx.Client]:
    """A server that merges without a model: what is tested is how it is asked."""
    oracle = OracleService(tiny_model_dir)
    oracle.service.default_use_model = "never"
    with serving(oracle.service) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def edit_of(content: str, *, context: str | None = "extralong") -> ChatEdit:
    body = ChatBody(messages=[ChatMessageBody(role="user", content=content)])
    conversation = chat_conversation_of(body)
    message = morph_message_of(conversation, apply_context=context)
    assert message is not None
    if context is None:
        return chat_edit_of(conversation, message)
    expanded = try_expand_message(message, context, max_file_bytes=MAX_BYTES)
    if isinstance(expanded, Problem):
        raise ProblemError(expanded)
    return chat_edit_of(conversation, *expanded)


def compacted(text: str) -> str:
    """A file in the compacted form: a reference for each long line that has been seen once."""
    table: dict[str, str] = {}
    pieces = NEWLINE.split(text)
    for place, piece in enumerate(pieces):
        if len(piece) >= 24:
            pieces[place] = table.setdefault(piece, f"⟪M7:{len(table)}:line⟫")
    return "\n".join(
        [
            "⟪MORPH_DEFINITIONS_BEGIN_7⟫",
            *(f"{reference}={json.dumps(line)}" for line, reference in table.items()),
            "⟪MORPH_DEFINITIONS_END_7⟫",
            "⟪MORPH_CODE_BEGIN_7⟫",
            "".join(pieces),
        ]
    )


def message_of(code: str, update: str = "a new line, which is all there is") -> str:
    return (
        "<instruction>do it\n\nLARGE-FILE ANCHOR PROTOCOL:\nbehind ⟪MORPH_CODE_BEGIN_7⟫"
        f"</instruction>\n<code>{code}</code>\n<update>{update}</update>"
    )


@pytest.mark.parametrize("record", RECORDS, ids=[record.name for record in RECORDS])
def test_what_the_sdk_sends_gets_its_merge(client: httpx.Client, record: MorphRecord) -> None:
    edit = edit_of(record.content)
    assert edit.edit.original.decode() == record.original
    assert edit.edit.update == record.update
    assert edit.edit.instruction == (record.instruction or None)
    answer = client.post("/v1/chat/completions", json=record.body, headers=record.headers)
    assert answer.status_code == 200, answer.text
    assert streamed_text(events_of(answer.text)) == record.expected


LINES = st.sampled_from(
    [
        "",
        "short",
        "a line that is long enough to get a reference",
        'another "long" line \\ with \t what JSON escapes \\u0041',
        "🦀 and \u2028 and \x85 and \x0c in a line that is quite long",
        "⟪M8:0:line⟫ is a mark of another number, ⟪MORPH_CODE_BEGIN_8⟫",
        "⟪M8:0:line⟫",
        "</code> and <code> and some more of these, <update>",
    ]
)


@given(st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))), LINES)
def test_any_file_comes_out_as_it_went_in(lines: list[tuple[str, str]], last: str) -> None:
    text = "a long line, so that there is something in the table\n"
    text += "".join(line + end for line, end in lines) + last
    assert edit_of(message_of(compacted(text))).edit.original.decode() == text


LONG = "a line that is long enough to get a reference"
CODE = compacted(f"{LONG}\nshort\n{LONG} too\n")
BROKEN: dict[str, Callable[[str], str]] = {
    "the file is not compacted": lambda code: f"{LONG}\n",
    "another kind of table": lambda code: code.replace("DEFINITIONS", "FRAGMENTS"),
    "another number at the end": lambda code: code.replace("END_7", "END_8"),
    "another number of the code": lambda code: code.replace("CODE_BEGIN_7", "CODE_BEGIN_8"),
    "no end of the table": lambda code: code.replace("⟪MORPH_DEFINITIONS_END_7⟫\n", ""),
    "no code": lambda code: code.partition("⟪MORPH_CODE_BEGIN_7⟫")[0],
    "text before the table": lambda code: f"text\n{code}",
    "an empty table": lambda code: re.sub("⟪M7:.:line⟫=.*\n", "", code),
    "an entry is missing": lambda code: re.sub("⟪M7:0:line⟫=.*\n", "", code),
    "an entry twice": lambda code: re.sub("(⟪M7:0:line⟫=.*\n)", r"\1\1", code),
    "an entry without a value": lambda code: re.sub('(⟪M7:0:line⟫=)".*"', r"\1", code),
    "a value that is no JSON": lambda code: code.replace('ence"', 'ence\\"'),
    "a value that is no string": lambda code: re.sub('(⟪M7:0:line⟫=)".*"', r"\g<1>1", code),
    "two values": lambda code: code.replace('ence"', 'ence" "more"'),
    "an unknown reference": lambda code: code.replace("short", "⟪M7:9:line⟫"),
    "a reference of another kind": lambda code: code.replace("short", "⟪M7:0:text⟫"),
    "a reference that does not end": lambda code: code.replace("short", "⟪M7:0:line"),
    "a reference that is cut off": lambda code: code[: code.rindex("line⟫")],
    "the end is cut off": lambda code: code[: code.rindex("⟪M7:1")],
    "a reference in a fragment": lambda code: code.replace('ence"', 'ence \\u27eaM7:0:line⟫"'),
    "the mark of the code in a fragment": lambda code: code.replace(
        'ence"', 'ence \\u27eaMORPH_CODE_BEGIN_7⟫"'
    ),
    "the mark of the code in the code": lambda code: f"{code}⟪MORPH_CODE_BEGIN_7⟫\n",
    "a second table": lambda code: f"{code}{code}",
}  # fmt: skip


def refusal_of(content: str, *, context: str | None = "extralong") -> str:
    with pytest.raises(ProblemError) as caught:
        edit_of(content, context=context)
    problem = caught.value.problem
    assert (problem.status, problem.code) == (400, "unreadable-compaction")
    assert problem.remedy is not None
    assert "anchorCompaction" in problem.remedy
    return problem.detail


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_form_is_refused(change: Callable[[str], str]) -> None:
    assert edit_of(message_of(CODE)).edit.original.lines[0] == LONG
    broken = change(CODE)
    assert broken != CODE
    refusal_of(message_of(broken))


@pytest.mark.parametrize("mark", ["⟪M7:0:line⟫", "⟪M7:", "⟪MORPH_CODE_BEGIN_7⟫"])
def test_marks_in_the_update_are_refused(mark: str) -> None:
    assert "the update has" in refusal_of(message_of(CODE, f"a line\n{mark}\n"))


def test_header_and_form_come_together() -> None:
    plain = f"<code>{LONG}\n</code>\n<update>{LONG}\nmore\n</update>"
    assert edit_of(plain, context=None).edit.original.lines == (LONG,)
    assert APPLY_CONTEXT_HEADER in refusal_of(plain)
    assert APPLY_CONTEXT_HEADER in refusal_of(message_of(CODE), context=None)
    assert "'huge'" in refusal_of(message_of(CODE), context="huge")
    assert "instruction" in refusal_of(message_of(CODE).replace("PROTOCOL", "RULES"))
    chat = ChatBody(messages=[ChatMessageBody(role="user", content="hello")])
    with pytest.raises(ProblemError):
        morph_message_of(chat_conversation_of(chat), apply_context="extralong")


@pytest.mark.parametrize(
    ("code", "is_refused"),
    [
        ("⟪MORPH_DEFINITIONS_BEGIN_7⟫ and more\n", True),
        ("\n⟪MORPH_NEW_TABLE⟫\n", True),
        ("a\n⟪MORPH_CODE_BEGIN_0⟫\nb\n", True),
        ("a\r\n⟪MORPH_DEFINITIONS_END_12⟫\r\nb\r\n", True),
        ('MARK = "⟪MORPH_CODE_BEGIN_0⟫"\n⟪M0:12:line⟫\n', False),
    ],
)
def test_a_file_with_marks_of_its_own(code: str, is_refused: bool) -> None:
    content = f"<code>{code}</code>\n<update>{code}b\n</update>"
    if is_refused:
        refusal_of(content, context=None)
    else:
        assert edit_of(content, context=None).edit.original.decode() == code


def test_a_compacted_message_that_can_be_cut_twice_is_refused() -> None:
    """Its tags cannot be counted, because equal lines stand in it once."""
    long = "<code> opens twice, in two equal lines"
    text = f"{long}\n{long}\n</code>\n</code>\n<update>\n{LONG}\n"
    with pytest.raises(ProblemError) as caught:
        edit_of(message_of(compacted(text)))
    assert caught.value.problem.code == "ambiguous-message"


def test_a_file_is_measured_before_it_is_expanded() -> None:
    long = "x" * 50_000
    for num_references in (20, 20_000):
        text = compacted(f"{long}\n" * num_references)
        if num_references * (len(long) + 1) <= MAX_BYTES:
            assert len(edit_of(message_of(text)).edit.original.lines) == num_references
            continue
        with pytest.raises(FileTooLargeError, match="raise max_file_bytes") as caught:
            edit_of(message_of(text))
        assert (caught.value.value, caught.value.limit) == (20_000 * 50_001, MAX_BYTES)


def test_an_answer_with_marks_is_never_sent() -> None:
    edit = edit_of(message_of(CODE))
    assert edit.answer(f"{LONG}\n") == f"{LONG}\n"
    with pytest.raises(ProblemError):
        edit.answer(f"{LONG}\n⟪MORPH_CODE_BEGIN_7⟫\n")


def test_the_form_is_read_in_messages_alone(client: httpx.Client) -> None:
    plain = {"initial_code": "a\nb\n", "edit_snippet": "a\nc\nb\n"}
    announced = client.post("/v1/code/apply", json=plain, headers=RECORD.headers)
    sent: dict[str, Any] = plain | {"initial_code": CODE}
    compact = client.post("/v1/code/apply", json=sent)
    for answer in (announced, compact):
        assert answer.status_code == 400, answer.text
        assert answer.json()["code"] == "unreadable_compaction"
    assert client.post("/v1/code/apply", json=plain).json()["merged_code"] == "a\nc\nb\n"


def test_a_refusal_says_what_to_change_in_the_sdk(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json=RECORD.body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["code"] == "unreadable_compaction"
    assert "anchorCompaction: false" in error["message"]
