"""The proposer: where drafts begin, how they are stitched, what a divergence does and costs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.engine.line_counter import count_lines

from lookup.edit_proposer import EditProposer, Respacing
from lookup.proposer import EMPTY_DRAFT
from lookup.reference import Reference

END = (998, 999)
ORIGINAL = list(range(100, 300))
SPACED_TOKENS = st.integers(0, 5)


def write(proposer: EditProposer, answer: Sequence[int], k: int = 64) -> list[int]:
    """Verify drafts against `answer` as an engine does; the number of tokens of each pass."""
    passes, done = [], 0
    while done < len(answer):
        draft = proposer.propose(k)
        agreed = 0
        for token, expected in zip(draft.token_ids, answer[done:], strict=False):
            if token != expected:
                break
            agreed += 1
        written = answer[done : done + agreed + 1]
        proposer.commit(written)
        passes.append(len(written))
        done += len(written)
    return passes


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the references that were searched, in order."""
    names: list[str] = []
    search = Reference.anchors

    def counted(self: Reference, output: Sequence[int]) -> object:
        names.append(self.name)
        return search(self, output)

    monkeypatch.setattr(Reference, "anchors", counted)
    return names


def test_an_unchanged_file_is_drafted_from_its_first_token_to_its_end(
    searches: list[str],
) -> None:
    proposer = EditProposer(original=ORIGINAL, snippet_segments=(), end_token_ids=END)
    draft = proposer.propose(64)
    assert draft.token_ids == tuple(ORIGINAL[:64])
    assert (draft.reference, draft.match_length) == ("original", 0)
    assert write(proposer, [*ORIGINAL, *END]) == [65, 65, 65, 7]
    assert proposer.propose(64) == EMPTY_DRAFT
    assert searches == []


def test_the_merge_is_trusted_first() -> None:
    merge = [1, 2, 3, *ORIGINAL]
    proposer = EditProposer(
        original=ORIGINAL, snippet_segments=[[1, 2, 3]], merge=merge, end_token_ids=END
    )
    assert proposer.propose(4).reference == "merge"
    assert write(proposer, [*merge, *END]) == [65, 65, 65, 10]


def test_a_stitched_draft_tells_what_each_token_was_copied_from() -> None:
    segment = [*ORIGINAL[50:53], 1, 2, 3, *ORIGINAL[53:56]]
    proposer = EditProposer(original=ORIGINAL, snippet_segments=[segment], end_token_ids=END)
    draft = proposer.propose(100)
    places = {token: draft.source_of(offset) for offset, token in enumerate(draft.token_ids)}
    assert [places[token] for token in (100, 1, 3, 160)] == [
        "original", "snippet", "snippet", "original",
    ]  # fmt: skip
    assert draft.sources[0] == (0, draft.reference)
    assert draft.cut(5).source_of(4) == "original"


def test_where_the_merge_was_wrong_the_rival_goes_on() -> None:
    merge, rival = [1, 2, 3, 20, 21, 4, 5, 6], [1, 2, 3, 4, 30, 31, 5, 6]
    proposer = EditProposer(
        original=[1, 2, 3, 4, 5, 6],
        snippet_segments=(),
        merge=merge,
        rival=rival,
        end_token_ids=END,
    )
    assert proposer.propose(9).reference == "merge"
    proposer.commit([1, 2, 3, 4, 30])
    draft = proposer.propose(9)
    assert (draft.reference, list(draft.token_ids)) == ("rival", [31, 5, 6, *END])


def test_behind_a_part_that_the_model_left_as_it_was_the_merge_is_followed_again() -> None:
    merge = [*ORIGINAL[:20], 1, 2, 3, *ORIGINAL[23:120], 4, 5, 6, *ORIGINAL[123:]]
    proposer = EditProposer(original=ORIGINAL, snippet_segments=(), merge=merge, end_token_ids=END)
    answer = [*ORIGINAL[:120], *merge[120:], *END]
    proposer.commit(answer[:21])
    assert proposer.propose(64).reference == "original"
    proposer.commit(answer[21:86])
    assert proposer.propose(64).reference == "merge"
    assert write(proposer, answer[86:]) == [65, len(answer) - 86 - 65]


