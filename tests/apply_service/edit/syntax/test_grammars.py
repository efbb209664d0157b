"""How a parse ends: with a tree, or when it takes too much work."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import tree_sitter

from apply_service.edit.syntax import grammars
from apply_service.edit.syntax.grammars import (
    CALLS_PER_LOOK,
    MAX_PARSE_S,
    Grammar,
    try_load_grammar,
)


def loaded() -> Grammar:
    grammar = try_load_grammar("python")
    assert grammar is not None
    return grammar


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What the parser's callback says when called again and again, until it says stop."""
    answers: list[bool] = []

    class Parser:
        def __init__(self, language: tree_sitter.Language) -> None:
            pass

        def parse(
            self,
            read: Callable[[int, object], bytes],
            *,
            encoding: str,
            progress_callback: Callable[[int, bool], bool],
        ) -> None:
            while len(answers) < 10 * CALLS_PER_LOOK:
                answers.append(progress_callback(len(answers), False))
                if answers[-1]:
                    raise ValueError("Parsing failed")

    monkeypatch.setattr(tree_sitter, "Parser", Parser)
    return answers


def test_a_parse_beyond_its_time_ends_at_the_next_look(
    progress: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "thread_time", lambda: 0.4 * MAX_PARSE_S * next(ticks))
    assert loaded().parse(b"x = 1\n") is None
    assert progress == [False] * (3 * CALLS_PER_LOOK - 1) + [True]


def test_the_clock_is_not_asked_at_every_call(
    progress: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def thread_time() -> float:
        looks.append(0.0)
        return 0.0

    monkeypatch.setattr(time, "thread_time", thread_time)
    loaded().parse(b"x = 1\n")
    assert len(looks) == 1 + len(progress) // CALLS_PER_LOOK
    assert not any(progress)


def test_each_parse_counts_for_itself(
    progress: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammars, "MIN_CALLS", 20)
    grammar = loaded()
    for _ in range(2):
        progress.clear()
        assert grammar.parse(b"x = 1\n") is None
        assert len(progress) == 21


def test_errors_that_never_end_give_no_tree_whatever_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    typescript = try_load_grammar("typescript")
    assert typescript is not None
    assert typescript.parse(b"{ a < b; > " * 200) is not None
    monkeypatch.setattr(grammars, "CALLS_PER_BYTE", 0)
    monkeypatch.setattr(grammars, "MIN_CALLS", 10)
    assert typescript.parse(b"{ a < b; > " * 200) is None
