from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rival_places import ORIGINAL, changed, changed_part, merge_case, sure_update

from apply_service.prompts.profile import Profile, load_profile
from snippets.written_segments import merged_lines
from training.case_file import TrainingCase
from training.served import (
    NUM_TAIL_TOKENS,
    questions_of,
    rewrite,
    rewrite_tersely,
    served_examples,
    to_example,
)


@pytest.fixture(scope="module")
def profile(tiny_model_dir: Path) -> Profile:
    return load_profile("embedded", tiny_model_dir)


@pytest.mark.parametrize("method", ["load", "save"])
def test_a_place_that_fits_twice_is_a_choice_with_the_truth_among_it(
    profile: Profile, method: str
) -> None:
    (question,) = questions_of(merge_case(method), profile)
    assert question.is_path
    prompt = question.region_prompt.prompt
    expected = changed_part(changed(method), question.region_prompt.region)
    assert prompt.parse_answer(question.answer_token_ids) == expected
    assert len(question.choices) >= 1
    for choice in question.choices:
        assert len(choice.allowed_token_ids) > 1
        assert question.answer_token_ids[choice.offset] in choice.allowed_token_ids


def test_the_first_guess_is_right_for_one_of_two_rival_places_alone(profile: Profile) -> None:
    guesses = [questions_of(merge_case(method), profile)[0] for method in ("load", "save")]
    assert sorted(question.is_first_guess for question in guesses) == [False, True]


def test_a_sure_place_leaves_no_choice(profile: Profile) -> None:
    (question,) = questions_of(merge_case("save", update=sure_update("save")), profile)
    assert (question.is_path, question.is_first_guess, question.choices) == (True, True, ())


def test_a_truth_that_is_no_merge_of_the_update_is_a_plain_answer(profile: Profile) -> None:
    case = merge_case()
    other = replace(case, expected=case.expected.replace("used", "other"))
    (question,) = questions_of(other, profile)
    assert (question.is_path, question.is_first_guess, question.choices) == (False, False, ())
    answer = question.region_prompt.prompt.parse_answer(question.answer_token_ids)
    assert answer == changed_part(other.expected, question.region_prompt.region)


def long_case(padding: int) -> TrainingCase:
    """The case inside a file of several regions."""
    before = "".join(f"def before_{n}(value):\n    return {n}\n\n\n" for n in range(padding))
    after = "".join(f"\n\ndef after_{n}(value):\n    return {n}\n" for n in range(padding))
    case = merge_case(update=sure_update("save"))
    return replace(
        case, original=before + ORIGINAL + after, expected=before + case.expected + after
    )


def test_a_region_of_a_file_is_answered_with_its_own_lines(profile: Profile) -> None:
    case = long_case(80)
    (question,) = questions_of(case, profile)
    region = question.region_prompt.region
    lines = case.original.splitlines()
    assert 0 < region.start < region.end < len(lines)
    answer = question.region_prompt.prompt.parse_answer(question.answer_token_ids)
    spliced = [*lines[: region.start], *answer, *lines[region.end :]]
    assert spliced == case.expected.splitlines()


def test_a_region_with_changes_around_it_has_no_answer(profile: Profile) -> None:
    case = long_case(80)
    lines = case.expected.splitlines()
    lines[0] = "def renamed(value):"
    assert questions_of(replace(case, expected="\n".join(lines) + "\n"), profile) == []


def test_an_update_that_cannot_be_read_asks_nothing(profile: Profile) -> None:
    assert questions_of(merge_case(update="# ... existing code ...\n"), profile) == []
    assert questions_of(replace(merge_case(), original="a\0b\n"), profile) == []


def test_an_example_ends_soon_after_its_last_choice(profile: Profile) -> None:
    (question,) = questions_of(merge_case(), profile)
    example = to_example(question, merge_case(), max_tokens=10_000)
    assert example is not None
    last = example.choices[-1].offset
    whole = question.answer_token_ids
    assert example.answer_token_ids == whole[: last + 1 + NUM_TAIL_TOKENS]
    assert to_example(question, merge_case(), max_tokens=len(example)) == example
    assert to_example(question, merge_case(), max_tokens=len(example) - 1) is None


def test_an_example_without_a_choice_is_whole(profile: Profile) -> None:
    case = merge_case(update=sure_update("save"))
    (question,) = questions_of(case, profile)
    example = to_example(question, case, max_tokens=10_000)
    assert example is not None
    assert example.answer_token_ids == question.answer_token_ids


def test_rewritten_updates_keep_the_edit_and_are_the_same_in_every_run() -> None:
    case = long_case(3)
    assert rewrite(case, 0) is case
    written = [rewrite(case, number) for number in range(1, 9)]
    assert written == [rewrite(case, number) for number in range(1, 9)]
    found = [one for one in written if one is not None]
    assert {(one.original, one.expected) for one in found} == {(case.original, case.expected)}
    assert len({one.update for one in found}) > 2


def test_terse_updates_are_others_of_the_same_edit() -> None:
    case = long_case(3)
    written = [rewrite_tersely(case, number) for number in range(8)]
    assert written == [rewrite_tersely(case, number) for number in range(8)]
    found = [one for one in written if one is not None]
    assert {(one.original, one.expected) for one, _ in found} == {(case.original, case.expected)}
    assert len({one.update for one, _ in found}) > 4
    for one, segments in found:
        assert one.style.startswith("terse_")
        assert merged_lines(segments, case.original.splitlines()) == case.expected.splitlines()


def test_no_question_is_learnt_twice(profile: Profile) -> None:
    case = long_case(3)
    examples = list(served_examples(case, profile, num_updates=12, max_tokens=10_000))
    prompts = [example.prompt_token_ids for example in examples]
    assert len(prompts) == len(set(prompts)) > 2
