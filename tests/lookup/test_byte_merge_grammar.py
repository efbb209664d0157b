"""The byte form allows every token along a valid merge and no other, whatever its borders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.edits.brute_grammar import weighed_merges
from oracles.edits.small_rules import small_rules
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from lookup.byte_merge_grammar import ByteMergeGrammar, ByteState
from lookup.constraint import (
    ConstrainedDraft,
    Constraint,
    InvalidRulesError,
    TokenNotAllowedError,
)
from lookup.merge_rules import MergeRules, MergeText
from lookup.vocabulary_index import VocabularyIndex

STOP = 0
SINGLE = [bytes([byte]) for byte in (0, 1, 2, 9)]
VOCABULARIES = st.lists(
    st.lists(st.sampled_from([0, 0, 1, 1, 2, 9]), min_size=2, max_size=5).map(bytes), max_size=12
).map(lambda longer: VocabularyIndex([b"", *SINGLE, *longer]))

Encode = Callable[[bytes], Sequence[int]]


def encoder(vocabulary: VocabularyIndex, kind: str) -> Encode:
    """The longest tokens, single bytes, or something that spells another text."""

    def single(text: bytes) -> list[int]:
        return [vocabulary.token_bytes.index(bytes([byte])) for byte in text]

    def wrong(text: bytes) -> list[int]:
        return [*vocabulary.longest_matches(text[:2]), STOP, 1, 99]

    return {"longest": vocabulary.longest_matches, "single": single, "wrong": wrong}[kind]


class Brute:
    """The same questions, answered from all valid texts."""

    def __init__(
        self,
        rules: MergeRules,
        vocabulary: VocabularyIndex,
        ends: tuple[int, ...],
        opening: bytes = b"",
    ):
        merges = weighed_merges(rules)
        self.texts = {opening + bytes(answer): weight for answer, weight in merges.items()}
        self.vocabulary = vocabulary
        self.ends = ends

    def allowed(self, written: bytes) -> tuple[int, ...]:
        found = {
            token_id
            for token_id, spelling in enumerate(self.vocabulary.token_bytes)
            if spelling and any(text.startswith(written + spelling) for text in self.texts)
        }
        return tuple(sorted({*found, *(self.ends[:1] if written in self.texts else ())}))

    def forced(self, written: bytes) -> bytes:
        start = len(written)
        while written not in self.texts:
            size = len(written)
            following = {text[size : size + 1] for text in self.texts if text.startswith(written)}
            if len(following) > 1:
                break
            written += following.pop()
        return written[start:]

    def is_choice(self, written: bytes) -> bool:
        """Whether an allowed token goes beyond what is forced."""
        length = len(self.forced(written))
        return any(
            len(self.vocabulary.bytes_of(token_id)) > length for token_id in self.allowed(written)
        )

    def heaviest(self, written: bytes) -> float:
        return max(weight for text, weight in self.texts.items() if text.startswith(written))

    def check(self, draft: ConstrainedDraft, written: bytes) -> None:
        """Its rows are the positions from which a choice is made; it ends if it says so."""
        rows = {row.offset: row.allowed_token_ids for row in draft.decisions}
        ends = [token_id for token_id in draft.token_ids if token_id in self.ends]
        spelled = draft.token_ids[: len(draft) - len(ends)]
        for offset in range(len(spelled) + 1):
            expected = self.allowed(written) if self.is_choice(written) else None
            assert rows.get(offset) == expected
            if offset < len(spelled):
                assert spelled[offset] in self.allowed(written)
                written += self.vocabulary.bytes_of(spelled[offset])
        if draft.is_complete:
            assert written in self.texts
            assert tuple(ends) == self.ends
        if ends:
            assert draft.token_ids[len(spelled) :] == self.ends[: len(ends)]


@given(
    rules=small_rules(max_texts=6),
    vocabulary=VOCABULARIES,
    kind=st.sampled_from(["longest", "single", "wrong"]),
    ends=st.sampled_from([(STOP,), (), (STOP, 500)]),
    opening=st.sampled_from([b"", b"\x01\x02", b"\x00\x01"]),
    pick=st.randoms(use_true_random=False),
)
@settings(max_examples=250, deadline=None)
def test_allowed_tokens_forced_text_and_drafts_are_those_of_the_valid_merges(
    *,
    rules: MergeRules,
    vocabulary: VocabularyIndex,
    kind: str,
    ends: tuple[int, ...],
    opening: bytes,
    pick: Random,
) -> None:
    brute = Brute(rules, vocabulary, ends, opening)
    encode = encoder(vocabulary, kind)
    grammar = ByteMergeGrammar(
        rules, vocabulary, encode=encode, end_token_ids=ends, opening=opening
    )
    written = b""
    while True:
        allowed = brute.allowed(written)
        canonical = grammar.draft(1).token_ids
        assert grammar.allowed_next() == (allowed if brute.is_choice(written) else canonical)
        before = grammar.snapshot()
        whole = grammar.draft()
        assert whole.is_complete
        spelled = b"".join(map(vocabulary.bytes_of, whole.token_ids))
        assert brute.texts[written + spelled] == brute.heaviest(written)
        for limit in (None, 0, 1, 2):
            draft = grammar.draft(limit)
            assert limit is None or len(draft) <= limit
            assert draft.token_ids or limit == 0 or not len(whole)
            brute.check(draft, written)
            assert draft.token_ids == whole.token_ids[:limit]
            assert grammar.forced_run(limit) == list(draft.token_ids[: draft.num_forced])
        for token_id in {*range(len(vocabulary.token_bytes)), 500} - set(allowed):
            with pytest.raises(TokenNotAllowedError):
                grammar.advance(token_id)
        assert grammar.snapshot() is before
        check_steps(grammar, whole)
        going_on = [token_id for token_id in allowed if token_id not in ends]
        if not going_on or (written in brute.texts and pick.random() < 0.5):
            break
        token_id = pick.choice(going_on)
        grammar.advance(token_id)
        written += vocabulary.bytes_of(token_id)
    grammar.advance_all(ends)
    assert grammar.is_complete
    assert grammar.allowed_next() == (() if ends else brute.allowed(written))


@given(
    rules=small_rules(max_texts=6),
    vocabulary=VOCABULARIES,
    scale=st.sampled_from([0.0, 2.0]),
    pick=st.randoms(use_true_random=False),
)
@settings(max_examples=80, deadline=None)
def test_decisions_are_the_choices_on_the_way_and_weights_count_at_them(
    rules: MergeRules, vocabulary: VocabularyIndex, scale: float, pick: Random
) -> None:
    brute = Brute(rules, vocabulary, (STOP,))
    grammar = ByteMergeGrammar(
        replace(rules, prior_scale=scale),
        vocabulary,
        encode=vocabulary.longest_matches,
        end_token_ids=(STOP,),
    )
    written, token_ids, choices = b"", [], {}
    while not grammar.is_complete:
        allowed = grammar.allowed_next()
        if brute.is_choice(written):
            heaviest = [
                brute.texts[written] if token_id == STOP else brute.heaviest(written + spelling)
                for token_id in allowed
                for spelling in [vocabulary.bytes_of(token_id)]
            ]
            prior = [scale * (weight - max(heaviest)) for weight in heaviest]
            assert list(grammar.log_prior()) == pytest.approx(prior if scale else [])
            choices[len(token_ids)] = allowed
        token_ids.append(pick.choice(allowed))
        grammar.advance(token_ids[-1])
        written += vocabulary.bytes_of(token_ids[-1])
    found = grammar.decisions(token_ids)
    assert {made.offset: tuple(dict(made.alternatives)) for made in found} == choices
    assert all(made.chosen_token_id == token_ids[made.offset] for made in found)


def check_steps(grammar: ByteMergeGrammar, whole: ConstrainedDraft) -> None:
    """Read one by one, the tokens of a draft are what is allowed and drafted, step by step."""
    before = grammar.snapshot()
    rows = {row.offset: row.allowed_token_ids for row in whole.decisions}
    for offset, token_id in enumerate(whole.token_ids):
        assert grammar.allowed_next() == rows.get(offset, (token_id,))
        assert grammar.is_border == (offset in whole.border_offsets)
        rest = grammar.draft()
        assert rest.token_ids == whole.token_ids[offset:]
        assert rest.num_forced == min([at - offset for at in rows if at >= offset] or [len(rest)])
        grammar.advance(token_id)
    assert grammar.is_complete
    grammar.restore(before)


@given(
    rules=small_rules(max_texts=6),
    vocabulary=VOCABULARIES,
    pick=st.randoms(use_true_random=False),
)
@settings(max_examples=150, deadline=None)
def test_runs_behind_any_allowed_token_stay_valid(
    rules: MergeRules, vocabulary: VocabularyIndex, pick: Random
) -> None:
    encode = vocabulary.longest_matches
    grammar = ByteMergeGrammar(rules, vocabulary, encode=encode, end_token_ids=(STOP,))
    start = grammar.snapshot()
    for token_id in grammar.allowed_next():
        grammar.restore(start)
        grammar.advance(token_id)
        while not grammar.is_complete:
            run = grammar.forced_run(pick.randrange(1, 9)) or [pick.choice(grammar.allowed_next())]
            grammar.advance_all(run)
        before = grammar.snapshot()
        with pytest.raises(TokenNotAllowedError):
            grammar.advance_all([STOP])
        assert grammar.snapshot() is before


LINES = ["\ndef load(path):", "\n    return open(path)", "\n", "\ndef save(path):", "\n    pass"]
NEW = ["\ndef drop(path):", "\n    path.unlink()", "\n"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A byte-level tokenizer whose tokens cross the borders of lines."""
    trained = Tokenizer(BPE())
    trained.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = BpeTrainer(
        vocab_size=330,
        show_progress=False,
        special_tokens=["<end>"],
        initial_alphabet=ByteLevel.alphabet(),
    )
    trained.train_from_iterator(["".join([*LINES, *NEW])] * 20, trainer)
    return trained


