"""The compacted form in which Morph's SDK sends a file of 128 Ki characters or more.

Long fragments stand once, in a table of JSON strings; the code below the table, the skeleton, has
a reference for each of them. All marks carry the same number, which the SDK picks so that the file,
the update and the instruction have no reference with it:

    ⟪MORPH_DEFINITIONS_BEGIN_0⟫
    ⟪M0:0:line⟫="def merge(original: str, update: str) -> str:"
    ⟪MORPH_DEFINITIONS_END_0⟫
    ⟪MORPH_CODE_BEGIN_0⟫
    ⟪M0:0:line⟫
        return ""

A header announces the form, and a paragraph behind the instruction explains it to a model. The SDK
puts fragments in the place of references in what comes back, and drops all up to the last
`CODE_BEGIN`. A whole file without such marks is therefore an answer that it writes as it is.

Whatever looks like the form and is not exactly this is refused: merged as text, it would leave a
wrong file on the caller's disk.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace

from apply_service.apply.errors import FileTooLargeError
from apply_service.http.compat.morph_message import MorphMessage
from apply_service.http.problems import Problem, ProblemError, make_problem

APPLY_CONTEXT_HEADER = "X-Morph-Apply-Context"
_COMPACTED = "extralong"

# A mark at the beginning of the code, or one that has a line to itself.
_MARK_LINE = re.compile(r"\A\s*⟪MORPH_|^⟪MORPH_[A-Z_]+_\d+⟫\r?$", re.MULTILINE)
_TABLE_BEGIN = re.compile(r"⟪MORPH_DEFINITIONS_BEGIN_(?P<number>\d+)⟫\n")
_EXPLANATION = "LARGE-FILE ANCHOR PROTOCOL:\n"
_REMEDY = (
    "turn the compaction off in Morph's SDK (`anchorCompaction: false`), or send the file as it"
    f" is in `<code>`, without the header {APPLY_CONTEXT_HEADER}; send a file that looks like the"
    " compacted form itself to /v1/apply"
)


@dataclass(frozen=True, slots=True)
class Compaction:
    """The marks that an answer to a compacted file must not have."""

    number: str

    @property
    def reference_begin(self) -> str:
        """The text with which every reference begins."""
        return f"⟪M{self.number}:"

    @property
    def code_begin(self) -> str:
        """The mark before the skeleton."""
        return f"⟪MORPH_CODE_BEGIN_{self.number}⟫"

    def check_free(self, text: str, *, name: str) -> None:
        """Raise ProblemError (400) if a text has marks that the SDK would take for its own."""
        for mark in (self.reference_begin, self.code_begin):
            if mark in text:
                raise _unreadable(f"{name} has `{mark}`, a mark of the compacted form, in its text")


def try_expand_message(
    message: MorphMessage, apply_context: str, *, max_file_bytes: int
) -> tuple[MorphMessage, Compaction] | Problem:
    """The message with the whole file, and its compaction; or what is wrong with its form.

    `apply_context` is the value of the header that announces the form. Raises FileTooLargeError
    before a file is written that has more bytes than allowed.
    """
    try:
        return _expand_message(message, apply_context, max_file_bytes=max_file_bytes)
    except ProblemError as error:  # processes hand each other the problem alone
        return error.problem


def _expand_message(
    message: MorphMessage, apply_context: str, *, max_file_bytes: int
) -> tuple[MorphMessage, Compaction]:
    if apply_context != _COMPACTED:
        raise _unreadable(
            f"the header {APPLY_CONTEXT_HEADER} is {apply_context!r}; only {_COMPACTED!r} is known"
        )
    begin = _TABLE_BEGIN.match(message.code)
    if begin is None:
        raise _unreadable(
            f"the header {APPLY_CONTEXT_HEADER} announces a compacted file, but the code does not"
            " begin with its table"
        )
    compaction = Compaction(begin["number"])
    instruction, explanation = _split_instruction(message.instruction)
    if compaction.code_begin not in explanation:
        raise _unreadable("the instruction does not explain the table")
    code = _expand(message.code[begin.end() :], compaction, max_file_bytes=max_file_bytes)
    compaction.check_free(code, name="the file")
    compaction.check_free(message.update, name="the update")
    return replace(message, code=code, instruction=instruction), compaction


def check_not_announced(apply_context: str | None) -> None:
    """Raise ProblemError (400) if a header announces a compacted file where there can be none."""
    if apply_context is not None:
        raise _unreadable(
            f"the header {APPLY_CONTEXT_HEADER} announces a compacted file, but this request"
            " cannot have one"
        )


def check_not_compacted(code: str) -> None:
    """Raise ProblemError (400) if a file has marks where the compacted form has them."""
    found = _MARK_LINE.search(code)
    if found is not None:
        line = code.count("\n", 0, found.start()) + 1
        raise _unreadable(
            f"line {line} of the code is a mark of the compacted form, but the header"
            f" {APPLY_CONTEXT_HEADER} is missing"
        )


def _split_instruction(instruction: str | None) -> tuple[str | None, str]:
    """The caller's own words, and the paragraph behind them that explains the form."""
    words, heading, explanation = (instruction or "").rpartition(_EXPLANATION)
    return words.strip() or None, explanation if heading else ""


def _expand(code: str, compaction: Compaction, *, max_file_bytes: int) -> str:
    """The file: the skeleton behind the table, with fragments in the place of references."""
    table, mark, skeleton = code.partition(
        f"\n⟪MORPH_DEFINITIONS_END_{compaction.number}⟫\n{compaction.code_begin}\n"
    )
    if not mark:
        raise _unreadable("the table has no end, or no code behind it")
    fragments = _read_table(table, compaction)
    references = re.compile(re.escape(compaction.reference_begin) + "[^⟫\n]*⟫?")
    used = Counter(references.findall(skeleton))
    for reference in used:
        if reference not in fragments:
            raise _unreadable(f"the reference `{reference[:80]}` is not in the table")
    missing = next((reference for reference in fragments if reference not in used), None)
    if missing is not None:
        raise _unreadable(
            f"the code does not use `{missing[:80]}` of the table; a part of the code is missing"
        )
    num_bytes = len(skeleton.encode()) + sum(
        (len(fragments[reference].encode()) - len(reference.encode())) * number
        for reference, number in used.items()
    )
    if num_bytes > max_file_bytes:
        raise FileTooLargeError(
            f"the compacted file has {num_bytes} bytes when it is expanded",
            value=num_bytes,
            limit=max_file_bytes,
            remedy="send a smaller file, or raise max_file_bytes",
        )
    return references.sub(lambda reference: fragments[reference[0]], skeleton)


def _read_table(table: str, compaction: Compaction) -> dict[str, str]:
    """The fragments by their references, which are numbered from 0."""
    form = re.compile(rf'({re.escape(compaction.reference_begin)}(\d+):[^⟫]+⟫)=(".*")')
    fragments: dict[str, str] = {}
    for number, line in enumerate(table.split("\n")):
        entry = form.fullmatch(line)
        fragment = None if entry is None else _try_decode(entry[3])
        if entry is None or fragment is None or entry[2] != str(number):
            raise _unreadable(f"definition {number} of the table is broken")
        fragments[entry[1]] = fragment
    return fragments


def _try_decode(text: str) -> str | None:
    """The value of a JSON string."""
    try:
        return str(json.loads(text))
    except json.JSONDecodeError:
        return None


def _unreadable(detail: str) -> ProblemError:
    return ProblemError(
        make_problem(
            400,
            code="unreadable-compaction",
            title="The compacted file cannot be read",
            detail=detail,
            remedy=_REMEDY,
        )
    )