def test_a_marker_that_the_model_leaves_in_is_drafted_to_its_end_and_on() -> None:
    marker, segments = [7, 8, 9, 10], [[1, 2, 3], [4, 5, 6]]
    update = [*segments[0], *marker, *segments[1]]
    proposer = EditProposer(
        original=ORIGINAL,
        snippet_segments=segments,
        merge=[*ORIGINAL[:20], 1, 2, 3, *ORIGINAL[20:90], 4, 5, 6, *ORIGINAL[90:]],
        update=update,
        end_token_ids=END,
    )
    answer = [*ORIGINAL[:20], *update, *END]
    assert write(proposer, answer) == [24, len(answer) - 24]


WHITE_SPACE = frozenset({50, 51, 52})


def indented(depth: int, lines: int) -> list[int]:
    return [token for line in range(lines) for token in (depth, 200 + 2 * line, 201 + 2 * line)]


def test_a_block_that_the_model_indents_otherwise_is_drafted_with_its_indentation() -> None:
    original = [*ORIGINAL[:30], *indented(50, 30)]
    answer = [*ORIGINAL[:30], *indented(51, 30), *END]
    lost = EditProposer(original=original, snippet_segments=(), end_token_ids=END)
    assert write(lost, answer)[:5] == [31, 3, 3, 3, 3]
    proposer = EditProposer(
        original=original, snippet_segments=(), end_token_ids=END, white_space=WHITE_SPACE
    )
    assert write(proposer, answer) == [31, 3, 65, len(answer) - 99]


def test_where_the_indentation_is_as_expected_again_it_is_drafted_so_again() -> None:
    original = [*ORIGINAL[:30], *indented(50, 30)]
    answer = [*ORIGINAL[:30], *indented(51, 15), *indented(50, 30)[45:], *END]
    proposer = EditProposer(
        original=original, snippet_segments=(), end_token_ids=END, white_space=WHITE_SPACE
    )
    assert write(proposer, answer) == [31, 3, 42, len(answer) - 76]


def test_an_answer_that_repeats_itself_is_drafted_round_and_round() -> None:
    answer = [*ORIGINAL[:30], *[1, 2, 3, 4, 5] * 40]
    proposer = EditProposer(original=ORIGINAL, snippet_segments=(), end_token_ids=END)
    assert write(proposer, answer)[:11] == [31, 1, 1, 1, 1, 1, 1, 1, 65, 65, 62]
    assert proposer.propose(7).token_ids == (1, 2, 3, 4, 5, 1, 2)


def test_a_prediction_serves_where_there_is_no_original() -> None:
    proposer = EditProposer(original=(), snippet_segments=(), prediction=[5, 6], end_token_ids=END)
    assert proposer.propose(9).token_ids == (5, 6, *END)
    assert proposer.propose(9).reference == "prediction"


def test_a_new_file_is_drafted_from_its_snippet() -> None:
    proposer = EditProposer(original=(), snippet_segments=[[5, 6, 7]], end_token_ids=END)
    assert proposer.propose(9).token_ids == (5, 6, 7, *END)


def test_where_two_ways_are_as_likely_the_second_is_a_branch() -> None:
    original = [1, 2, 3, 4, 5, 6, 1, 2, 3, 7, 8, 9]
    proposer = EditProposer(original=original, snippet_segments=[], end_token_ids=[99])
    proposer.commit([50, 1, 2, 3])
    draft = proposer.propose(16)
    (branch,) = draft.branches
    assert {draft.token_ids[0], branch.token_ids[0]} == {4, 7}
    assert (branch.fork, branch.token_ids[:2] in ((4, 5), (7, 8))) == (0, True)
    assert draft.num_nodes <= 16
    proposer.commit([branch.token_ids[0]])
    after = proposer.propose(16)
    assert after.token_ids[:2] == branch.token_ids[1:3]
    assert not after.branches, "the way is found"


