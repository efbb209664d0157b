"""The setting `drafters`: what the page shows and what a server is started with."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from engine_runs import RunningEngine
from page_snippets import snippets_of

from apply_service.config import Settings
from apply_service.models.loading import load_served_model
from batching.config import parse_drafters
from batching.drafters.registry import DRAFTER_KINDS
from batching.engine import Engine
from batching.errors import ModelLoadError
from batching.request import EngineRequest, SamplingParams

PAGE = Path(__file__).parents[3] / "docs" / "drafters.md"
PROMPT = tuple(b"def f(x):\n    return x\n" * 3)


def write_with(model_dir: Path, drafters: str | None) -> list[int]:
    """What a served model writes freely, beside these drafters."""
    settings = Settings(
        model=str(model_dir),
        profile="embedded",
        drafters=drafters,
        kv_memory=16 << 20,
        device="cpu",
    )
    engine = load_served_model(settings, report=print).engine
    assert isinstance(engine, Engine)
    running = RunningEngine(engine)
    try:
        request = EngineRequest(
            request_id="one",
            prompt_token_ids=PROMPT,
            sampling=SamplingParams(max_tokens=48),
        )
        (outcome,) = running.run([request])
    finally:
        engine.stop()
    return outcome.token_ids


def test_a_server_with_drafters_writes_what_it_writes_without(tiny_model_dir: Path) -> None:
    plain = write_with(tiny_model_dir, None)
    assert plain == write_with(tiny_model_dir, "token-recycling, history,lookahead,layer-skip:1")


@pytest.mark.parametrize(
    ("drafters", "words"),
    [
        ("telepathy", "there is no drafter 'telepathy'; take one of"),
        ("medusa", "medusa:FOLDER"),
        ("token-recycling:/tmp", "has no weights"),
        ("eagle3:/nowhere", "/nowhere/config.json"),
        ("history:3", "takes no number"),
    ],
)
def test_what_cannot_be_had_stops_the_start(
    tiny_model_dir: Path, drafters: str, words: str
) -> None:
    with pytest.raises(ModelLoadError, match=words):
        write_with(tiny_model_dir, drafters)


def test_the_page_shows_settings_that_are_known() -> None:
    (snippet,) = snippets_of(PAGE)
    for line in snippet.body.splitlines():
        words = shlex.split(line.removeprefix("$ "))
        assert words[:2] == ["apply-service", "serve"]
        (config,) = parse_drafters(words[words.index("--drafters") + 1])
        assert config.kind in DRAFTER_KINDS
