"""What the contenders write: edits of files, code that stands nowhere yet, and talk about code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from apply_service.apply.engine_requests import drafts_of
from apply_service.prompts.profile import Profile
from batching.recipes import EditDrafts
from benchmarks.speed.case import ordered_cases, try_prepare

Kind = Literal["edit", "code", "chat"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_CODE = (
    "a function that parses an ISO 8601 duration such as P3DT4H into seconds",
    "a class for a bounded least-recently-used cache with get, put and statistics",
    "a function that merges overlapping intervals and returns them sorted",
    "a small tokenizer for arithmetic expressions, and a recursive descent parser for them",
    "a context manager that measures the time of a block and logs it",
    "a function that reads a CSV file and groups its rows by one column",
    "a thread-safe counter with increments, resets and a snapshot",
    "a retry decorator with exponential back-off and jitter",
    "a function that finds the shortest path in a weighted graph with Dijkstra's algorithm",
    "a class that represents a polynomial with addition, multiplication and evaluation",
    "a command line program that counts words, lines and characters of files",
    "a function that validates an IPv4 address without regular expressions",
)
_CHAT = (
    "What is the difference between a list and a tuple in Python, and when do I take which?",
    "Explain what a race condition is, with an example and a way to avoid it.",
    "How does garbage collection work in CPython?",
    "What does idempotent mean for an HTTP method, and why does it matter for retries?",
    "When should I write a test first, and when is that not worth it?",
    "Explain the difference between concurrency and parallelism to a beginner.",
    "What is a memory leak in a language with garbage collection? Give two causes.",
    "How do I choose between a hash map and a balanced tree?",
    "What makes a good commit message?",
    "Explain what an index does in a database, and what it costs.",
    "Why is floating point addition not associative? Show an example.",
    "What is dependency injection good for, and when is it too much?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One answer to write. `drafts` is what an edit may copy; others may copy their own prompt."""

    name: str
    kind: Kind
    prompt_token_ids: tuple[int, ...]
    stop_token_ids: frozenset[int]
    max_tokens: int
    drafts: EditDrafts


def make_tasks(
    kind: Kind, profile: Profile, *, cases: Path, count: int, max_tokens: int, max_prompt: int
) -> list[Task]:
    """At most `count` tasks of a kind. Raises CaseFileError."""
    if kind == "edit":
        edits = _edits(profile, cases, max_tokens=max_tokens)
        short = (one for one in edits if len(one.prompt_token_ids) <= max_prompt)
        return list(islice(short, count))
    texts = _CODE if kind == "code" else _CHAT
    ask: Callable[[str], str] = _ask_for_code if kind == "code" else str
    return [
        _conversation(f"{kind}-{at}", kind, ask(text), profile, max_tokens=max_tokens)
        for at, text in enumerate(texts[:count])
    ]


def _edits(profile: Profile, cases: Path, *, max_tokens: int) -> Iterator[Task]:
    for case in ordered_cases(cases, seed=0):
        prepared = try_prepare(case, profile, max_tokens=max_tokens)
        if prepared is None:
            continue
        yield Task(
            name=case.id,
            kind="edit",
            prompt_token_ids=tuple(prepared.prompt.token_ids),
            stop_token_ids=prepared.prompt.stop_token_ids,
            max_tokens=prepared.max_tokens,
            drafts=drafts_of(
                prepared.prompt,
                predicted_token_ids=prepared.predicted_token_ids,
                rival_token_ids=prepared.rival_token_ids,
            ),
        )


def _ask_for_code(what: str) -> str:
    return f"Write {what}, in Python, with type hints and docstrings. Answer with code alone."


def _conversation(name: str, kind: Kind, text: str, profile: Profile, *, max_tokens: int) -> Task:
    """A question in ChatML, which the embedded model speaks."""
    tokenizer = profile.tokenizer
    start, end = (tokenizer.control_token_id(token) for token in ("<|im_start|>", "<|im_end|>"))
    asked, answer = tokenizer.encode(f"user\n{text}"), tokenizer.encode("assistant\n")
    token_ids = (start, *asked, end, *tokenizer.encode("\n"), start, *answer)
    return Task(
        name=name,
        kind=kind,
        prompt_token_ids=token_ids,
        stop_token_ids=frozenset({end}),
        max_tokens=max_tokens,
        drafts=EditDrafts(original=(), snippet_segments=(), prediction=token_ids),
    )
