"""Counts the steps of a backtracking regular expression: a cost that no machine and load changes.

`re` tells no steps, so the tree that its own parser makes is matched here once more, in the order
of its engine, with a step for each character looked at and each part begun. The engine skips ahead
in ways that save a constant factor; no more is promised than that both grow alike.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Literal

Use = Literal["match", "fullmatch", "search"]
Text = str | bytes
Span = tuple[int, int]
# Matches at a place and goes on with what follows; the end of the whole match, or FAILED.
Step = Callable[[int], int]
Node = tuple[Any, Any]

FAILED = -1
# A finite repeat costs no more than its bound, so `max_bound` cuts those up to here.
_LARGEST_BOUND = 1000

# Each step calls the next; all else relies on the usual limit.
_MAX_DEPTH = 200_000


class TooManyStepsError(Exception):
    """The budget of steps is spent."""


class StepCounter:
    """One pattern. `num_steps` counts on from match to match, up to `max_steps`.

    `max_bound` cuts the bounds of finite repeats, so that short texts tell how long ones grow.
    """

    def __init__(self, pattern: re.Pattern[Any], *, max_bound: int = _LARGEST_BOUND) -> None:
        self.num_steps = 0
        self.max_steps = sys.maxsize
        self._max_bound = max_bound
        self.is_bytes = isinstance(pattern.pattern, bytes)
        self._flags = pattern.flags
        self.tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self._text: Text = ""
        self._groups: dict[int, Span] = {}
        self._opened: dict[int, int] = {}
        self._refused = FAILED
        referred = {str(node[1]) for node in _walk(self.tree) if node[0] is ops.GROUPREF}
        self._referred = {int(number) for number in referred}
        self._at_any_end = self._compile(self.tree, self._end_anywhere, self._flags)
        self._at_end = self._compile(self.tree, self._end_of_text, self._flags)

    def spans(self, text: Text, use: Use) -> list[Span]:
        """Where the pattern matches; all matches of a search, one after another."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _MAX_DEPTH))
        try:
            return self._spans(text, use)
        finally:
            sys.setrecursionlimit(limit)

    def _spans(self, text: Text, use: Use) -> list[Span]:
        self._text = text
        self._refused = FAILED
        if use != "search":
            end = self._try(0, self._at_end if use == "fullmatch" else self._at_any_end)
            return [] if end == FAILED else [(0, end)]
        spans: list[Span] = []
        start = 0
        while start <= len(text):
            end = self._try(start, self._at_any_end)
            if end == FAILED:
                self._refused = FAILED
                start += 1
                continue
            spans.append((start, end))
            self._refused = end if end == start else FAILED
            start = end
        return spans

    def _try(self, start: int, matched: Step) -> int:
        self._groups.clear()
        self._count(1)
        return matched(start)

    def _count(self, number: int) -> None:
        self.num_steps += number
        if self.num_steps > self.max_steps:
            raise TooManyStepsError

    def _end_anywhere(self, place: int) -> int:
        return FAILED if place == self._refused else place

    def _end_of_text(self, place: int) -> int:
        return place if place == len(self._text) else FAILED

    def _compile(self, nodes: Sequence[Node], then: Step, flags: int) -> Step:
        for node in reversed(nodes):
            then = self._compile_one(node, then, flags)
        return then

    def _compile_one(self, node: Node, then: Step, flags: int) -> Step:
        op, value = node
        accepts = self.try_accepts(node, flags)
        if accepts is not None:
            return self._one_character(accepts, then)
        if op is ops.BRANCH:
            return self._branch([self._compile(part, then, flags) for part in value[1]])
        if op is ops.SUBPATTERN:
            number, added, removed, part = value
            flags = (flags | added) & ~removed
            if number not in self._referred:
                return self._compile(part, then, flags)
            return self._group(number, part, then, flags)
        if op is ops.AT:
            return self._anchor(value, then, flags)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            return self._repeat(op, value, then, flags)
        if op is ops.ATOMIC_GROUP:
            return self._atomic(self._compile(value, _itself, flags), then)
        if op in (ops.ASSERT, ops.ASSERT_NOT):
            return self._look(op is ops.ASSERT, value, then, flags)
        if op is ops.GROUPREF:
            return self._back_reference(value, then)
        raise NotImplementedError(f"no steps are known for {op}")

    def try_accepts(self, node: Node, flags: int) -> Callable[[Any], bool] | None:
        """Whether a character fits a node; None for a node that is not one character."""
        op, value = node
        if op is ops.ANY:
            newline = ord("\n") if self.is_bytes else "\n"
            return _anything if flags & re.DOTALL else lambda one: bool(one != newline)
        if op not in (ops.LITERAL, ops.NOT_LITERAL, ops.IN):
            return None
        known: dict[Any, bool] = {}

        def accepts(one: Any) -> bool:
            fits = known.get(one)
            if fits is None:
                fits = known[one] = self._fits(op, value, one, flags)
            return fits

        return accepts

    def _fits(self, op: Any, value: Any, one: Any, flags: int) -> bool:
        code = one if isinstance(one, int) else ord(one)
        codes = {code}
        if flags & re.IGNORECASE:
            codes |= {ord(case) for case in (chr(code).lower(), chr(code).upper()) if len(case) < 2}
        if op is ops.LITERAL:
            return value in codes
        if op is ops.NOT_LITERAL:
            return value not in codes
        is_negated = value[0][0] is ops.NEGATE
        return is_negated != any(
            _is_among(item, code, self.is_bytes or bool(flags & re.ASCII))
            for item in value[is_negated:]
            for code in codes
        )

    def _one_character(self, accepts: Callable[[Any], bool], then: Step) -> Step:
        def step(place: int) -> int:
            self._count(1)
            if place < len(self._text) and accepts(self._text[place]):
                return then(place + 1)
            return FAILED

        return step

    def _branch(self, branches: Sequence[Step]) -> Step:
        def step(place: int) -> int:
            for branch in branches:
                self._count(1)
                end = branch(place)
                if end != FAILED:
                    return end
            return FAILED

        return step

    def _group(self, number: int, part: Any, then: Step, flags: int) -> Step:
        def close(place: int) -> int:
            before = self._groups.get(number)
            self._groups[number] = (self._opened[number], place)
            end = then(place)
            if end == FAILED and before is None:
                del self._groups[number]
            elif end == FAILED and before is not None:
                self._groups[number] = before
            return end

        inner = self._compile(part, close, flags)

        def step(place: int) -> int:
            before, self._opened[number] = self._opened.get(number, 0), place
            end = inner(place)
            self._opened[number] = before
            return end

        return step

    def _back_reference(self, number: int, then: Step) -> Step:
        def step(place: int) -> int:
            if number not in self._groups:
                return FAILED
            start, end = self._groups[number]
            self._count(1 + end - start)
            if self._text[place : place + end - start] != self._text[start:end]:
                return FAILED
            return then(place + end - start)

        return step

    def _anchor(self, kind: Any, then: Step, flags: int) -> Step:
        def is_word(place: int) -> bool:
            text = self._text[place : place + 1]
            is_ascii = self.is_bytes or bool(flags & re.ASCII)
            return bool(text) and _is_in(ops.CATEGORY_WORD, ord(text), is_ascii)

        def holds(place: int) -> bool:
            end = len(self._text)
            newline = b"\n" if self.is_bytes else "\n"
            is_by_line = bool(flags & re.MULTILINE)
            if kind in (ops.AT_BOUNDARY, ops.AT_NON_BOUNDARY):
                is_border = (place > 0 and is_word(place - 1)) != is_word(place)
                return is_border == (kind is ops.AT_BOUNDARY)
            if kind in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
                is_start = is_by_line and self._text[place - 1 : place] == newline
                return place == 0 or (kind is ops.AT_BEGINNING and is_start)
            is_last = self._text[place:] == newline if place >= end - 1 else False
            is_ending = is_last or (is_by_line and self._text[place : place + 1] == newline)
            return place == end or (kind is ops.AT_END and is_ending)

        def step(place: int) -> int:
            self._count(1)
            return then(place) if holds(place) else FAILED

        return step

    def _atomic(self, inner: Step, then: Step) -> Step:
        def step(place: int) -> int:
            end = inner(place)
            return FAILED if end == FAILED else then(end)

        return step

    def _look(self, is_wanted: bool, value: Any, then: Step, flags: int) -> Step:
        direction, part = value
        width = part.getwidth()[1] if direction < 0 else 0
        inner = self._compile(part, _itself, flags)

        def step(place: int) -> int:
            self._count(1)
            is_found = place >= width and inner(place - width) != FAILED
            return then(place) if is_found == is_wanted else FAILED

        return step

    def _repeat(self, op: Any, value: Any, then: Step, flags: int) -> Step:
        least, most, part = value
        if most <= _LARGEST_BOUND:
            most = min(most, max(self._max_bound, 1 if most else 0))
        else:
            most = sys.maxsize
        least = min(least, self._max_bound)
        accepts = self.try_accepts(part[0], flags) if len(part) == 1 else None
        if accepts is not None:
            if op is ops.MIN_REPEAT:
                return self._lazy_run(accepts, least, most, then)
            return self._run(accepts, least, most, then, is_given_back=op is ops.MAX_REPEAT)
        if op is ops.POSSESSIVE_REPEAT:
            return self._possessive_loop(self._compile(part, _itself, flags), least, most, then)
        return self._loop(part, least, most, then, flags, is_lazy=op is ops.MIN_REPEAT)

    def _run(
        self,
        accepts: Callable[[Any], bool],
        least: int,
        most: int,
        then: Step,
        *,
        is_given_back: bool,
    ) -> Step:
        def step(place: int) -> int:
            text = self._text
            last = min(len(text), place + most)
            end = place
            while end < last and accepts(text[end]):
                end += 1
            self._count(1 + end - place)
            if not is_given_back:
                return then(end) if end - place >= least else FAILED
            while end - place >= least:
                self._count(1)
                found = then(end)
                if found != FAILED:
                    return found
                end -= 1
            return FAILED

        return step

    def _lazy_run(self, accepts: Callable[[Any], bool], least: int, most: int, then: Step) -> Step:
        def step(place: int) -> int:
            end = place
            while True:
                self._count(1)
                if end - place >= least:
                    found = then(end)
                    if found != FAILED:
                        return found
                if end == len(self._text) or end - place == most or not accepts(self._text[end]):
                    return FAILED
                end += 1

        return step

    def _possessive_loop(self, inner: Step, least: int, most: int, then: Step) -> Step:
        def step(place: int) -> int:
            number = 0
            while number < most:
                self._count(1)
                end = inner(place)
                if end == FAILED or (end == place and number >= least):
                    break
                place, number = end, number + 1
            return then(place) if number >= least else FAILED

        return step

    def _loop(
        self, part: Any, least: int, most: int, then: Step, flags: int, *, is_lazy: bool
    ) -> Step:
        now = (0, FAILED)  # how many times, and where the last one began

        def once_more(place: int, number: int) -> int:
            nonlocal now
            before, now = now, (number + 1, place)
            end = inner(place)
            now = before
            return end

        def go_on(place: int) -> int:
            nonlocal now
            self._count(1)
            number, last = now
            if number < least:
                return once_more(place, number)
            may_repeat = number < most and place != last
            if not is_lazy and may_repeat:
                end = once_more(place, number)
                if end != FAILED:
                    return end
            end = then(place)
            now = (number, last)
            if end != FAILED or not is_lazy or not may_repeat:
                return end
            return once_more(place, number)

        inner = self._compile(part, go_on, flags)

        def step(place: int) -> int:
            nonlocal now
            before, now = now, (0, FAILED)
            end = go_on(place)
            now = before
            return end

        return step


