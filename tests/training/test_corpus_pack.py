from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rival_places import merge_case

from apply_service.prompts.profile import Profile, load_profile
from training.case_file import TrainingCase, document_lines, write_cases
from training.corpus_pack import MAX_TOKENS, examples_of, main, window_cases
from training.pack import read_pack


@pytest.fixture(scope="module")
def profile(tiny_model_dir: Path) -> Profile:
    return load_profile("embedded", tiny_model_dir)


def long_case(name: str = "a") -> TrainingCase:
    case = merge_case(name=name)
    after = "".join(f"\n\ndef after_{n}(value):\n    return {n}\n" for n in range(60))
    return replace(case, original=case.original + after, expected=case.expected + after)


def test_parts_of_a_case_are_smaller_cases_with_the_same_change() -> None:
    case = long_case()
    parts = list(window_cases(case, 10))
    assert parts == list(window_cases(case, 10))
    assert len({part.original for part in parts}) > 2
    for part in parts:
        assert part.original in case.original
        assert part.expected in case.expected
        num_added = len(document_lines(part.expected)) - len(document_lines(part.original))
        assert num_added == 1


def test_a_case_gives_choices_and_plain_answers_and_nothing_twice(profile: Profile) -> None:
    examples = list(examples_of(long_case(), profile, num_updates=10, max_tokens=2000))
    prompts = [example.prompt_token_ids for example in examples]
    assert len(prompts) == len(set(prompts))
    assert {bool(example.choices) for example in examples} == {True, False}
    assert max(map(len, examples)) <= 2000
    assert not list(examples_of(long_case(), profile, num_updates=1, max_tokens=10))


def test_whole_answers_are_not_cut_off(profile: Profile) -> None:
    case = long_case()
    cut = list(examples_of(case, profile, num_updates=3, max_tokens=4000))
    whole = list(examples_of(case, profile, num_updates=3, max_tokens=4000, is_whole=True))
    answers = {example.prompt_token_ids: example.answer_token_ids for example in whole}
    assert {bool(example.choices) for example in whole} == {True, False}
    shared = [example for example in cut if example.choices and example.prompt_token_ids in answers]
    assert any(len(answers[one.prompt_token_ids]) > len(one.answer_token_ids) for one in shared)
    for example in shared:
        answer = answers[example.prompt_token_ids]
        assert answer[: len(example.answer_token_ids)] == example.answer_token_ids


def test_brief_updates_come_besides(profile: Profile) -> None:
    case = long_case()
    usual = set(examples_of(case, profile, num_updates=1, max_tokens=4000))
    more = set(examples_of(case, profile, num_updates=1, num_terse=4, max_tokens=4000))
    assert usual < more


def test_the_command_packs_a_share_of_the_cases(
    tiny_model_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(tmp_path / "train.jsonl", [long_case(str(n)) for n in range(6)])
    write_cases(tmp_path / "dev.jsonl", [long_case("dev")])
    arguments = ["--base", str(tiny_model_dir), "--cases", str(tmp_path), "--out", str(tmp_path)]
    arguments += ["--max-tokens", "3000"]
    assert main(arguments) == 0
    whole = read_pack(tmp_path / "train.pack")
    assert {example.case_id for example in whole} == set("012345")
    assert {example.case_id for example in read_pack(tmp_path / "dev.pack")} == {"dev"}
    assert f"{len(whole)} examples" in capsys.readouterr().out
    assert main([*arguments, "--share", "0.34"]) == 0
    part = read_pack(tmp_path / "train.pack")
    assert len({example.case_id for example in part}) == 2
    assert set(part) <= set(whole)
    arguments[-1] = "9000"
    assert main([*arguments, "--long"]) == 0
    long = read_pack(tmp_path / "train.pack")
    assert long
    assert all(MAX_TOKENS < len(example) <= 9000 and not example.choices for example in long)
    arguments[-1] = str(MAX_TOKENS)
    with pytest.raises(SystemExit):
        main([*arguments, "--long"])
    assert "--max-tokens 900: with --long more than 900 are needed" in capsys.readouterr().err
