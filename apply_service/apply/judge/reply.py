"""Reads what a judge's server sent: one letter or nothing, and how near the next letter was."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from apply_service.apply.judge.answer_form import AnswerForm
from apply_service.apply.remote.chat_reply import read_chat

# An unbound answer is read from its first token if letters have so much of the probability there:
# a small model that begins with "The" may still prefer one letter to the others.
MIN_LETTER_MASS = 0.2
# White space, quotes and brackets around the letter; also how tokenizers write a space.
_AROUND = " \t\n\"'{}:,().*\u2581\u0120\u010a"


class _Weighed(msgspec.Struct):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: list[_Weighed] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter that was said.

    `margin` is how much more probable it was than the next, 0 to 1; None if that is not known.
    """

    text: str
    margin: float | None


def is_kept(payload: bytes, form: AnswerForm, letters: tuple[str, ...]) -> bool:
    """True if an answer to a rehearsal keeps to its form: any text does if nothing binds it."""
    if form.name != "text":
        return read_letter(payload, form, letters) is not None
    read = read_chat(payload)
    return read is not None and read[0].message.content is not None


def read_letter(payload: bytes, form: AnswerForm, letters: tuple[str, ...]) -> Letter | None:
    """The letter of an answer; None if the answer is anything else."""
    read = read_chat(payload)
    if read is None:
        return None
    choice, _ = read
    shares = _shares(choice.logprobs, letters, is_first=form.name == "text")
    said = form.read(choice.message.content or "")
    if said is not None and said in letters:
        return Letter(said, _margin(said, shares))
    if form.name == "text" and sum(shares.values()) >= MIN_LETTER_MASS:
        # Perhaps it is the article "A": nobody said it, so it is never sure.
        return Letter(max(shares, key=shares.__getitem__), None)
    return None


def _shares(logprobs: Any, letters: tuple[str, ...], *, is_first: bool) -> dict[str, float]:
    """The probability of each letter where the letter stands, or at the first token."""
    try:
        tokens = msgspec.convert(logprobs, _Logprobs).content or []
    except msgspec.ValidationError:
        return {}
    tokens = tokens[:1] if is_first else [one for one in tokens if _bare(one.token) in letters]
    shares: dict[str, float] = {}
    for text, logprob in _ways(tokens):
        if _bare(text) in letters:
            shares[_bare(text)] = shares.get(_bare(text), 0.0) + math.exp(min(logprob, 0.0))
    return shares


def _ways(tokens: Sequence[_Token]) -> Iterator[tuple[str, float]]:
    """The texts that might have stood in the place of the last token, each once."""
    for token in tokens[-1:]:
        found = {one.token: one.logprob for one in token.top_logprobs or ()}
        yield from (found | {token.token: token.logprob}).items()


def _margin(said: str, shares: dict[str, float]) -> float | None:
    """None if the letter has no probability; the rest is the next one's where that has none."""
    mine = shares.get(said)
    if not mine:
        return None
    others = [share for letter, share in shares.items() if letter != said]
    next_one = max(others) if others else max(1.0 - mine, 0.0)
    return (mine - next_one) / (mine + next_one)


def _bare(token: str) -> str:
    return token.strip(_AROUND)