def _itself(place: int) -> int:
    return place


def _anything(_one: Any) -> bool:
    return True


def _is_among(item: Node, code: int, is_ascii: bool) -> bool:
    op, value = item
    if op is ops.LITERAL:
        return bool(code == value)
    if op is ops.RANGE:
        return bool(value[0] <= code <= value[1])
    return _is_in(value, code, is_ascii)


def _is_in(category: Any, code: int, is_ascii: bool) -> bool:
    """Whether a character is in one of the categories that `re` has letters for."""
    letter = {
        ops.CATEGORY_SPACE: r"\s",
        ops.CATEGORY_NOT_SPACE: r"\S",
        ops.CATEGORY_DIGIT: r"\d",
        ops.CATEGORY_NOT_DIGIT: r"\D",
        ops.CATEGORY_WORD: r"\w",
        ops.CATEGORY_NOT_WORD: r"\W",
    }[category]
    return re.fullmatch(letter, chr(code), re.ASCII if is_ascii else 0) is not None


def _walk(nodes: Any) -> Any:
    """All nodes of a tree."""
    for node in nodes:
        if isinstance(node, tuple) and len(node) == 2:
            yield node
            yield from _walk_value(node[1])


def _walk_value(value: Any) -> Any:
    if isinstance(value, parser.SubPattern):
        yield from _walk(value)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _walk_value(one)
