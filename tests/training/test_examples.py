from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest
from training_case import training_case

from apply_service.prompts.profile import Profile, PromptRequest, load_profile
from snippets.hunks import find_hunks
from training.case_file import TrainingCase
from training.examples import (
    MAX_LONG_TOKENS,
    ExampleWindow,
    condense,
    cut_window,
    make_examples,
    tokenise,
)

ORIGINAL = [
    line
    for number in range(40)
    for line in (f"def function_{number}(value):", f"    return value + {number}", "", "")
]


def case_of(expected: list[str], name: str = "package@1..2:a.py") -> TrainingCase:
    return training_case(ORIGINAL, expected, name=name)


@pytest.fixture
def case() -> TrainingCase:
    expected = list(ORIGINAL)
    expected[81] = "    return value * 20"
    expected[120:120] = ["LATE = 1", ""]
    del expected[4:8]
    return case_of(expected)


@pytest.fixture(scope="module")
def profile(tiny_model_dir: Path) -> Profile:
    return load_profile("embedded", tiny_model_dir)


@pytest.mark.parametrize("seed", range(60))
def test_a_window_is_a_true_part_of_both_files(case: TrainingCase, seed: int) -> None:
    window = cut_window(case, max_tokens=400, rng=random.Random(seed))
    if window is None:
        return
    original, expected = case.original.split("\n"), case.expected.split("\n")
    assert holds_in_order(original, window.original)
    assert holds_in_order(expected, window.expected)
    assert window.original != window.expected
    assert window.update


def holds_in_order(lines: list[str], part: list[str]) -> bool:
    """Whether `part` is left when some of `lines` are dropped."""
    remaining = iter(lines)
    return all(line in remaining for line in part)


def test_most_windows_succeed_and_are_about_as_large_as_asked(case: TrainingCase) -> None:
    sizes = {}
    for max_tokens in (200, 700):
        windows = [
            cut_window(case, max_tokens=max_tokens, rng=random.Random(seed)) for seed in range(50)
        ]
        lengths = [len("\n".join(w.original)) for w in windows if w is not None]
        assert len(lengths) >= 40
        sizes[max_tokens] = sum(lengths) / len(lengths)
    assert sizes[700] > 2 * sizes[200]


def test_windows_are_deterministic(case: TrainingCase) -> None:
    first = cut_window(case, max_tokens=300, rng=random.Random(1))
    assert first == cut_window(case, max_tokens=300, rng=random.Random(1))


def test_small_files_stay_whole() -> None:
    small = replace(
        case_of([]),
        original="a = 1\nb = 2\nc = 3\nd = 4\n",
        expected="a = 1\nb = 5\nc = 3\nd = 4\n",
    )
    window = cut_window(small, max_tokens=700, rng=random.Random(0))
    assert window is not None
    assert window.original == ["a = 1", "b = 2", "c = 3", "d = 4"]


def test_an_example_is_what_the_service_would_ask_and_expect(profile: Profile) -> None:
    window = ExampleWindow(
        "id", ["a = 1", "b = 2"], ["# ...", "b = 3"], ["a = 1", "b = 3"], "context"
    )
    example = tokenise(window, profile)
    assert example is not None
    prompt = profile.build(PromptRequest(window.original, window.update, segments=()))
    assert example.prompt_token_ids == prompt.token_ids
    assert prompt.parse_answer(example.answer_token_ids) == ["a = 1", "b = 3"]
    assert example.answer_token_ids[-1] in prompt.stop_token_ids
    assert len(example) == len(example.prompt_token_ids) + len(example.answer_token_ids)


def test_text_that_cannot_be_encoded_is_left_out(profile: Profile) -> None:
    assert tokenise(ExampleWindow("id", ["\ud800"], ["x"], ["y"], "context"), profile) is None


def test_examples_keep_to_the_limit_and_differ(case: TrainingCase, profile: Profile) -> None:
    cases = [replace(case, id=f"package@1..2:{number}.py") for number in range(40)]
    examples = list(make_examples(cases, profile, per_case=4))
    assert len(examples) >= 4
    for one in cases:
        prompts = [e.prompt_token_ids for e in examples if e.case_id == one.id]
        assert len(set(prompts)) == len(prompts) <= 4
    assert all(len(example) <= MAX_LONG_TOKENS for example in examples)
    assert examples == list(make_examples(cases, profile, per_case=4))
    assert examples != list(make_examples(cases, profile, per_case=4, seed=1))


SPACED_ORIGINAL = [
    line
    for number in range(40)
    for line in (f"def function_{number}(value):", f"    return value + {number}", "", "")
]


def changed(lines: list[str], hunks: list[tuple[int, int]]) -> list[str]:
    expected = list(lines)
    for place, (at, num_removed) in reversed(list(enumerate(hunks))):
        expected[at : at + num_removed] = [f"new_{place} = {at}"]
    return expected


@pytest.mark.parametrize("seed", range(30))
def test_the_edit_stays_and_the_stretches_between_get_short(seed: int) -> None:
    rng = random.Random(seed)
    expected = changed(SPACED_ORIGINAL, [(20, 1), (60, 0), (61, 2), (140, 1)])
    hunks = find_hunks(SPACED_ORIGINAL, expected)
    old, new = condense(SPACED_ORIGINAL, expected, hunks, rng=rng)
    condensed = find_hunks(old, new)
    assert len(old) < len(SPACED_ORIGINAL) - 60
    assert [old[h.old_start : h.old_end] for h in condensed] == [
        SPACED_ORIGINAL[h.old_start : h.old_end] for h in hunks
    ]
    assert [new[h.new_start : h.new_end] for h in condensed] == [
        expected[h.new_start : h.new_end] for h in hunks
    ]
    assert old[:20] == SPACED_ORIGINAL[:20]
    assert old[-15:] == SPACED_ORIGINAL[-15:]
    for first, second in itertools.pairwise(condensed):
        assert second.old_start - first.old_end >= 1


def test_short_stretches_stay_whole() -> None:
    expected = changed(SPACED_ORIGINAL, [(20, 1), (26, 1), (33, 1)])
    hunks = find_hunks(SPACED_ORIGINAL, expected)
    condensed = condense(SPACED_ORIGINAL, expected, hunks, rng=random.Random(0))
    assert condensed == (SPACED_ORIGINAL, expected)


def test_cuts_are_made_at_blank_lines_where_they_are_near() -> None:
    expected = changed(SPACED_ORIGINAL, [(20, 1), (140, 1)])
    hunks = find_hunks(SPACED_ORIGINAL, expected)
    for seed in range(20):
        old, _ = condense(SPACED_ORIGINAL, expected, hunks, rng=random.Random(seed))
        for line, following in itertools.pairwise(old):
            if line.startswith("def"):
                assert following.startswith("    return") or following.startswith("new")
