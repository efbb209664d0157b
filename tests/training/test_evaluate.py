from __future__ import annotations

from pathlib import Path

import pytest
from case_files import case_file, read_records
from training_case import training_case

from apply_service.prompts.profile import load_profile
from apply_service.prompts.tokenizer import PromptTokenizer
from training.adapter_model import AdapterModel
from training.evaluate import Share, evaluate, read_short_edits, served
from training.example import Example
from training.served import unscaled_profile

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
SHORT_EDITS = case_file("short_edits")


def test_wilson_intervals_match_known_values() -> None:
    assert Share(8, 10).interval() == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert Share(0, 20).interval() == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert Share(0, 0).interval() == (0.0, 1.0)
    assert Share(0, 0).value == 0.0


def test_evaluation_counts_exact_answers_and_names_the_others(tiny_model_dir: Path) -> None:
    model = AdapterModel(tiny_model_dir, rank=2, alpha=2, seed=0)
    prompt = (1, 2, 3)
    right = int(model.answer_logits(Example("", "", prompt, (0,)))[0].argmax())
    examples = [
        Example("right", "", prompt, (right,)),
        Example("wrong", "", prompt, ((right + 1) % 50,)),
    ]
    report = evaluate(model, examples)
    assert (report["num_exact"], report["n"], report["exact"]) == (1, 2, 0.5)
    assert report["wrong_tokens"] == {"wrong": 1}


def test_the_short_edits_are_ten_real_edits_in_five_languages(tiny_model_dir: Path) -> None:
    cases = read_records("short_edits")
    assert len(cases) == 10
    assert len({Path(case["path"]).suffix for case in cases}) >= 5
    for case in cases:
        assert 18 <= case["original"].count("\n") <= 40
        assert case["original"] != case["expected"]
        new_lines = set(case["expected"].split("\n")) - set(case["original"].split("\n"))
        assert new_lines <= set(case["update"].split("\n")), case["id"]
    profile = load_profile("embedded", tiny_model_dir)
    assert len(list(read_short_edits(SHORT_EDITS, profile))) == 10


def test_the_services_questions_have_whole_answers(tiny_model_dir: Path) -> None:
    lines = [f"value_{number} = {number}" for number in range(8)]
    expected = [*lines[:3], "value_3 = 4", *lines[4:]]
    update = ["# ... existing code ...", "value_2 = 2", "value_3 = 4", "value_4 = 4", "# ..."]
    case = training_case(lines, expected, update, name="one")
    (asked,) = served([case], unscaled_profile(tiny_model_dir))
    tokenizer = PromptTokenizer.from_dir(tiny_model_dir)
    answer = tokenizer.decode_bytes(asked.answer_token_ids).decode()
    assert "value_3 = 4" in answer
    assert "value_7 = 7" in answer
