"""A service whose model is an oracle: the real engine and pipeline, with prescribed answers."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from apply_service.apply.judge.from_settings import judge_of
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import PipelineLimits
from apply_service.apply.writer.from_settings import writer_of
from apply_service.config import Settings
from apply_service.prompts.calibration import UNMEASURED
from apply_service.prompts.embedded import EmbeddedProfile
from apply_service.prompts.profile import Profile, PromptRequest, load_profile
from apply_service.service import ApplyService, LoadedModel
from batching.config import ModelInfo, SchedulerConfig
from batching.constrained_answer import LogitsRow
from batching.engine import Engine
from batching.events import RowEvidence
from batching.model.runner import ModelRunner
from batching.pending_step import FinishedStep
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens

MODEL_NAME = "oracle"


class OracleRunner:
    """Takes the place of the model runner and writes `answer`, whatever the prompt.

    `step_s` slows every step down; `gate` holds every step while it is cleared. Under a constraint
    it takes the token of its answer among those that are allowed with probability `sureness`, after
    it has given `outside_mass` to all others.
    """

    def __init__(self, *, max_position: int, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self.model_info = ModelInfo(
            max_position=max_position,
            vocab_size=300,
            kv_bytes_per_token=64,
            num_kv_tokens=num_blocks * 16,
            dtype="float32",
            num_parameters=1,
            fingerprint="oracle-fingerprint",
        )
        self.answer: tuple[int, ...] = ()
        self.answer_by_region: dict[str, tuple[int, ...]] = {}
        self.sureness = 0.999
        self.outside_mass = 0.0
        self.step_s = 0.0
        self.gate = threading.Event()
        self.gate.set()

    def answer_to(self, request_id: str) -> tuple[int, ...]:
        """The model's whole answer to one request, which is named after its region."""
        region = "-".join(request_id.split("-")[-2:])
        return self.answer_by_region.get(region, self.answer)

    def launch(self, plan: StepPlan) -> FinishedStep:
        """Run a step to its end before returning."""
        began = time.perf_counter()
        return FinishedStep(self.execute(plan), time.perf_counter() - began)

    def execute(self, plan: StepPlan) -> StepResult:
        """Write the answer's tokens at every row with logits, and verify drafts against them."""
        self.gate.wait(timeout=30)
        time.sleep(self.step_s)
        verified = []
        for scheduled in plan.scheduled:
            if not scheduled.has_logits:
                verified.append(VerifiedTokens())
                continue
            if scheduled.constrained_rows is not None:
                verified.append(self._choose(scheduled))
                continue
            answer, start = self.answer_to(scheduled.request_id), scheduled.output_position
            num_accepted = 0
            for drafted in scheduled.draft_token_ids:
                if drafted != answer[start + num_accepted]:
                    break
                num_accepted += 1
            token_ids = answer[start : start + num_accepted + 1]
            verified.append(VerifiedTokens(token_ids, num_accepted))
        return StepResult(tuple(verified))

    def _choose(self, scheduled: ScheduledRequest) -> VerifiedTokens:
        """The allowed tokens nearest to the answer, up to the first that was not expected."""
        answer = self.answer_to(scheduled.request_id)
        evidence = []
        last_row, token_id = scheduled.logits_rows[0], 0
        for row in scheduled.logits_rows:
            position = scheduled.output_position_of(row)
            wanted = answer[position] if position < len(answer) else None
            allowed = row.allowed_token_ids
            last_row, token_id = row, wanted if wanted in allowed else allowed[0]
            if row.has_evidence:
                evidence.append(self._evidence(row, token_id, position))
            if row.known_token_id not in (None, token_id):
                break
        if last_row.is_settled:
            return VerifiedTokens(evidence=tuple(evidence))
        num_kept = last_row.position - scheduled.start - len(scheduled.token_ids) + 1
        kept = scheduled.draft_token_ids[:num_kept]
        return VerifiedTokens((*kept, token_id), num_kept, evidence=tuple(evidence))

    def _evidence(self, row: LogitsRow, token_id: int, position: int) -> RowEvidence:
        allowed = row.allowed_token_ids
        inside = 1.0 - self.outside_mass
        sureness = self.sureness if len(allowed) > 1 else 1.0
        others = (1.0 - sureness) / max(1, len(allowed) - 1)
        shares = [sureness if one == token_id else others for one in allowed]
        return RowEvidence(
            position=position,
            token_id=token_id,
            allowed_token_ids=allowed,
            logprobs=tuple(math.log(max(inside * share, 1e-30)) for share in shares),
            outside_mass=self.outside_mass,
            is_decision=row.is_decision,
        )


class WritesFreely:
    """A profile whose answers are free text unless a request asks for valid merges."""

    default_constraint: Literal["none", "merge"] = "none"

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._profile, name)


class OracleService:
    """An `ApplyService` over an `OracleRunner`, with methods that prescribe its answers."""

    def __init__(
        self,
        model_dir: Path,
        *,
        max_position: int = 4096,
        num_blocks: int = 512,
        max_waiting: int = 8,
        max_running: int = 4,
        max_file_bytes: int = 20_000,
        deadline_s: float = 20.0,
        text_work: TextWork | None = None,
        judge_url: str | None = None,
        writer_url: str | None = None,
        allows_lossy: bool = False,
    ) -> None:
        self.runner = OracleRunner(max_position=max_position, num_blocks=num_blocks)
        embedded = load_profile("embedded", model_dir)
        assert isinstance(embedded, EmbeddedProfile), "the name says so"
        embedded.calibration = UNMEASURED  # the oracle's word is worth what it says
        self.profile: Profile = WritesFreely(embedded)
        self.limits = PipelineLimits(
            max_file_bytes=max_file_bytes, max_draft_tokens=64, allows_lossy=allows_lossy
        )
        self._config = SchedulerConfig(max_waiting=max_waiting, max_running=max_running)
        self.service = ApplyService(
            self.load,
            model_name=MODEL_NAME,
            limits=self.limits,
            default_deadline_s=deadline_s,
            drain_s=5.0,
            default_use_model="always",
            auto_use_served_model="never",
            text_work=text_work,
            make_writer=lambda observe: writer_of(
                Settings(writer_url=writer_url, writer_accuracy=0.97, writer_timeout_s=20.0),
                {},
                observe=observe,
            ),
            make_judge=lambda observe: judge_of(
                Settings(judge_url=judge_url, judge_accuracy=0.97, judge_timeout_s=20.0),
                {},
                observe=observe,
            ),
        )

    def load(self) -> LoadedModel:
        """Load the model on behalf of the service."""
        return LoadedModel(name=MODEL_NAME, engine=self.make_engine(), profile=self.profile)

    def make_engine(self) -> Engine:
        """A fresh engine, not started, over the one runner."""
        return Engine(self._config, cast(ModelRunner, cast(Any, self.runner)))

    def will_answer(self, lines: Sequence[str], *, is_ended: bool = True) -> None:
        """Have the model write these lines and then the end, or garbage instead of the end."""
        self.runner.answer = self._answer_of(lines, is_ended=is_ended)

    def will_rewrite(self, start: int, end: int, lines: Sequence[str]) -> None:
        """Have the model write these lines for lines `[start, end)` of the original."""
        self.runner.answer_by_region[f"{start}-{end}"] = self._answer_of(lines, is_ended=True)

    def _answer_of(self, lines: Sequence[str], *, is_ended: bool) -> tuple[int, ...]:
        prompt = self.profile.build(PromptRequest(lines, [], []))
        end = prompt.end_token_ids if is_ended else prompt.end_token_ids[-1:]
        return (*prompt.answer_token_ids(lines), *end)
