"""Drafts for an edit: follows a cursor through the references, and searches only if it is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from lookup.proposer import EMPTY_DRAFT, Branch, Draft
from lookup.reference import (
    MAX_FAR_PLACES,
    MAX_MATCH,
    Anchor,
    OutputReference,
    Reference,
    SegmentedReference,
)
from lookup.segment_plan import SegmentPlan

# In tokens of match, like the costs of distance; tuned on edits of real files.
TRUST = {
    "merge": 1.5,
    "snippet": 1.0,
    "original": 0.0,
    "rival": -0.5,
    "prediction": -0.5,
    "update": -0.5,
    "output": -1.0,
}
CONFIRMED_MATCH = 3
# A runner-up whose score is so close to the best is drafted too, as a branch of so many tokens.
CLOSE_SCORE = 4.0
BRANCH_TOKENS = 8
# White space in place of other white space counts like a match of so many tokens at the cursor.
RESPACED_MATCH = 1


@dataclass(frozen=True, slots=True)
class _Run:
    """Tokens `start` to `stop` of one reference, to be copied in one piece."""

    reference: Reference
    start: int
    stop: int


class EditProposer:
    """Drafts from the references that an edit's answer probably copies.

    Names of references, by trust: merge, snippet, original, rival, prediction, update, output. A
    draft may be stitched from several copies where the answer is expected to pass from one
    reference to another; its `reference` is then the one that its first token was copied from.
    """

    def __init__(
        self,
        *,
        original: Sequence[int],
        snippet_segments: Sequence[Sequence[int]],
        merge: Sequence[int] = (),
        rival: Sequence[int] = (),
        prediction: Sequence[int] = (),
        update: Sequence[int] = (),
        end_token_ids: Sequence[int] = (),
        white_space: Collection[int] = (),
        min_output_match: int = 3,
        max_far_places: int = MAX_FAR_PLACES,
    ) -> None:
        """Take the references; any may be empty.

        `rival` is the second-likeliest answer after `merge`. `update` is the snippet as it was
        sent, markers and all: some answers leave them in. `end_token_ids` close every whole answer,
        so they follow original, merge, rival, prediction and update. `white_space` are the tokens
        of white space alone; where the answer has one in place of another, the draft goes on behind
        it and has it there from then on. A match that ends at more than `max_far_places` positions
        of a reference is only used near the cursor; 0 leaves nothing but the cursors.
        """
        self._segments = [segment for segment in snippet_segments if segment]

        def whole(name: str, token_ids: Sequence[int]) -> Reference:
            return Reference(name, token_ids, trust=TRUST[name], max_far_places=max_far_places)

        self._snippet = SegmentedReference(
            "snippet", self._segments, trust=TRUST["snippet"], max_far_places=max_far_places
        )
        self._original = whole("original", [*original, *end_token_ids])
        self._merge = whole("merge", [*merge, *end_token_ids] if merge else ())
        self._rival = whole("rival", [*rival, *end_token_ids] if rival else ())
        self._prediction = whole("prediction", [*prediction, *end_token_ids] if prediction else ())
        self._update = whole("update", [*update, *end_token_ids] if update else ())
        self._references = [
            reference
            for reference in (
                self._merge,
                self._snippet,
                self._original,
                self._rival,
                self._prediction,
                self._update,
            )
            if len(reference)
        ]
        self._output = OutputReference("output", trust=TRUST["output"], min_match=min_output_match)
        self._respacing = Respacing(white_space)
        self._committed: list[int] = []
        self._plan: SegmentPlan | None = None
        self._cursor = self._first_reference(has_original=bool(original))
        self._position = 0
        self._match = 0
        self._runner_up: tuple[Reference, int] | None = None  # as long as nothing was followed

    def build(self) -> Iterator[None]:
        """Index the references and plan where the segments go, one after the other."""
        for reference in self._references:
            reference.build()
            yield
        self._segment_plan()

    def propose(self, max_tokens: int) -> Draft:
        """Draft at most `max_tokens` tokens to follow the committed output.

        The draft is the same again unless something is committed in between.
        """
        self._catch_up()
        branch = self._second_way(max_tokens)
        max_own = max_tokens if branch is None else max_tokens - len(branch.token_ids)
        drafted: list[int] = []
        sources: list[tuple[int, str]] = []
        for run in self._runs():
            num_missing = max_own - len(drafted)
            if num_missing <= 0:
                break
            if run.reference is self._output:
                copied = self._output.repeated(run.start, num_missing)
            else:
                copied = run.reference.token_ids[run.start : min(run.stop, run.start + num_missing)]
            if copied:
                sources.append((len(drafted), run.reference.name))
                drafted += self._respacing.apply(copied)
        if not drafted:
            return EMPTY_DRAFT
        return Draft(
            tuple(drafted),
            sources[0][1],
            self._match,
            sources=tuple(sources),
            branches=() if branch is None or branch.token_ids[0] == drafted[0] else (branch,),
        )

    def commit(self, token_ids: Sequence[int]) -> None:
        """Append the model's tokens; the next proposal follows from them."""
        self._committed += token_ids

    def _catch_up(self) -> None:
        """Process the committed tokens; re-anchor if they left the drafted way."""
        tokens, self._committed = self._committed, []
        if not tokens:
            return
        self._output.token_ids += tokens
        self._runner_up = None
        num_followed = self._follow(tokens)
        self._respacing.settle(is_right=num_followed > 0)
        if num_followed < len(tokens):
            self._reanchor(len(tokens) - num_followed)
        elif self._cursor in (self._original, self._snippet) and self._match >= MAX_MATCH:
            self._rejoin_merge()

    def _first_reference(self, *, has_original: bool) -> Reference:
        """The reference where an answer starts before anything is written."""
        if len(self._merge):
            return self._merge
        if has_original:
            return self._original
        if len(self._prediction):
            return self._prediction
        return self._snippet if len(self._snippet) else self._original

    def _segment_plan(self) -> SegmentPlan:
        if self._plan is None:
            self._plan = SegmentPlan(self._original.automaton, self._segments)
        return self._plan

    def _runs(self) -> Iterator[_Run]:
        """The way on from the cursor, run by run, to the end of the answer."""
        reference, position = self._cursor, self._position
        place, first_segment = self._original.place, 0
        while reference is self._snippet or reference is self._original:
            if reference is self._snippet:
                segment = self._snippet.segment_at(position)
                yield _Run(reference, position, self._snippet.ends[segment])
                reference, first_segment = self._original, segment + 1
                position = self._segment_plan().exit_of(segment, place)
                continue
            switch = self._segment_plan().next_switch(position, first_segment)
            if switch is None:
                break
            yield _Run(reference, position, switch.enter)
            reference, place = self._snippet, switch.enter
            position = self._snippet.starts[switch.segment] + switch.offset
        yield _Run(reference, position, len(reference))

    def _follow(self, tokens: list[int]) -> int:
        """Move the cursor along the expected way while `tokens` agree; return how many did."""
        num_followed = 0
        for run in self._runs():
            if run.reference is not self._cursor:
                self._leave_run()
            length = min(run.stop - run.start, len(tokens) - num_followed)
            copied = run.reference.token_ids[run.start : run.start + length]
            given = tokens[num_followed : num_followed + length]
            num_agreed = self._respacing.num_agreed(copied, given)
            num_followed += num_agreed
            self._stand(run.reference, run.start + num_agreed, self._match + num_agreed)
            if num_agreed < length or num_followed == len(tokens):
                break
        return num_followed

    def _leave_run(self) -> None:
        """Settle the place of the reference that the way has just left."""
        self._cursor.place = self._position
        if self._cursor is self._snippet:
            self._segment_plan().drop(self._snippet.segment_at(self._position))

    def _stand(self, reference: Reference, position: int, match_length: int) -> None:
        """Set the cursor; its reference's place follows once the match is more than chance."""
        self._cursor, self._position, self._match = reference, position, match_length
        if match_length >= CONFIRMED_MATCH:
            reference.place = position

    def _reanchor(self, num_new: int) -> None:
        """Find the best place to go on from after `num_new` tokens that left the way.

        If no reference holds the last token, it is taken to stand for the one expected here.
        """
        output = self._output.token_ids
        run = next(self._runs())
        here = Anchor(min(run.start + num_new, run.stop), 0)
        best_reference, best, best_score = run.reference, here, float("-inf")
        is_respaced = num_new == 1 and self._is_respaced(run)
        if is_respaced:
            best_score = RESPACED_MATCH + run.reference.trust
        scored: list[tuple[float, Reference, Anchor]] = []
        for reference in (*self._references, self._output):
            for anchor in reference.anchors(output):
                score = reference.score(anchor)
                scored.append((score, reference, anchor))
                if score > best_score:
                    best_reference, best, best_score = reference, anchor, score
        if is_respaced and best is here:
            self._respacing.attempt(run.reference.token_ids[run.start], output[-1])
        self._stand(best_reference, best.position, best.match_length)
        self._runner_up = self._find_runner_up(scored, best_score)

    def _find_runner_up(
        self, scored: Sequence[tuple[float, Reference, Anchor]], best_score: float
    ) -> tuple[Reference, int] | None:
        """The place next best to the cursor's whose next token is another, if it is close."""
        expected = self._cursor.token_ids[self._position : self._position + 1]
        others = [
            (score, reference, anchor.position)
            for score, reference, anchor in scored
            if score >= best_score - CLOSE_SCORE
            and anchor.position < reference.stop_behind(anchor.position)
            and reference.token_ids[anchor.position : anchor.position + 1] != expected
        ]
        if not expected or not others:
            return None
        _, reference, position = max(others, key=lambda other: other[0])
        return reference, position

    def _second_way(self, max_tokens: int) -> Branch | None:
        """The runner-up as a branch, where both ways have room."""
        if self._runner_up is None or max_tokens < 2:
            return None
        reference, position = self._runner_up
        stop = min(position + min(BRANCH_TOKENS, max_tokens // 2), reference.stop_behind(position))
        copied = tuple(self._respacing.apply(reference.token_ids[position:stop]))
        return Branch(0, copied, reference.name) if copied else None

    def _rejoin_merge(self) -> None:
        """Return to the merge if it agrees with the text followed long enough elsewhere."""
        if not len(self._merge):
            return
        anchors = [
            anchor
            for anchor in self._merge.anchors(self._output.token_ids)
            if anchor.match_length == MAX_MATCH
        ]
        if anchors:
            best = max(anchors, key=self._merge.score)
            self._stand(self._merge, best.position, best.match_length)

    def _is_respaced(self, run: _Run) -> bool:
        """True if the last token is white space where the way has other white space."""
        if run.start == run.stop:
            return False
        expected, written = run.reference.token_ids[run.start], self._output.token_ids[-1]
        return self._respacing.may_replace(expected, written)


class Respacing:
    """Remembers tokens of white space that an answer writes in place of others.

    A model that indents a block its own way does so line after line. A replacement is tried where
    it was seen, holds from the first token that agrees behind it, and is forgotten where the answer
    writes the reference's own white space again.
    """

    __slots__ = ("_replaced", "_tried", "_white_space")

    def __init__(self, white_space: Collection[int]) -> None:
        """Take the tokens that consist of white space only."""
        self._white_space = white_space
        self._replaced: dict[int, int] = {}
        self._tried: tuple[int, int] | None = None

    def may_replace(self, expected: int, written: int) -> bool:
        """True if both tokens are white space."""
        return expected in self._white_space and written in self._white_space

    def attempt(self, expected: int, written: int) -> None:
        """Replace `expected` by `written` on trial, until the next token decides."""
        if self._replaced.get(expected) != written:
            self._tried = expected, written

    def settle(self, *, is_right: bool) -> None:
        """Keep or drop the last replacement on trial, if there is one."""
        if self._tried is not None and is_right:
            expected, written = self._tried
            self._replaced[expected] = written
        self._tried = None

    def apply(self, token_ids: Sequence[int]) -> Sequence[int]:
        """Tokens of a reference, with the replacements that the answer probably makes."""
        if not self._replaced:
            return token_ids
        return [self._replaced.get(token, token) for token in token_ids]

    def num_agreed(self, copied: Sequence[int], written: Sequence[int]) -> int:
        """Number of leading tokens as `apply` or the reference itself has them.

        Replacements that the answer contradicts are forgotten. Both are equally long.
        """
        expected = self.apply(copied)
        if expected == written:
            return len(written)
        for count, (own, token) in enumerate(zip(copied, written, strict=True)):
            if self._replaced.get(own, own) == token:
                continue
            if own != token:
                return count
            del self._replaced[own]
        return len(written)
