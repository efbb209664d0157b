"""An edit inside a chat message: `<instruction>`, `<code>` and `<update>`, as Morph takes it.

Nothing in it is escaped, so a file may hold the same tags. A piece therefore reaches from its first
opening tag to its last closing tag, and opening tags count only at the beginning of a line or right
behind a piece. Where even that leaves a choice, the message is refused: a file cut at the wrong
place would be merged without anybody noticing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from apply_service.http.problems import ProblemError, make_problem

EXAMPLE = """\
<instruction>what the edit does</instruction>
<code>the whole file as it is now</code>
<update>the changed lines, with // ... existing code ... for all others</update>"""

_CODE_LINE = re.compile(r"^[ \t]*<code>", re.MULTILINE)
_CODE_BEHIND_INSTRUCTION = re.compile(r"</instructions?>\s*<code>")
_BORDER = re.compile(r"</code>\s*<(?P<tag>update|edit)>")
_INSTRUCTION_LINE = re.compile(r"^Instructions?:[ \t]*(?P<text>\S.*)$", re.MULTILINE)
_FRAME = re.compile(r"\r?\n")
_ANSWER_TAG = "<updated-code>"
_INSTRUCTION_TAGS = ("instruction", "instructions")
_TAGS = ("code", "update", "edit")
# More borders than this are no accident, and each costs a look at the whole message.
_MAX_BORDERS = 8


@dataclass(frozen=True, slots=True)
class MorphMessage:
    """The pieces of a message. `is_enclosed`: it asks for the answer in `<updated-code>` tags."""

    code: str
    update: str
    instruction: str | None
    is_enclosed: bool

    def enclose(self, merged: str) -> str:
        """Put the answer in `<updated-code>` tags if the message asks for them."""
        return f"{_ANSWER_TAG}{merged}</updated-code>" if self.is_enclosed else merged


@dataclass(frozen=True, slots=True)
class _Split:
    """Where a message is cut: code, then update, then the rest."""

    code_start: int
    code_end: int
    update_start: int
    update_end: int
    tag: str


def parse_morph_message(
    text: str, *, field: str = "messages", is_compacted: bool = False
) -> MorphMessage | None:
    """The edit in a message, None if there is none. Raises ProblemError if it can be cut twice.

    `field` is the name of the messages in errors.
    Tags of a compacted file are not counted: equal fragments stand in it once.
    """
    start = _find_code(text)
    if start is None:
        return None
    splits = _splits(text, start.end())
    if len(splits) > (1 if is_compacted else _MAX_BORDERS):
        raise _ambiguous(field)
    if len(splits) > 1:
        splits = [split for split in splits if _is_balanced(text, split)]
        if len(splits) != 1:
            raise _ambiguous(field)
    if not splits:
        return None
    (split,) = splits
    code = text[split.code_start : split.code_end]
    update = text[split.update_start : split.update_end]
    before = text[: split.code_start - len("<code>")]
    behind = text[split.update_end + len(f"</{split.tag}>") :]
    instruction, around = _take_instruction(before)
    if _is_framed(code) and _is_framed(update):
        code, update = _without_frame(code), _without_frame(update)
    return MorphMessage(
        code,
        update,
        instruction=instruction or _instruction_line(around, behind),
        is_enclosed=_ANSWER_TAG in around or _ANSWER_TAG in behind,
    )


def _find_code(text: str) -> re.Match[str] | None:
    """The opening tag of the code; an instruction in front of it may hold one itself."""
    ways = [_CODE_LINE, _CODE_BEHIND_INSTRUCTION]
    if text.lstrip().startswith(tuple(f"<{tag}>" for tag in _INSTRUCTION_TAGS)):
        ways.reverse()
    return ways[0].search(text) or ways[1].search(text)


def _splits(text: str, code_start: int) -> list[_Split]:
    """The ways to cut the message; of more than are looked at, one too many."""
    ends = {tag: text.rfind(f"</{tag}>") for tag in ("update", "edit")}
    splits = (
        _Split(code_start, border.start(), border.end(), ends[border["tag"]], border["tag"])
        for border in _BORDER.finditer(text, code_start)
        if ends[border["tag"]] >= border.end()
    )
    return list(islice(splits, _MAX_BORDERS + 1))


def _is_balanced(text: str, split: _Split) -> bool:
    """True if code and update each open as many tags as they close."""
    spans = ((split.code_start, split.code_end), (split.update_start, split.update_end))
    return all(
        text.count(f"<{tag}>", *span) == text.count(f"</{tag}>", *span)
        for tag in _TAGS
        for span in spans
    )


def _is_framed(piece: str) -> bool:
    """True if the tags seem to stand on lines of their own."""
    return _FRAME.match(piece) is not None and piece.endswith("\n")


def _without_frame(piece: str) -> str:
    """The piece between its tags' own lines; its last newline is kept where it has only one."""
    piece = _FRAME.sub("", piece, count=1)
    for frame in ("\r\n", "\n"):
        if piece.endswith(frame * 2):
            return piece.removesuffix(frame)
    return piece


def _take_instruction(text: str) -> tuple[str | None, str]:
    """The tagged instruction, and the words around it."""
    for tag in _INSTRUCTION_TAGS:
        start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
        if 0 <= start < end:
            instruction = text[start + len(f"<{tag}>") : end].strip()
            return instruction or None, text[:start] + text[end + len(f"</{tag}>") :]
    return None, text


def _instruction_line(before: str, behind: str) -> str | None:
    """What stands behind `Instruction:` in the words around the tags."""
    found = _INSTRUCTION_LINE.search(before) or _INSTRUCTION_LINE.search(behind)
    return None if found is None else found["text"].strip()


def _ambiguous(field: str) -> ProblemError:
    return ProblemError(
        make_problem(
            400,
            code="ambiguous-message",
            title="The message can be cut in several ways",
            detail="the file or the update contains `</code>` before `<update>`, so the border"
            " between them is unclear",
            field=field,
            remedy="send file and update as fields of their own, to /v1/code/apply or /v1/apply",
        )
    )