def test_a_branch_ends_where_its_segment_does() -> None:
    proposer = EditProposer(
        original=[1, 2, 3, 4, 5, 6], snippet_segments=[[1, 2, 3, 7, 8], [60]], end_token_ids=END
    )
    proposer.commit([50, 1, 2, 3])
    draft = proposer.propose(40)
    (branch,) = draft.branches
    assert {draft.token_ids[:2], branch.token_ids[:2]} == {(4, 5), (7, 8)}
    assert -1 not in (*draft.token_ids, *branch.token_ids)


def test_nothing_to_copy_gives_the_empty_draft() -> None:
    proposer = EditProposer(original=(), snippet_segments=())
    assert proposer.propose(64) is EMPTY_DRAFT
    proposer.commit([1, 2, 3])
    assert proposer.propose(64) is EMPTY_DRAFT
    assert proposer.propose(0) is EMPTY_DRAFT


def test_a_draft_crosses_into_the_snippet_and_out_of_it(searches: list[str]) -> None:
    segments = [[*ORIGINAL[20:25], 1, 2, 3, *ORIGINAL[25:28]], [*ORIGINAL[40:45], *ORIGINAL[60:65]]]
    answer = [*ORIGINAL[:25], 1, 2, 3, *ORIGINAL[25:45], *ORIGINAL[60:], *END]
    proposer = EditProposer(original=ORIGINAL, snippet_segments=segments, end_token_ids=END)
    assert proposer.propose(64).token_ids == tuple(answer[:64])
    assert proposer.propose(64).reference == "original"
    assert write(proposer, answer) == [65, 65, len(answer) - 130]
    assert searches == []


def test_an_unannounced_insertion_holds_the_original_in_place() -> None:
    segment = list(range(1, 11))
    answer = [*ORIGINAL[:100], *segment, *ORIGINAL[100:], *END]
    proposer = EditProposer(original=ORIGINAL, snippet_segments=[segment], end_token_ids=END)
    proposer.commit(answer[:101])
    draft = proposer.propose(64)
    assert draft.reference == "snippet"
    assert draft.token_ids == tuple(answer[101:165])


def test_an_unannounced_deletion_jumps_forward_and_a_moved_block_back() -> None:
    moved = [*ORIGINAL[:50], *ORIGINAL[150:180], *ORIGINAL[50:150], *ORIGINAL[180:], *END]
    proposer = EditProposer(original=ORIGINAL, snippet_segments=(), end_token_ids=END)
    proposer.commit(moved[:51])
    assert proposer.propose(29).token_ids == tuple(ORIGINAL[151:180])
    proposer.commit(moved[51:81])
    assert proposer.propose(64).token_ids == tuple(ORIGINAL[51:115])
    assert len(write(proposer, moved[81:])) <= 5


def test_a_far_block_behind_the_cursor_is_found() -> None:
    original = list(range(5000))
    proposer = EditProposer(original=original, snippet_segments=(), end_token_ids=END)
    proposer.commit([*range(3000), 17])
    assert proposer.propose(4).token_ids == (18, 19, 20, 21)
    cursors_only = EditProposer(
        original=original, snippet_segments=(), end_token_ids=END, max_far_places=0
    )
    cursors_only.commit([*range(3000), 17])
    assert cursors_only.propose(4).token_ids == (3001, 3002, 3003, 3004)


def test_the_output_repeats_only_after_enough_tokens() -> None:
    invented = list(range(1, 21))
    proposer = EditProposer(original=(), snippet_segments=())
    proposer.commit([*invented, 50, *invented[:2]])
    assert proposer.propose(3) == EMPTY_DRAFT
    proposer.commit(invented[2:3])
    draft = proposer.propose(3)
    assert (draft.token_ids, draft.reference) == ((4, 5, 6), "output")
    assert draft.match_length == 3