def vocabulary_of(tokenizer: Tokenizer) -> VocabularyIndex:
    """Every token's bytes, by the alphabet of byte-level tokenizers."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte_of = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    byte_of.update({chr(256 + at): byte for at, byte in enumerate(others)})
    texts = [tokenizer.id_to_token(n) or "" for n in range(tokenizer.get_vocab_size())]
    return VocabularyIndex(
        [b"" if text == "<end>" else bytes(byte_of[char] for char in text) for text in texts]
    )


def test_the_canonical_tokens_of_a_merge_are_drafted_and_allowed(tokenizer: Tokenizer) -> None:
    def encode(text: bytes) -> list[int]:
        return list(tokenizer.encode(text.decode()).ids)

    texts = [MergeText(symbols="".join([*LINES[:at], *NEW, *LINES[at:]]).encode()) for at in (0, 3)]
    rules = MergeRules(texts=texts, end_token_ids=b"\n</code>")
    grammar: Constraint[ByteState] = ByteMergeGrammar(
        rules, vocabulary_of(tokenizer), encode=encode, end_token_ids=(0,), skipped=b"\n"
    )
    text = "".join([*LINES[:3], *NEW, *LINES[3:]])[1:] + "\n</code>"
    wanted = [*encode(text.encode()), 0]
    written: list[int] = []
    num_decisions = 0
    while not grammar.is_complete:
        run = grammar.forced_run()
        if not run:
            num_decisions += 1
            assert wanted[len(written)] in grammar.allowed_next()
            run = [wanted[len(written)]]
        grammar.advance_all(run)
        written += run
    assert written == wanted
    assert 1 <= num_decisions <= 4


def test_choices_name_the_texts() -> None:
    vocabulary = VocabularyIndex([b"", *(bytes([byte]) for byte in range(10, 128)), b"\nb"])
    rules = MergeRules(
        texts=[
            MergeText(symbols=b"\na\nx\nb", weight=-1.0),
            MergeText(symbols=b"\na\nb\nx", weight=-2.0),
        ]
    )
    grammar = ByteMergeGrammar(
        rules, vocabulary, encode=vocabulary.longest_matches, end_token_ids=(0,)
    )
    grammar.advance_all(vocabulary.longest_matches(b"\na"))
    newline, over = vocabulary.token_bytes.index(b"\n"), vocabulary.token_bytes.index(b"\nb")
    assert grammar.allowed_next() == (newline, over)
    (decision,) = grammar.decisions([*vocabulary.longest_matches(b"\na"), over])
    assert dict(decision.alternatives) == {over: (1,), newline: (0, 1)}
    grammar.advance(over)
    grammar.advance_all(grammar.forced_run())
    assert grammar.chosen() == 1


def test_a_decision_inside_a_character_is_cut_before_it_for_the_tokenizer() -> None:
    vocabulary = VocabularyIndex([b"", *(bytes([byte]) for byte in range(1, 256)), "é".encode()])
    seen: list[str] = []

    def encode(text: bytes) -> list[int]:
        seen.append(text.decode())
        return vocabulary.longest_matches(text)

    rest = "\nà" * 40
    rules = MergeRules(texts=[MergeText(symbols=f"\n{one}{rest}".encode()) for one in "éè"])
    grammar = ByteMergeGrammar(rules, vocabulary, encode=encode, end_token_ids=(0,))
    for limit in range(60):
        grammar.draft(limit)
    grammar.advance_all(vocabulary.longest_matches("\né".encode()[:2]))
    assert grammar.allowed_next() == (0xA8, 0xA9)
    draft = grammar.draft(1)
    assert [row.offset for row in draft.decisions] == [0]
    grammar.advance(0xA8)
    grammar.advance_all(grammar.forced_run())
    assert grammar.is_complete
    assert seen


def test_borders_are_those_of_the_tokens_that_hold_them() -> None:
    vocabulary = VocabularyIndex(
        [b"", *(bytes([byte]) for byte in range(10, 128)), b"\nxy", b"a\n"]
    )
    rules = MergeRules(texts=[MergeText(symbols=b"\na\nxy\nb", borders=(3, 6))])
    grammar = ByteMergeGrammar(rules, vocabulary, encode=vocabulary.longest_matches)
    spelled = [vocabulary.bytes_of(token_id) for token_id in grammar.draft().token_ids]
    assert spelled == [b"\n", b"a\n", b"x", b"y", b"\n", b"b"]
    assert grammar.draft().border_offsets == (2, 5)
    grammar.advance_all(grammar.draft().token_ids[:2])
    assert grammar.is_border
    grammar.advance(grammar.draft().token_ids[0])
    assert not grammar.is_border


def test_what_cannot_be_spelled_is_refused() -> None:
    vocabulary = VocabularyIndex([b"", b"a", b"ab", b"\n"])
    rules = MergeRules(texts=[MergeText(symbols=b"\nab")])
    with pytest.raises(InvalidRulesError, match="no token spells byte 0x62 alone"):
        ByteMergeGrammar(rules, vocabulary, encode=vocabulary.longest_matches)
    spellable = MergeRules(texts=[MergeText(symbols=b"\na")])
    with pytest.raises(InvalidRulesError, match="end token 1 spells text"):
        ByteMergeGrammar(
            spellable, vocabulary, encode=vocabulary.longest_matches, end_token_ids=(1,)
        )
    with pytest.raises(TokenNotAllowedError):
        ByteMergeGrammar(spellable, vocabulary, encode=vocabulary.longest_matches, skipped=b"a")
    with pytest.raises(InvalidRulesError, match="no token spells byte 0x62 alone"):
        ByteMergeGrammar(spellable, vocabulary, encode=vocabulary.longest_matches, opening=b"ab")


def test_a_short_draft_is_spelled_like_the_beginning_of_a_long_one() -> None:
    word = b" documentation"
    vocabulary = VocabularyIndex([b"", *(bytes([byte]) for byte in range(10, 128)), word])
    rules = MergeRules(texts=[MergeText(symbols=b"\n" + word * 40)])
    grammar = ByteMergeGrammar(rules, vocabulary, encode=vocabulary.longest_matches)
    whole = grammar.draft().token_ids
    assert len(whole) == 41
    for limit in range(42):
        assert grammar.draft(limit).token_ids == whole[:limit]
