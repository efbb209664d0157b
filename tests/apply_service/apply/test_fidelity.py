"""Whatever the model writes, every byte outside the regions comes back as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle_service import OracleService
from pipeline_session import (
    MAX_FILE_BYTES,
    make_edit,
    make_plan,
    merge_of,
    outcome_of,
    run_edit,
    session,
    teach,
    tries_of,
)

from apply_service.apply.outcome import Outcome
from apply_service.edit.text.text_file import BinaryFileError

NUM_FILLERS = 60
# Nothing of this is a line ending but "\n"; a CR counts only before it.
ODD_LINES = (
    "",
    "\t",
    "\tindented = 1",
    "    \t mixed = 2",
    "form\x0cfeed = 3",
    "\x0c",
    "vertical\x0btab",
    "next\x85line",
    "separator\u2028inside\u2029too",
    "lone\rcarriage\rreturn",
    "\ufeffinside",
    "snow \u2603 and \U0001f600",
    "trailing   ",
    "\x1b[31m\x7f",
)
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1")
MARKS = {"utf-8-sig": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
UPDATE = (
    "# ...\nfirst_anchor = 1\nadded = 1\nfirst_end = 1\n# ...\n"
    "second_anchor = 2\nadded = 2\nsecond_end = 2\n# ...\n"
)
FIRST, SECOND = ("first_anchor = 1", "first_end = 1"), ("second_anchor = 2", "second_end = 2")


@dataclass(frozen=True)
class RawFile:
    """A file as bytes, line by line, each with its own line ending."""

    mark: bytes
    lines: tuple[bytes, ...]

    @property
    def content(self) -> bytes:
        return self.mark + b"".join(self.lines)


@st.composite
def raw_files(draw: st.DrawFn) -> RawFile:
    """Two places to edit, far apart, between lines of every odd kind."""
    encoding = draw(st.sampled_from(ENCODINGS))
    codec = encoding.removesuffix("-sig")
    fits = [line for line in ODD_LINES if encoding != "latin-1" or _is_latin(line)]
    long_line = "long " + "x" * draw(st.integers(2000, 30_000))
    filler = st.sampled_from([*fits, long_line])
    texts: list[str] = []
    for block, anchors in enumerate((FIRST, SECOND, ())):
        texts += [f"value_{block}_{number} = {number}" for number in range(NUM_FILLERS)]
        texts += draw(st.lists(filler, max_size=6))
        texts += [f"other_{block}_{number} = {number}" for number in range(NUM_FILLERS)]
        texts += anchors
    if encoding == "latin-1":
        texts[0] = "caf\xe9 = 0"
    ending = draw(st.sampled_from(("\n", "\r\n", "mixed")))
    choose = st.sampled_from(("\n", "\r\n"))
    ends = [draw(choose) if ending == "mixed" else ending for _ in texts]
    if draw(st.booleans()):
        ends[-1] = ""
    lines = tuple((text + end).encode(codec) for text, end in zip(texts, ends, strict=True))
    return RawFile(MARKS.get(encoding, b""), lines)


def _is_latin(line: str) -> bool:
    return all(ord(character) < 256 for character in line)


def answers() -> st.SearchStrategy[list[str]]:
    """What a model may write for a region."""
    return st.lists(st.sampled_from(("x = 1", "", "\ty", "# ...", "first_end = 1")), max_size=8)


def make_oracle(model_dir: Path) -> OracleService:
    return OracleService(
        model_dir, max_position=300_000, num_blocks=20_000, max_file_bytes=MAX_FILE_BYTES
    )


def check_outside(file: RawFile, outcome: Outcome) -> None:
    """The bytes before, between and after the regions stand in the result, in their order."""
    content = outcome.file.encode(outcome.lines)
    lines, kept_from = file.lines, 0
    pieces: list[bytes] = []
    for region in outcome.regions:
        pieces.append(b"".join(lines[kept_from : region.start]))
        kept_from = region.end
    tail = b"".join(lines[kept_from:])
    assert content.startswith(file.mark + pieces[0])
    assert content.endswith(tail)
    place = len(file.mark + pieces[0])
    for piece in pieces[1:]:
        found = content.index(piece, place)
        place = found + len(piece)
    assert place <= len(content) - len(tail)


@given(file=raw_files(), written=st.lists(answers(), min_size=2, max_size=2))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_bytes_outside_the_regions_are_untouched(
    tiny_model_dir: Path, file: RawFile, written: Sequence[Sequence[str]]
) -> None:
    oracle = make_oracle(tiny_model_dir)
    edit = make_edit(file.content, UPDATE, language=None, has_fallback=False, path="a.txt")
    plan = make_plan(edit)
    regions = tries_of(plan, oracle)[0].regions
    assert len(regions) == 2
    for region, lines in zip(regions, written, strict=True):
        oracle.will_rewrite(region.start, region.end, lines)
    outcome = outcome_of(run_edit(oracle, edit))
    assert outcome.regions == regions
    check_outside(file, outcome)


@given(file=raw_files())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_right_answer_changes_two_lines_and_no_other_byte(
    tiny_model_dir: Path, file: RawFile
) -> None:
    oracle = make_oracle(tiny_model_dir)
    edit = make_edit(file.content, UPDATE, language=None, path="a.txt")
    plan = make_plan(edit)
    teach(oracle, plan, tries_of(plan, oracle)[0])
    outcome = outcome_of(run_edit(oracle, edit))
    assert list(outcome.lines) == merge_of(plan)
    result = outcome.file.encode(outcome.lines)
    assert len(result) > len(file.content)
    check_outside(file, outcome)
    # Taking the added lines out again, whatever ending they were given, is the original.
    codec = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(file.mark, "latin-1")
    for number in (1, 2):
        for end in ("\r\n", "\n"):
            result = result.replace(f"added = {number}{end}".encode(codec), b"", 1)
    assert result == file.content


@given(text=st.text(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_where_nothing_changes(tiny_model_dir: Path, text: str) -> None:
    assume(text.strip() and "\0" not in text)
    content = text.encode("utf-8", "ignore")
    assume(content)
    edit = make_edit(content, "# ... existing code ...\n")
    outcome = outcome_of(run_edit(make_oracle(tiny_model_dir), edit))
    assert outcome.file.encode(outcome.lines) == content
    assert (outcome.source, outcome.verdict.status) == ("original", "unchanged")


def test_a_nul_is_refused_before_anything_runs(tiny_model_dir: Path) -> None:
    with pytest.raises(BinaryFileError, match="NUL at byte 6"):
        make_edit(b"a = 1\n\0\n", UPDATE)


def test_one_engine_serves_files_of_all_encodings(tiny_model_dir: Path) -> None:
    """Files of several encodings one after another share nothing but the engine."""
    oracle = make_oracle(tiny_model_dir)
    text = "first_anchor = 1\r\nfirst_end = 1\r\ncaf\xe9 = 1"
    update = "first_anchor = 1\nadded = 1\nfirst_end = 1\n# ...\n"
    expected = text.replace("first_end", "added = 1\r\nfirst_end")
    oracle.will_answer(expected.split("\r\n"))

    async def scenario() -> None:
        async with session(oracle) as here:
            for encoding in ENCODINGS:
                mark, codec = MARKS.get(encoding, b""), encoding.removesuffix("-sig")
                edit = make_edit(mark + text.encode(codec), update)
                outcome = outcome_of(await here.collect(edit))
                assert outcome.file.encode(outcome.lines) == mark + expected.encode(codec)
                assert outcome.verdict.status == "applied"

    asyncio.run(scenario())
