"""History drafts what followed the longest match, and keeps tenants apart."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from batching.drafters.drafter import DraftAsk, ObservedRequest
from batching.drafters.history import HistoryDrafter, TextRing
from batching.request import SamplingParams
from lookup.proposer import Draft

MAX_MATCH = 32
SHORTEST = 2
DEPTH = 8


def observed(
    request_id: str, start: int, token_ids: Sequence[int], cache_salt: bytes = b""
) -> ObservedRequest:
    return ObservedRequest(
        request_id=request_id,
        rows=range(len(token_ids)),
        start=start,
        token_ids=token_ids,
        next_token_ids=token_ids,
        block_ids=(),
        cache_salt=cache_salt,
    )


def drafted(drafter: HistoryDrafter, token_ids: Sequence[int], cache_salt: bytes = b"") -> Draft:
    ask = DraftAsk(
        request_id="asked",
        token_ids=token_ids,
        num_prompt_tokens=1,
        block_ids=(),
        sampling=SamplingParams(max_tokens=100),
        max_nodes=64,
        max_depth=DEPTH,
        cache_salt=cache_salt,
    )
    (draft,) = drafter.draft([ask])
    return draft


def tokens_of(draft: Draft) -> Iterator[int]:
    yield from draft.token_ids
    for branch in draft.branches:
        yield from branch.token_ids


def test_the_most_frequent_continuation_comes_first() -> None:
    drafter = HistoryDrafter(max_tokens=1000)
    for at, last in enumerate((7, 8, 8)):
        drafter.observe([observed(str(at), 0, [1, 2, 3, 4, last, last])], {})
    draft = drafted(drafter, [9, 2, 3, 4])
    assert draft.token_ids == (8, 8)
    assert [(branch.fork, branch.token_ids) for branch in draft.branches] == [(0, (7, 7))]
    assert draft.match_length == 3


def test_a_longer_match_counts_more_than_many_short_ones() -> None:
    drafter = HistoryDrafter(max_tokens=1000)
    drafter.observe([observed("long", 0, [1, 2, 3, 4, 5, 6])], {})
    for at in range(5):
        drafter.observe([observed(str(at), 0, [9, 3, 4, 5, 7])], {})
    assert drafted(drafter, [2, 3, 4, 5]).token_ids == (6,)


def test_a_text_goes_on_from_step_to_step_and_after_a_preemption() -> None:
    drafter = HistoryDrafter(max_tokens=1000)
    drafter.observe([observed("0", 0, [1, 2]), observed("1", 0, [11, 12])], {})
    drafter.observe([observed("1", 2, [13, 14, 15]), observed("0", 2, [3, 4])], {})
    drafter.observe([observed("0", 0, [1, 2, 3, 4, 5])], {})
    assert drafted(drafter, [1, 2, 3]).token_ids == (4, 5)
    assert drafted(drafter, [11, 12, 13]).token_ids == (14, 15)
    drafter.forget("0")
    assert drafted(drafter, [2, 3, 4]).token_ids == (5,)


def test_a_request_does_not_match_its_own_end() -> None:
    drafter = HistoryDrafter(max_tokens=1000)
    drafter.observe([observed("asked", 0, [1, 2, 3, 4])], {})
    assert not drafted(drafter, [1, 2, 3, 4]).token_ids


@pytest.mark.parametrize("max_tokens", [40, 1 << 12])
def test_no_tenant_sees_the_text_of_another(max_tokens: int) -> None:
    generator = random.Random(1)
    drafter = HistoryDrafter(max_tokens=max_tokens, max_tenants=3)
    num_drafted = 0
    texts: dict[tuple[int, int], list[int]] = {}
    for step in range(3000):
        # All tenants write the same, but for a token in ten that tells whose it is.
        tenant, request = generator.randrange(5), generator.randrange(3)
        text = texts.setdefault((tenant, request), [])
        new = [
            10 + tenant if generator.random() < 0.1 else generator.randrange(2)
            for _ in range(generator.randrange(1, 6))
        ]
        request_id = f"{tenant}-{request}-{step // 500}"
        drafter.observe([observed(request_id, len(text), new, b"%d" % tenant)], {})
        text += new
        draft = drafted(drafter, [*text, generator.randrange(2)], b"%d" % tenant)
        num_drafted += len(draft)
        assert all(token < 2 or token == 10 + tenant for token in tokens_of(draft))
    assert num_drafted > 500


def test_a_forgotten_tenant_comes_back_with_nothing() -> None:
    drafter = HistoryDrafter(max_tokens=1000, max_tenants=2)
    drafter.observe([observed("0", 0, [1, 2, 3, 4], b"a")], {})
    assert drafted(drafter, [1, 2, 3], b"a").token_ids == (4,)
    for name in (b"b", b"c"):
        drafter.observe([observed(str(name), 0, [1, 2, 3, 5], name)], {})
    assert not drafted(drafter, [1, 2, 3], b"a").token_ids
    drafter.observe([observed("1", 0, [6], b"a")], {})
    assert not drafted(drafter, [1, 2, 3], b"a").token_ids
    assert drafted(drafter, [1, 2, 3], b"c").token_ids == (5,)


class BruteTexts:
    """The same by looking at all that is not overwritten."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        # Text, place in it, and token, by position.
        self._written: list[tuple[int, int, int]] = []
        self._texts: dict[int, list[int]] = {}

    def append(self, text: int, token_id: int) -> None:
        tokens = self._texts.setdefault(text, [])
        self._written.append((text, len(tokens), token_id))
        tokens.append(token_id)

    def find(self, context: Sequence[int], texts: Sequence[int]) -> tuple[int, list[list[int]]]:
        kept = self._written[-self._max_tokens :]
        firsts: dict[int, int] = {}
        for text, place, _ in kept:
            firsts.setdefault(text, place)
        best = SHORTEST
        found: list[list[int]] = []
        for text, place, _ in kept:
            tokens = self._texts[text]
            if text not in texts or place + 1 == len(tokens):
                continue
            length = 0
            while (
                length < min(len(context), MAX_MATCH)
                and place - length >= firsts[text]
                and tokens[place - length] == context[-1 - length]
            ):
                length += 1
            if length >= best:
                rest = tokens[place + 1 : place + 1 + DEPTH]
                rest += [-1] * (DEPTH - len(rest))
                found = [*(found if length == best else []), rest]
                best = length
        return best, sorted(found)


@pytest.mark.parametrize("max_tokens", [1, 5, 64])
def test_the_ring_finds_what_brute_force_finds(max_tokens: int) -> None:
    generator = random.Random(max_tokens)
    ring, brute = TextRing(max_tokens), BruteTexts(max_tokens)
    lasts: dict[int, int] = {}
    tails: dict[int, list[int]] = {}
    num_found = 0
    for step in range(1500):
        text = generator.randrange(4) + step // 400
        token_id = generator.choices((0, 1, 2), (8, 3, 1))[0]
        tails[text] = [*tails.get(text, []), token_id][-16:]
        lasts[text] = ring.append(
            token_id, tenant=1 + text % 2, last=lasts.get(text, 0), tail=tails[text]
        )
        brute.append(text, token_id)
        context = [*tails[text], generator.randrange(2)]
        found = ring.find(context, tenant=1 + text % 2, depth=DEPTH)
        length, rows = brute.find(context, [one for one in tails if one % 2 == text % 2])
        if found is None:
            assert not rows
        else:
            assert (found.match_length, sorted(found.token_ids.tolist())) == (length, rows)
            num_found += 1
    assert num_found > 500 or max_tokens < 64