def test_the_reference_named_is_the_one_of_the_first_token() -> None:
    segment = [*ORIGINAL[20:25], 1, 2]
    proposer = EditProposer(original=ORIGINAL, snippet_segments=[segment], end_token_ids=END)
    proposer.commit(ORIGINAL[:25])
    assert proposer.propose(4).reference == "snippet"
    proposer.commit([1, 2])
    assert proposer.propose(4).reference == "original"


TOKENS = st.lists(st.integers(0, 3), max_size=30)


CASES = st.fixed_dictionaries(
    {
        "original": TOKENS,
        "snippet_segments": st.lists(TOKENS, max_size=3),
        "merge": TOKENS,
        "prediction": TOKENS,
        "update": TOKENS,
        "end_token_ids": st.just((9,)),
        "min_output_match": st.integers(2, 8),
    }
)


SPACED_CASES = st.builds(
    lambda case, white_space: {**case, "white_space": white_space},
    CASES,
    st.frozensets(st.integers(0, 3)),
)


@given(case=CASES, pieces=st.lists(TOKENS, max_size=6), k=st.integers(1, 70))
def test_drafts_are_stitched_from_few_copies(
    case: dict[str, list[int]], pieces: list[list[int]], k: int
) -> None:
    proposer = EditProposer(**case)  # type: ignore[arg-type]
    wholes = ("original", "merge", "prediction", "update")
    sources = [[*case[name], 9] for name in wholes if case[name]]
    sources += [[9], *case["snippet_segments"]]
    output: list[int] = []
    for piece in [[], *pieces]:
        proposer.commit(piece)
        output += piece
        draft = proposer.propose(k)
        assert len(draft) <= k
        assert len(draft) == 0 or draft.reference
        repeated = [(output[start:] * k)[:k] for start in range(len(output))]
        num_copies = fewest_copies(draft.token_ids, [*sources, *repeated])
        assert num_copies <= 2 * len(case["snippet_segments"]) + 1
        assert draft.num_nodes <= k
        for branch in draft.branches:
            assert any(is_within(branch.token_ids, source) for source in [*sources, output])


def fewest_copies(token_ids: Sequence[int], sources: Sequence[Sequence[int]]) -> int:
    """Into how many contiguous pieces of `sources` the tokens fall, taking the longest first."""
    num_copies = done = 0
    while done < len(token_ids):
        size = len(token_ids) - done
        while not any(is_within(token_ids[done : done + size], source) for source in sources):
            size -= 1
            assert size, f"token {token_ids[done]} stands in no reference"
        done += size
        num_copies += 1
    return num_copies


def is_within(run: Sequence[int], source: Sequence[int]) -> bool:
    size = len(run)
    return any(list(source[i : i + size]) == list(run) for i in range(len(source) - size + 1))


@given(
    case=SPACED_CASES,
    pieces=st.lists(TOKENS, max_size=6),
    extra=st.lists(st.integers(0, 80), max_size=6),
)
def test_proposing_again_changes_nothing(
    case: dict[str, list[int]], pieces: list[list[int]], extra: list[int]
) -> None:
    quiet, asked = EditProposer(**case), EditProposer(**case)  # type: ignore[arg-type]
    assert list(asked.build())
    for number, piece in enumerate(pieces):
        quiet.propose(1)
        for k in [1, *extra[number:]]:
            asked.propose(k)
        quiet.commit(piece)
        asked.commit(piece)
    assert quiet.propose(64) == asked.propose(64)
    assert asked.propose(64) == asked.propose(64)
    short, long = asked.propose(7), asked.propose(64)
    assert short.token_ids == long.token_ids[: len(short)]
    assert short.num_nodes <= 7


@given(case=SPACED_CASES, pieces=st.lists(TOKENS, max_size=6))
def test_what_was_committed_in_pieces_may_be_taken_in_as_a_whole(
    case: dict[str, list[int]], pieces: list[list[int]]
) -> None:
    in_pieces, whole = EditProposer(**case), EditProposer(**case)  # type: ignore[arg-type]
    for piece in pieces:
        in_pieces.commit(piece)
    whole.commit([token for piece in pieces for token in piece])
    assert in_pieces.propose(64) == whole.propose(64)


