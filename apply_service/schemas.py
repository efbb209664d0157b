"""The wire format of the native API: what `POST /v1/apply` takes and gives."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from apply_service.edit.finding import Finding
from apply_service.edit.text_file import TextFile
from apply_service.edit.verdict import Status
from apply_service.edit_request import EditRequest, SamplingOptions
from apply_service.outcome import Outcome, Source
from batching.request import Priority

_PRIORITIES = {"interactive": Priority.INTERACTIVE, "batch": Priority.BATCH}


class Base64Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file as its bytes, in any text encoding; the answer comes in the same form."""

    base64: bytes


class SamplingBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the answer is drawn. The default is greedy; a seed makes a draw repeatable."""

    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Meta(ge=0)] = 0
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 0
    max_tokens: Annotated[int, Meta(ge=1)] | None = None


class ApplyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One edit: a file, a lazy update of it, and options."""

    original: Annotated[str | Base64Content, Meta(description="The whole file as it is now.")]
    update: Annotated[
        str, Meta(description="Changed code, with markers such as `// ... existing code ...`.")
    ]
    instruction: str | None = None
    path: Annotated[str | None, Meta(description="Name of the file, for the diff.")] = None
    language: Annotated[str | None, Meta(description="Only `markdown` matters so far.")] = None
    scope: Annotated[
        Literal["auto", "file"], Meta(description="What the model rewrites; both mean the file.")
    ] = "auto"
    checks: Annotated[
        Literal["on", "off"], Meta(description="`off` returns rejected results as well.")
    ] = "on"
    stream: bool = False
    prediction: Annotated[
        str | None, Meta(description="A guess of the result; it only makes the answer faster.")
    ] = None
    constraint: Annotated[str, Meta(description="`none`: the model writes freely.")] = "none"
    sampling: SamplingBody = SamplingBody()
    speculation: Literal["on", "off"] = "on"
    k: Annotated[
        Annotated[int, Meta(ge=1, le=256)] | None, Meta(description="Longest draft in tokens.")
    ] = None
    priority: Literal["interactive", "batch"] = "interactive"
    model: str | None = None
    response: Annotated[
        Literal["file", "diff", "both"], Meta(description="Which form the result is wanted in.")
    ] = "both"
    deadline_s: Annotated[float, Meta(gt=0)] | None = None


class FindingBody(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of the verdict; the codes stand in docs/verdicts.md."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str
    line: int | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the request; `cached_tokens` of the prompt were not computed again."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int


class ReferenceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Draft tokens that were copied from one reference."""

    drafted: int
    accepted: int


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """How far drafts carried the answer."""

    drafted: int
    accepted: int
    target_passes: int
    decode_passes: int
    mean_accepted_length: float
    tokens_per_target_pass: float
    by_reference: dict[str, ReferenceUsage]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; `total` includes text work before and after the model."""

    queue: float
    prefill: float
    decode: float
    total: float


class ApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result with its verdict and figures."""

    id: str
    status: Status
    confidence: float | None
    merged: str | Base64Content | None
    diff: str | None
    findings: list[FindingBody]
    source: Source
    usage: Usage
    speculation: Speculation
    timing: Timing
    model: str
    system_fingerprint: str


class TokenEvent(msgspec.Struct, frozen=True):
    """A piece of the answer while it is written."""

    text: str


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is served."""

    id: str
    max_context_tokens: int
    profile: str
    object: Literal["model"] = "model"
    owned_by: str = "apply-service"


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """The models that are served."""

    data: list[ModelCard]
    object: Literal["list"] = "list"


class Health(msgspec.Struct, frozen=True):
    """Whether the server is up, or ready for edits."""

    status: Literal["live", "ready"]


def edit_of(body: ApplyBody, *, default_deadline_s: float | None) -> EditRequest:
    """The edit that a body describes. Raises TextFileError; the deadline is never lengthened."""
    original = body.original
    if isinstance(original, Base64Content):
        file = TextFile.from_bytes(original.base64)
    else:
        file = TextFile.from_text(original)
    sampling = body.sampling
    deadlines = [limit for limit in (body.deadline_s, default_deadline_s) if limit is not None]
    return EditRequest(
        original=file,
        update=body.update,
        instruction=body.instruction,
        prediction=body.prediction,
        path=body.path,
        language=body.language,
        checks=body.checks,
        sampling=SamplingOptions(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            seed=sampling.seed,
            max_tokens=sampling.max_tokens,
        ),
        max_draft_tokens=0 if body.speculation == "off" else body.k,
        priority=_PRIORITIES[body.priority],
        deadline_s=min(deadlines, default=None),
    )


def result_of(body: ApplyBody, outcome: Outcome, *, model: str, fingerprint: str) -> ApplyResult:
    """The answer to a body; the file comes back in the form in which it was sent."""
    stats = outcome.stats
    is_bytes = isinstance(body.original, Base64Content)
    merged = Base64Content(outcome.file.encode(outcome.lines)) if is_bytes else outcome.merged
    return ApplyResult(
        id=outcome.request_id,
        status=outcome.verdict.status,
        confidence=None,
        merged=None if body.response == "diff" else merged,
        diff=None if body.response == "file" else outcome.diff,
        findings=[finding_body(finding) for finding in outcome.verdict.findings],
        source=outcome.source,
        usage=Usage(
            prompt_tokens=stats.num_prompt_tokens,
            completion_tokens=stats.num_output_tokens,
            total_tokens=stats.num_prompt_tokens + stats.num_output_tokens,
            cached_tokens=stats.num_cached_tokens,
        ),
        speculation=_speculation_of(outcome),
        timing=Timing(
            queue=round(stats.queue_s, 6),
            prefill=round(stats.prefill_s, 6),
            decode=round(stats.decode_s, 6),
            total=round(outcome.total_s, 6),
        ),
        model=model,
        system_fingerprint=fingerprint,
    )


def finding_body(finding: Finding) -> FindingBody:
    """A finding on the wire."""
    return FindingBody(
        code=finding.code,
        severity=finding.severity,
        message=finding.message,
        hint=finding.hint,
        line=finding.line,
    )


def _speculation_of(outcome: Outcome) -> Speculation:
    stats = outcome.stats
    return Speculation(
        drafted=stats.drafted,
        accepted=stats.accepted,
        target_passes=stats.target_passes,
        decode_passes=stats.decode_passes,
        mean_accepted_length=outcome.mean_accepted_length,
        tokens_per_target_pass=outcome.tokens_per_target_pass,
        by_reference={
            name: ReferenceUsage(drafted=figures.drafted, accepted=figures.accepted)
            for name, figures in outcome.by_reference.items()
        },
    )
