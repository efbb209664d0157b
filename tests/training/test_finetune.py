from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from apply_service.models.manifest import file_sha256
from training.adapter_model import LOSS_WEIGHTS, AdapterModel, LossWeights
from training.example import Example, TokenChoice
from training.finetune import (
    LEARNING_RATE,
    MIN_KEPT_SHARE,
    FinetuneError,
    Schedule,
    Trainer,
    kept_share,
    main,
    packed,
    run,
)
from training.mixture import EXAMPLES_PER_STEP, Mixture
from training.pack import write_pack

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")


@pytest.fixture
def examples() -> list[Example]:
    rng = random.Random(0)
    drawn = []
    for number in range(12):
        prompt = tuple(rng.randrange(200) for _ in range(10))
        drawn.append(Example(str(number), "context", prompt, (*prompt[2:8], 5)))
    return drawn


def new_model(base: Path) -> AdapterModel:
    return AdapterModel(base, rank=4, alpha=8, seed=3)


def weights(model: AdapterModel) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def is_equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def is_near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Equal but for the order of sums, whose errors grow with the largest of what is added."""
    tolerance = torch.finfo(found.dtype).eps * (16 + 512 * float(expected.abs().max()))
    return bool((found - expected).abs().max() <= tolerance)


def test_the_loss_counts_the_answer_alone(tiny_model_dir: Path, examples: list[Example]) -> None:
    """Against the loss taken from all logits, position by position."""
    model = new_model(tiny_model_dir)
    example = examples[0]
    whole = Example(
        "whole",
        "",
        example.prompt_token_ids[:1],
        (
            *example.prompt_token_ids[1:],
            *example.answer_token_ids,
        ),
    )
    log_probs = model.answer_logits(whole).log_softmax(-1)
    expected = torch.zeros(())
    first = len(example.prompt_token_ids) - 1
    for offset, token_id in enumerate(example.answer_token_ids):
        expected = expected - log_probs[first + offset, token_id]
    assert torch.allclose(model.loss([example], LossWeights()), expected, rtol=1e-4)
    assert model.answer_logits(example).shape[0] == len(example.answer_token_ids)


def test_a_score_is_exact_if_greedy_decoding_would_write_the_answer(
    tiny_model_dir: Path, examples: list[Example]
) -> None:
    model = new_model(tiny_model_dir)
    prompt = examples[0].prompt_token_ids
    written: tuple[int, ...] = ()
    for _ in range(5):
        logits = model.answer_logits(Example("", "", prompt, (*written, 0)))
        written += (int(logits[-1].argmax()),)
    assert model.score(Example("", "", prompt, written)).is_exact
    wrong = (*written[:-1], (written[-1] + 1) % 100)
    score = model.score(Example("", "", prompt, wrong))
    assert (score.num_wrong, score.num_tokens) == (1, 5)


def test_training_changes_the_adapter_and_lowers_the_loss(
    tiny_model_dir: Path, examples: list[Example]
) -> None:
    model = new_model(tiny_model_dir)
    trainer = Trainer(model, Mixture(examples, seed=0))
    before = weights(model)
    schedule = Schedule(minutes=1, max_steps=40)
    losses = [trainer.train_step(schedule)["loss"] for _ in range(25)]
    assert not is_equal(before, weights(model))
    assert losses[-1] < losses[0]


def test_a_resumed_run_ends_in_the_same_state(
    tiny_model_dir: Path, examples: list[Example], tmp_path: Path
) -> None:
    schedule = Schedule(minutes=1, max_steps=6)
    straight_model = new_model(tiny_model_dir)
    straight = Trainer(straight_model, Mixture(examples, seed=7))
    for _ in range(6):
        straight.train_step(schedule)
    interrupted = Trainer(new_model(tiny_model_dir), Mixture(examples, seed=7))
    for _ in range(3):
        interrupted.train_step(schedule)
    interrupted.save(tmp_path)
    resumed_model = AdapterModel(tiny_model_dir, rank=4, alpha=8, seed=99)
    resumed = Trainer(resumed_model, Mixture(examples, seed=0))
    assert resumed.try_resume(tmp_path)
    assert resumed.step == 3
    for _ in range(3):
        resumed.train_step(schedule)
    assert is_equal(weights(straight_model), weights(resumed_model))


def test_what_is_left_out_is_made_up_for_by_what_is_kept(
    tiny_model_dir: Path, examples: list[Example]
) -> None:
    """The gradient of every kept example is that of the full pass over its probability."""
    model = new_model(tiny_model_dir)
    example = examples[0]
    loss = model.loss([example], LossWeights())
    full = torch.autograd.grad(loss, model.parameters())
    share = kept_share(loss.item(), 2 * loss.item())
    assert share == pytest.approx(0.5)
    num_kept = 0
    for seed in range(64):
        mixture = Mixture([example], seed=seed, examples_per_step=1)
        trainer = Trainer(model, mixture, weights=LossWeights(), sure_loss=loss.item() / share)
        _, kept = trainer._take_gradients([example])
        num_kept += kept
        for parameter, gradient in zip(model.parameters(), full, strict=True):
            if kept:
                assert parameter.grad is not None
                assert is_near(parameter.grad, gradient / share)
            else:
                assert parameter.grad is None
            parameter.grad = None
    assert 16 < num_kept < 48


def test_a_step_in_which_all_is_left_out_changes_nothing(
    tiny_model_dir: Path, examples: list[Example]
) -> None:
    model = new_model(tiny_model_dir)
    before = weights(model)
    for seed in range(1000):
        if random.Random(f"{seed}:0").random() >= MIN_KEPT_SHARE:
            break
    trainer = Trainer(model, Mixture(examples[:1], seed=seed, examples_per_step=1), sure_loss=1e9)
    report = trainer.train_step(Schedule(minutes=1, max_steps=4))
    assert (report["kept_passes"], report["step"]) == (0, 1)
    assert report["loss"] > 0
    assert is_equal(before, weights(model))


@pytest.mark.parametrize(
    ("loss", "sure_loss", "share"),
    [
        (0.0, 0.0, 1.0),
        (5.0, 0.0, 1.0),
        (2.0, 2.0, 1.0),
        (1.0, 2.0, 0.5),
        (0.0, 2.0, MIN_KEPT_SHARE),
    ],
)
def test_the_less_there_is_to_learn_the_less_is_kept(
    loss: float, sure_loss: float, share: float
) -> None:
    assert kept_share(loss, sure_loss) == share


def test_there_is_nothing_to_resume_in_an_empty_folder(
    tiny_model_dir: Path, examples: list[Example], tmp_path: Path
) -> None:
    assert not Trainer(new_model(tiny_model_dir), Mixture(examples, seed=0)).try_resume(tmp_path)


def test_every_epoch_has_every_example_once_in_a_new_order(
    tiny_model_dir: Path, examples: list[Example]
) -> None:
    trainer = Trainer(new_model(tiny_model_dir), Mixture(examples, seed=0))
    ids = [example.case_id for step in range(3) for example in trainer.batch(step)]
    assert len(ids) == 3 * EXAMPLES_PER_STEP == 2 * len(examples)
    first, second = ids[: len(examples)], ids[len(examples) :]
    assert sorted(first) == sorted(second) == sorted(example.case_id for example in examples)
    assert first != second


def test_a_run_writes_checkpoint_and_log_and_can_be_loaded_for_use(
    tiny_model_dir: Path, examples: list[Example], tmp_path: Path
) -> None:
    model = new_model(tiny_model_dir)
    trainer = Trainer(model, Mixture(examples, seed=0))
    run(trainer, Schedule(minutes=1, max_steps=3), dev=examples[:2], out=tmp_path, every_s=0.0)
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().split("\n")[:-1]]
    assert [entry["step"] for entry in entries if "loss" in entry] == [1, 2, 3]
    assert entries[-1]["is_last"]
    settings = json.loads((tmp_path / "ckpt" / "adapter_config.json").read_text())
    assert settings["peft_type"] == "LORA"
    assert settings["base_model_name_or_path"] is None
    loaded = AdapterModel.for_use(tiny_model_dir, tmp_path / "ckpt", dtype=torch.float32)
    assert torch.equal(loaded.answer_logits(examples[0]), model.answer_logits(examples[0]))


def test_the_learning_rate_warms_up_and_falls_with_the_time() -> None:
    schedule = Schedule(minutes=10)
    assert schedule.learning_rate(0, 0.0) == pytest.approx(LEARNING_RATE / 5)
    assert schedule.learning_rate(10, 0.0) == pytest.approx(LEARNING_RATE)
    rates = [schedule.learning_rate(50, seconds) for seconds in (60.0, 300.0, 590.0)]
    assert rates == sorted(rates, reverse=True)
    assert schedule.progress(3, 900.0) == 1.0
    assert Schedule(minutes=10, max_steps=4).progress(1, 599.0) == 0.25


def test_a_choice_is_learnt_among_what_is_allowed(tiny_model_dir: Path) -> None:
    """The weighted loss, against softmax over the allowed logits taken by hand."""
    model = new_model(tiny_model_dir)
    example = Example("", "", (9, 8, 7), (4, 30, 5), (TokenChoice(1, (20, 30, 40)),))
    logits = model.answer_logits(example).detach()
    allowed = logits[1, [20, 30, 40]].softmax(-1)
    plain = model.loss([example], LossWeights())
    weighted = model.loss([example], LossWeights(token=0.5, choice=3.0))
    assert torch.allclose(weighted, 0.5 * plain - 3.0 * allowed[1].log(), rtol=1e-4)
    assert LossWeights(token=0.5, choice=3.0).total(example) == 0.5 * 3 + 3.0
    score = model.score(example)
    assert score.num_choices == 1
    assert score.num_wrong_choices == int(allowed.argmax() != 1)
    assert score.choice_loss_sum == pytest.approx(-float(allowed[1].log()), rel=1e-4)


def test_weighted_training_learns_choices(tiny_model_dir: Path) -> None:
    rng = random.Random(1)
    examples = []
    for number in range(8):
        prompt = tuple(rng.randrange(200) for _ in range(8))
        choice = TokenChoice(1, tuple(sorted(set(prompt))))
        examples.append(Example(str(number), "", prompt, (3, prompt[0]), (choice,)))
    trainer = Trainer(new_model(tiny_model_dir), Mixture(examples, seed=0))
    before = trainer.evaluate(examples)
    schedule = Schedule(minutes=1, max_steps=60, peak_learning_rate=3e-3)
    for _ in range(60):
        trainer.train_step(schedule)
    after = trainer.evaluate(examples)
    assert before["dev_choices"] == after["dev_choices"] == 8
    assert after["dev_choice_loss"] < before["dev_choice_loss"]
    assert after["dev_choices_right"] >= before["dev_choices_right"]


@pytest.mark.parametrize("max_tokens", [0, 20, 40, 1000])
def test_packed_groups_keep_the_order_and_the_limit(
    examples: list[Example], max_tokens: int
) -> None:
    groups = packed(examples, max_tokens)
    assert [example for group in groups for example in group] == examples
    for group in groups:
        assert len(group) == 1 or sum(map(len, group)) <= max_tokens
    for group, following in pairwise(groups):
        assert sum(map(len, [*group, following[0]])) > max_tokens


def test_examples_in_one_pass_do_not_see_each_other(
    tiny_model_dir: Path, examples: list[Example]
) -> None:
    """Loss and gradients of a packed pass are the sums of those of single passes."""
    model = new_model(tiny_model_dir)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.1)
    chosen = [replace(examples[0], choices=(TokenChoice(2, (1, examples[0].answer_token_ids[2])),))]
    chosen += [replace(examples[1], prompt_token_ids=(7, 8)), examples[2]]
    found = {}
    for name, groups in {"packed": [chosen], "alone": [[one] for one in chosen]}.items():
        loss = torch.stack([model.loss(group, LOSS_WEIGHTS["weighted"]) for group in groups]).sum()
        found[name] = (loss.detach(), torch.autograd.grad(loss, model.parameters()))
    assert torch.allclose(found["packed"][0], found["alone"][0], rtol=1e-5)
    for one, other in zip(found["packed"][1], found["alone"][1], strict=True):
        assert is_near(one, other)


def test_the_command_trains_on_packs_and_goes_on_from_an_adapter(
    tiny_model_dir: Path, examples: list[Example], tmp_path: Path
) -> None:
    asked = [
        replace(one, choices=(TokenChoice(1, (one.answer_token_ids[1], 200)),))
        for one in examples[:4]
    ]
    for split in ("train", "dev"):
        write_pack(tmp_path / f"{split}.pack", [*asked, *examples[4:]])
    base = ["--base", str(tiny_model_dir), "--pack", str(tmp_path), "--rank", "2"]
    base += ["--dtype", "float32", "--dev-examples", "4"]
    assert main([*base, "--out", str(tmp_path / "first"), "--max-steps", "3"]) == 0
    first = load_file(tmp_path / "first" / "ckpt" / "adapter_model.safetensors")
    start = ["--start", str(tmp_path / "first" / "ckpt"), "--learning-rate", "0"]
    packing = ["--max-packed-tokens", "60", "--loss", "plain"]
    out = ["--out", str(tmp_path / "second"), "--max-steps", "2"]
    assert main([*base, *start, *packing, *out]) == 0
    second = load_file(tmp_path / "second" / "ckpt" / "adapter_model.safetensors")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    log = (tmp_path / "second" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in log]
    assert entries[0]["settings"]["loss"] == "plain"
    weights = tmp_path / "first" / "ckpt" / "adapter_model.safetensors"
    assert entries[0]["start_sha256"] == file_sha256(weights)
    assert entries[0]["examples_with_choice"] == 0, "to a plain loss they are like the others"
    assert entries[0]["examples"] == len(examples)
    assert entries[-1]["is_last"]
    too_long = ["--max-tokens", str(len(examples[0]) - 1)]
    assert all(len(example) == len(examples[0]) for example in examples)
    with pytest.raises(FinetuneError, match="no example"):
        main([*base, *out, *too_long])


def test_the_prior_of_serving_counts_in_its_own_term(tiny_model_dir: Path) -> None:
    model = new_model(tiny_model_dir)
    choice = TokenChoice(1, (20, 30, 40), (-3.0, -1.5, 0.0))
    example = Example("", "", (9, 8, 7), (4, 30, 5), (choice,))
    logits = model.answer_logits(example).detach()[1, [20, 30, 40]]
    served = (logits + torch.tensor(choice.log_prior)).softmax(-1)
    weights = LossWeights(token=0.0, choice=0.0, served=2.0)
    assert torch.allclose(model.loss([example], weights), -2.0 * served[1].log(), rtol=1e-4)
    bare = replace(example, choices=(replace(choice, log_prior=()),))
    expected = -2.0 * logits.softmax(-1)[1].log()
    assert torch.allclose(model.loss([bare], weights), expected, rtol=1e-4)