@given(case=CASES, answer=TOKENS, cuts=st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_following_in_pieces_is_following_at_once(
    case: dict[str, list[int]], answer: list[int], cuts: list[int]
) -> None:
    at_once, in_pieces = EditProposer(**case), EditProposer(**case)  # type: ignore[arg-type]
    expected = at_once.propose(64).token_ids
    at_once.commit(expected)
    done = 0
    while done < len(expected):
        size = cuts[done % len(cuts)]
        in_pieces.commit(expected[done : done + size])
        done += size
    left, right = at_once.propose(64), in_pieces.propose(64)
    assert (left.token_ids, left.match_length) == (right.token_ids, right.match_length)


@pytest.mark.parametrize("unit", [[5], [5, 6], [5, 5, 6]], ids=["equal", "period-2", "period-3"])
def test_repetitive_references_cost_linear_work(unit: list[int]) -> None:
    def work(size: int) -> int:
        original = (unit * size)[:size]
        segments = [original[: size // 2], [7, *original[: size // 4]]]

        def diverge_all_along() -> None:
            proposer = EditProposer(original=original, snippet_segments=segments, end_token_ids=END)
            assert list(proposer.build())
            for _ in range(size // 100):
                proposer.propose(64)
                proposer.commit([*original[:40], 7])

        return count_lines(diverge_all_along)

    assert work(8_000) <= 2.2 * work(4_000)


def test_a_hundred_thousand_equal_tokens_are_followed(searches: list[str]) -> None:
    original = [5] * 100_000
    proposer = EditProposer(original=original, snippet_segments=[[5] * 50], end_token_ids=END)
    passes = write(proposer, [*original, *END])
    assert len(passes) <= 100_002 // 65 + 3
    assert len(searches) <= 8


def with_replacement(expected: int, written: int) -> Respacing:
    respacing = Respacing({0, 1, 2})
    respacing.attempt(expected, written)
    respacing.settle(is_right=True)
    return respacing


def test_only_white_space_may_stand_for_white_space() -> None:
    respacing = Respacing({0, 1})
    assert respacing.may_replace(0, 1)
    assert not respacing.may_replace(0, 2)
    assert not respacing.may_replace(2, 1)


def test_a_replacement_holds_once_a_token_behind_it_agrees() -> None:
    respacing = Respacing({0, 1})
    respacing.attempt(0, 1)
    assert list(respacing.apply([0, 5, 0])) == [0, 5, 0]
    respacing.settle(is_right=False)
    respacing.settle(is_right=True)
    assert list(respacing.apply([0, 5, 0])) == [0, 5, 0]
    respacing.attempt(0, 1)
    respacing.settle(is_right=True)
    assert list(respacing.apply([0, 5, 0])) == [1, 5, 1]


def test_the_answer_may_go_back_to_what_the_reference_has() -> None:
    respacing = with_replacement(0, 1)
    assert respacing.num_agreed([5, 0, 4, 0], [5, 1, 4, 0]) == 4
    assert list(respacing.apply([0])) == [0]


@given(
    copied=st.lists(SPACED_TOKENS, max_size=12),
    written=st.lists(SPACED_TOKENS, max_size=12),
    expected=st.integers(0, 2),
    new=st.integers(0, 2),
)
def test_what_agrees_is_the_reference_with_or_without_the_replacement(
    copied: list[int], written: list[int], expected: int, new: int
) -> None:
    copied, written = copied[: len(written)], written[: len(copied)]
    num_agreed = with_replacement(expected, new).num_agreed(copied, written)
    is_replaced = True
    for own, token in zip(copied[:num_agreed], written, strict=False):
        assert token == own or (is_replaced and (own, token) == (expected, new))
        is_replaced &= own != expected or token == new
    if num_agreed < len(copied):
        own, token = copied[num_agreed], written[num_agreed]
        assert own != token
        assert not (is_replaced and (own, token) == (expected, new))
