"""Collects wrong answers of real models.

    python tests/oracle.py damage.model_failures dev.jsonl ...

The embedded model with and without its adapter writes whole files, unconstrained, short files
first. Every answer that is not the truth becomes one line of the output file; a second file keeps
what was tried, so that a run which is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from apply_service.apply.engine_requests import default_max_tokens, drafts_of
from apply_service.edit.read.markers import split_segments
from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.models.store import BASE_NAME, EMBEDDED_NAME, resolve_model
from apply_service.prompts.profile import (
    AnswerFormatError,
    Profile,
    Prompt,
    PromptRequest,
    load_profile,
)
from batching.async_engine import AsyncEngine
from batching.config import EngineConfig
from batching.engine import build_engine
from batching.events import Finished, Tokens
from batching.request import EngineRequest, SamplingParams

MODELS = (EMBEDDED_NAME, BASE_NAME)
MAX_DRAFT_TOKENS = 64


class ModelFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong answer of a model, whole texts as in a case. `ending` is how the answer stopped."""

    id: str
    model: str
    path: str
    original: str
    update: str
    expected: str
    result: str
    ending: str


def read_failures(path: Path) -> Iterator[ModelFailure]:
    """The failures of a file that this script has written."""
    with path.open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line, type=ModelFailure)


class ModelRun:
    """One model in memory, and its answers to cases."""

    def __init__(self, name: str) -> None:
        self.name = name
        location = resolve_model(name)
        self._profile: Profile = load_profile("embedded", location.path)
        self._engine = AsyncEngine(
            build_engine(EngineConfig(model_path=location.path, num_threads=1))
        )

    async def __aenter__(self) -> ModelRun:
        self._engine.start()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._engine.stop()

    async def failure(self, case: Case) -> ModelFailure | None:
        """What the model wrote if it is not the truth."""
        original, update, expected = (
            split_lines(text)[0] for text in (case.original, case.update, case.expected)
        )
        segments = split_segments(update, original)
        prompt = self._profile.build(PromptRequest(original, update, segments, case.instruction))
        result, ending = await self._answer(case.id, prompt)
        if ending == "complete" and result == expected:
            return None
        return ModelFailure(
            id=case.id,
            model=self.name,
            path=case.path,
            original=case.original,
            update=case.update,
            expected=case.expected,
            result="\n".join(result) + "\n",
            ending=ending,
        )

    async def _answer(self, request_id: str, prompt: Prompt) -> tuple[list[str], str]:
        """The lines of the answer and how it ended."""
        handle = self._engine.submit(
            EngineRequest(
                request_id=request_id,
                prompt_token_ids=tuple(prompt.token_ids),
                sampling=SamplingParams(
                    max_tokens=default_max_tokens(prompt), stop_token_ids=prompt.stop_token_ids
                ),
                proposer=drafts_of(prompt),
                max_draft_tokens=MAX_DRAFT_TOKENS,
            )
        )
        decoder, reason = prompt.stream_decoder(), "failed"
        token_ids: list[int] = []
        pieces: list[str] = []
        async for event in handle:
            if isinstance(event, Tokens):
                token_ids.extend(event.token_ids)
                pieces.append(decoder.push(event.token_ids))
            elif isinstance(event, Finished):
                pieces.append(decoder.finish())
                reason = event.reason
        if reason != "stop":
            return split_lines("".join(pieces))[0], "length"
        try:
            return prompt.parse_answer(token_ids), "complete"
        except AnswerFormatError:
            return split_lines("".join(pieces))[0], "malformed"


def choose_cases(paths: list[Path], *, max_characters: int) -> list[Case]:
    """Cases with a short original, the shortest first."""
    cases = [case for path in paths for case in read_cases(path)]
    short = [case for case in cases if len(case.original) <= max_characters]
    return sorted(short, key=lambda case: len(case.original) + len(case.update))


async def collect(cases: list[Case], output: Path, *, limit: int) -> None:
    """Append failures to `output` until `limit` complete answers of every model are wrong."""
    tried_path = output.with_suffix(".tried")
    tried = set(tried_path.read_text().splitlines()) if tried_path.exists() else set()
    for name in MODELS:
        found = list(read_failures(output)) if output.exists() else []
        num_found = sum(entry.model == name and entry.ending == "complete" for entry in found)
        async with ModelRun(name) as run:
            for case in cases:
                if num_found >= limit:
                    break
                mark = f"{name} {case.id}"
                if mark in tried:
                    continue
                failure = await run.failure(case)
                if failure is not None:
                    num_found += failure.ending == "complete"
                    with output.open("ab") as lines:
                        lines.write(msgspec.json.encode(failure) + b"\n")
                with tried_path.open("a") as marks:
                    marks.write(mark + "\n")


def main() -> None:
    """Read the command line and collect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, default=Path("build/model_failures.jsonl"))
    parser.add_argument("--max-characters", type=int, default=900)
    parser.add_argument("--limit", type=int, default=150, help="complete failures of each model")
    args = parser.parse_args()
    cases = choose_cases(args.cases, max_characters=args.max_characters)
    asyncio.run(collect(cases, args.output, limit=args.limit))


if __name__ == "__main__":
    main()
