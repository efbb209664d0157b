"""The contenders of `benchmarks speed`: how each is started, and its job for a case."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from apply_service.apply.errors import ApplyError
from apply_service.evaluate.worker_process import WorkerProcess
from apply_service.models.store import ModelLocation
from batching.config import DraftBudgetMode
from benchmarks.speed.case import SpeedCase
from benchmarks.speed.default_worker import DefaultJob
from benchmarks.speed.gguf_export import GgufDtype, cached_gguf
from benchmarks.speed.run import RivalRequest, SpeedRun
from benchmarks.speed.worker import SpeedJob, SpeedWorkerSettings

OURS = "ours"
SPECULATION_OFF = "speculation_off"
DEFAULT = "default"
TRANSFORMERS_GREEDY = "transformers_greedy"

LLAMA_REQUIREMENT = "llama-cpp-python==0.3.36"
LLAMA_CONTEXT_TOKENS = 8192
_LLAMA_LOOKUP_TOKENS = 10
_LLAMA_DTYPES: tuple[GgufDtype, ...] = ("F32", "Q8_0")
# Set for torch by the command line; others run as they would without it.
_TORCH_VARIABLES = ("GOMP_SPINCOUNT",)

SpeedProcess = WorkerProcess[Any, SpeedRun]


class LlamaMissingError(ApplyError):
    """The interpreter for llama.cpp lacks its binding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedOptions:
    """What all contenders share, and the length of our drafts.

    `max_tokens` None is for whole answers.
    """

    location: ModelLocation
    model: str
    profile: str
    num_threads: int
    max_draft_tokens: int
    draft_budget: DraftBudgetMode
    max_tokens: int | None


@dataclass(frozen=True, slots=True)
class SpeedContender:
    """`start` gives a process that answers what `job_of` makes of a case and a salt."""

    name: str
    start: Callable[[], SpeedProcess]
    job_of: Callable[[SpeedCase, str], Any]


def own_contenders(options: SpeedOptions) -> list[SpeedContender]:
    """Our engine with speculation and without, and transformers in three ways."""
    return [
        _engine(OURS, options, max_draft_tokens=options.max_draft_tokens),
        _engine(SPECULATION_OFF, options, max_draft_tokens=0),
        _transformers(TRANSFORMERS_GREEDY, options, num_lookup_tokens=None),
        _transformers("prompt_lookup_10", options, num_lookup_tokens=10),
        _transformers("prompt_lookup_64", options, num_lookup_tokens=64),
    ]


def peer_contenders(
    options: SpeedOptions, *, llama_python: Path, report: Callable[[str], None]
) -> list[SpeedContender]:
    """The service as it asks its model, and llama.cpp on the same weights as GGUF.

    The files are written now if they are not there. Raises LlamaMissingError, GgufExportError.
    """
    check_llama(llama_python)
    contenders = [_default(options)]
    for dtype in _LLAMA_DTYPES:
        path = cached_gguf(options.location.path, dtype, report=report)
        for num_lookup_tokens in (0, _LLAMA_LOOKUP_TOKENS):
            settings = {
                "path": str(path),
                "dtype": dtype,
                "num_context_tokens": LLAMA_CONTEXT_TOKENS,
                "num_threads": options.num_threads,
                "num_pred_tokens": num_lookup_tokens,
            }
            contenders.append(_llama(settings, llama_python))
    return contenders


def check_llama(llama_python: Path) -> None:
    """Raises LlamaMissingError if that interpreter cannot import the binding."""
    try:
        result = subprocess.run(
            [str(llama_python), "-P", "-c", "import llama_cpp"],
            capture_output=True,
            text=True,
            check=False,
        )
        reason = (result.stderr.strip().splitlines() or ["it was killed"])[-1]
    except OSError as error:
        raise LlamaMissingError(
            f"{llama_python} cannot be run ({error.strerror}); give a Python with --llama-python"
        ) from error
    if result.returncode != 0:
        raise LlamaMissingError(
            f"{llama_python} has no llama.cpp ({reason}); `{llama_python} -m pip install"
            f" {LLAMA_REQUIREMENT}` compiles it in about ten minutes, and --llama-python names"
            " another interpreter that has it"
        )


def start_llama(settings: Mapping[str, Any], llama_python: Path) -> SpeedProcess:
    """A process of llama.cpp; for `settings` see `llama_worker.load_model`."""
    environment = {name: os.environ[name] for name in os.environ if name not in _TORCH_VARIABLES}
    return WorkerProcess(
        str(Path(__file__).with_name("llama_worker.py")),
        [msgspec.json.encode(settings).decode()],
        answer_type=SpeedRun,
        interpreter=(str(llama_python), "-P"),
        environment=environment,
    )


def _engine(name: str, options: SpeedOptions, *, max_draft_tokens: int) -> SpeedContender:
    settings = SpeedWorkerSettings(
        model_dir=str(options.location.path),
        profile=options.profile,
        num_threads=options.num_threads,
        draft_budget=options.draft_budget,
        max_draft_tokens=max_draft_tokens,
    )

    def start() -> SpeedProcess:
        return WorkerProcess(
            "benchmarks.speed.worker",
            [msgspec.json.encode(settings).decode()],
            answer_type=SpeedRun,
        )

    return SpeedContender(
        name, start, lambda case, _salt: SpeedJob(case=case.case, max_tokens=options.max_tokens)
    )


def _default(options: SpeedOptions) -> SpeedContender:
    def start() -> SpeedProcess:
        return WorkerProcess(
            "benchmarks.speed.default_worker",
            [options.model, options.profile, str(options.num_threads)],
            answer_type=SpeedRun,
        )

    return SpeedContender(DEFAULT, start, lambda case, salt: DefaultJob(case=case.case, salt=salt))


def _transformers(
    name: str, options: SpeedOptions, *, num_lookup_tokens: int | None
) -> SpeedContender:
    def start() -> SpeedProcess:
        return RivalProcess(options.location.path, num_threads=options.num_threads)

    return SpeedContender(name, start, lambda case, _salt: _rival_request(case, num_lookup_tokens))


def _llama(settings: Mapping[str, Any], llama_python: Path) -> SpeedContender:
    num_lookup_tokens = settings["num_pred_tokens"]
    name = f"llama_{settings['dtype'].lower()}"
    if num_lookup_tokens:
        name += f"_lookup_{num_lookup_tokens}"
    return SpeedContender(
        name,
        lambda: start_llama(settings, llama_python),
        lambda case, _salt: _rival_request(case, None),
    )


def _rival_request(case: SpeedCase, num_lookup_tokens: int | None) -> RivalRequest:
    return RivalRequest(
        prompt_token_ids=tuple(case.prompt.token_ids),
        max_tokens=case.max_tokens,
        stop_token_ids=tuple(sorted(case.prompt.stop_token_ids)),
        num_lookup_tokens=num_lookup_tokens,
    )


class RivalProcess(WorkerProcess[RivalRequest, SpeedRun]):
    """Runs one generation a job. The seconds are those of `generate` alone."""

    def __init__(self, model_dir: Path, *, num_threads: int | None) -> None:
        threads = [] if num_threads is None else [str(num_threads)]
        super().__init__(
            "benchmarks.speed.transformers_baseline",
            [str(model_dir), *threads],
            answer_type=SpeedRun,
        )
