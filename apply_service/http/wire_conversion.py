"""Converts request bodies to edits, and events and outcomes to wire schemas."""

from __future__ import annotations

import msgspec

from apply_service.apply.choices import Choice
from apply_service.apply.decision import Branch
from apply_service.apply.decoding_trace import RegionTrace
from apply_service.apply.edit_request import EditRequest, OnDoubt, SamplingOptions, UseModel
from apply_service.apply.events import RegionDone, RegionStarted, RegionText, RunEvent
from apply_service.apply.outcome import JudgeWord, Outcome
from apply_service.edit.finding import Finding
from apply_service.edit.forms.form import FORM_NAMES, UpdateFormat
from apply_service.edit.forms.form_reader import form_of
from apply_service.edit.read.snippet_error import MalformedSnippetError
from apply_service.edit.regions import Region
from apply_service.edit.text.text_edits import Position, offset_edits, text_edits
from apply_service.edit.text.text_file import TextFile
from apply_service.http.schemas import (
    ApplyBody,
    ApplyResult,
    Base64Content,
    BranchBody,
    ChoiceBody,
    ChoiceWhere,
    DecisionBody,
    EditOptions,
    FindingBody,
    JudgeBody,
    PositionBody,
    PrefixLookupBody,
    RangeBody,
    ReferenceUsage,
    RegionBody,
    RegionEndEvent,
    RegionEvent,
    RegionTraceBody,
    RemovedLine,
    Speculation,
    TextEditBody,
    Timing,
    TokenEvent,
    TracedStepBody,
    TracedTokenBody,
    Usage,
)
from batching.cache.stats import PrefixLookup
from batching.request import Acceptance, Priority

_PRIORITIES = {"interactive": Priority.INTERACTIVE, "batch": Priority.BATCH}


def edit_of(
    body: ApplyBody,
    *,
    default_deadline_s: float | None,
    max_deadline_s: float | None = None,
    default_use_model: UseModel,
    auto_use_model: UseModel = "auto",
    default_on_doubt: OnDoubt = "ask",
) -> EditRequest:
    """The edit that a body describes, with no more time than the maximum.

    Raises TextFileError, or SnippetError for an update of no known form.

    `auto_use_model` is what "auto" means for the model that is served.
    """
    original = body.original
    if isinstance(original, Base64Content):
        file = TextFile.from_bytes(original.base64)
    else:
        file = TextFile.from_text(original)
    sampling = body.sampling
    deadline_s = default_deadline_s if body.deadline_s is None else body.deadline_s
    capped_s = capped_deadline_s(body, max_deadline_s)
    use_model = body.use_model or default_use_model
    if use_model == "auto" and body.constraint != "none":
        use_model = auto_use_model
    update, update_format = _update_of(body)
    if update_format in FORM_NAMES:
        use_model = "never"
    return EditRequest(
        original=file,
        update=update,
        format=update_format,
        instruction=body.instruction,
        prediction=body.prediction,
        path=body.path,
        language=body.language,
        scope=body.scope,
        checks=body.checks,
        has_fallback=body.checks == "on",
        constraint=body.constraint,
        use_model=use_model,
        may_ask_judge=body.use_model != "never",
        on_doubt=body.on_doubt or default_on_doubt,
        resolve=body.resolve,
        sampling=SamplingOptions(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            seed=sampling.seed,
            max_tokens=sampling.max_tokens,
            acceptance=sampling.acceptance,
        ),
        max_draft_tokens=0 if body.speculation == "off" else body.k,
        priority=_PRIORITIES[body.priority],
        deadline_s=deadline_s if capped_s is None else capped_s,
        is_deadline_capped=capped_s is not None,
        wants_trace="trace" in body.include,
    )


def _update_of(body: ApplyBody) -> tuple[str, UpdateFormat | None]:
    """The update as text, and its format if it is known. Raises SnippetError."""
    update = body.update
    if isinstance(update, str):
        return update, body.format
    if body.format is not None and body.format not in FORM_NAMES:
        raise MalformedSnippetError(
            f"an update in the format {body.format} is a text, not JSON; send the text, or name"
            f" one of {', '.join(FORM_NAMES)}"
        )
    return msgspec.json.encode(update).decode(), body.format or form_of(update)


def capped_deadline_s(body: ApplyBody, max_deadline_s: float | None) -> float | None:
    """The server's maximum deadline if the body asks for more, else None."""
    if body.deadline_s is None or max_deadline_s is None:
        return None
    return max_deadline_s if body.deadline_s > max_deadline_s else None


def result_of(
    body: ApplyBody,
    outcome: Outcome,
    *,
    model: str,
    fingerprint: str | None,
    max_deadline_s: float | None = None,
) -> ApplyResult:
    """The answer to a body; the file comes back in the form in which it was sent."""
    stats = outcome.stats
    is_bytes = isinstance(body.original, Base64Content)
    merged = Base64Content(outcome.file.encode(outcome.lines)) if is_bytes else outcome.merged
    form = body.response
    return ApplyResult(
        id=outcome.request_id,
        status=outcome.verdict.status,
        confidence=outcome.confidence,
        merged=merged if form in ("file", "both") else None,
        diff=outcome.diff if form in ("diff", "both") else None,
        edits=_edits_of(outcome, body) if form == "edits" else None,
        findings=[finding_body(finding) for finding in outcome.verdict.findings],
        removed_lines=[
            RemovedLine(line.number, line.text) for line in outcome.verdict.removed_lines
        ],
        decisions=_decisions_of(outcome) if "decisions" in body.include else None,
        choices=[choice_body(choice) for choice in outcome.choices],
        judge=None if outcome.judge is None else judge_body(outcome.judge),
        source=outcome.source,
        scope=outcome.scope,
        regions=[region_body(region) for region in outcome.regions],
        usage=Usage(
            prompt_tokens=stats.num_prompt_tokens,
            completion_tokens=stats.num_output_tokens,
            total_tokens=stats.num_prompt_tokens + stats.num_output_tokens,
            cached_tokens=stats.num_cached_tokens,
        ),
        speculation=_speculation_of(outcome, body.sampling.acceptance),
        timing=Timing(
            queue=round(stats.queue_s, 6),
            load=round(stats.load_s, 6),
            prefill=round(stats.prefill_s, 6),
            decode=round(stats.decode_s, 6),
            total=round(outcome.total_s, 6),
            prefix_lookups=[_lookup_body(lookup) for lookup in stats.prefix_lookups],
        ),
        model=model,
        system_fingerprint=fingerprint,
        trace=list(map(_trace_body, outcome.traces)) if "trace" in body.include else None,
        deadline_s=capped_deadline_s(body, max_deadline_s),
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


def choice_body(choice: Choice) -> ChoiceBody:
    """A choice on the wire."""
    return ChoiceBody(
        id=choice.id,
        diff=choice.diff,
        diff_lines_left_out=choice.num_lines_left_out,
        where=ChoiceWhere(
            symbol=choice.symbol, start_line=choice.start_line, end_line=choice.end_line
        ),
        probability=choice.probability,
        reason=choice.reason,
    )


def judge_body(word: JudgeWord) -> JudgeBody:
    """What a judge said, on the wire."""
    return JudgeBody(model=word.model, choice=word.choice, seconds=round(word.seconds, 6))


def region_body(region: Region) -> RegionBody:
    """A region on the wire."""
    return RegionBody(region.start + 1, region.end)


def event_of(event: RunEvent) -> tuple[str, msgspec.Struct]:
    """Name and payload of an event of a stream."""
    if isinstance(event, RegionStarted):
        return "region", RegionEvent(event.index, event.start + 1, event.end)
    if isinstance(event, RegionText):
        return "token", TokenEvent(event.text, event.index)
    name = "region_done" if isinstance(event, RegionDone) else "region_restart"
    return name, RegionEndEvent(event.index)


def _edits_of(outcome: Outcome, options: EditOptions) -> list[TextEditBody]:
    """The change as text edits of the original, decoded and with its own line endings."""
    old, new, encoding = outcome.original.decode(), outcome.merged, options.position_encoding
    if options.edits_format == "offsets":
        return [
            TextEditBody(start=edit.start, end=edit.end, new_text=edit.text)
            for edit in offset_edits(old, new, encoding=encoding)
        ]
    edits = text_edits(old, new, encoding=encoding)
    ranges = [RangeBody(_position_of(edit.start), _position_of(edit.end)) for edit in edits]
    if options.edits_format == "lsp":
        return [
            TextEditBody(range=range, new_text=edit.text)
            for range, edit in zip(ranges, edits, strict=True)
        ]
    return [
        TextEditBody(start=range.start, end=range.end, text=edit.text)
        for range, edit in zip(ranges, edits, strict=True)
    ]


def _position_of(position: Position) -> PositionBody:
    return PositionBody(position.line, position.character)


def _decisions_of(outcome: Outcome) -> list[DecisionBody]:
    return [
        DecisionBody(
            line=decision.line,
            chosen=_branch_body(decision.chosen),
            alternatives=[_branch_body(branch) for branch in decision.alternatives],
            probability=decision.probability,
            outside_mass=decision.outside_mass,
        )
        for decision in outcome.decisions
    ]


def _trace_body(trace: RegionTrace) -> RegionTraceBody:
    return RegionTraceBody(
        trace.index,
        [
            TracedStepBody(
                at_s=round(step.at_s, 6),
                drafter=step.drafter,
                tokens=[TracedTokenBody(text, origin) for text, origin in step.tokens],
                rejected=list(step.rejected),
            )
            for step in trace.steps
        ],
    )


def _lookup_body(lookup: PrefixLookup) -> PrefixLookupBody:
    return PrefixLookupBody(
        tier=lookup.tier,
        decision=lookup.decision,
        reason=lookup.reason,
        tokens=lookup.num_tokens,
        seconds=round(lookup.seconds, 6),
        load_estimate=_rounded(lookup.load_estimate_s),
        compute_estimate=_rounded(lookup.compute_estimate_s),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _branch_body(branch: Branch) -> BranchBody:
    return BranchBody(text=branch.text, origin=branch.origin, probability=branch.probability)


def _speculation_of(outcome: Outcome, acceptance: Acceptance) -> Speculation:
    stats = outcome.stats
    return Speculation(
        acceptance=acceptance,
        drafted=stats.drafted,
        accepted=stats.accepted,
        forced=stats.forced,
        target_passes=stats.target_passes,
        decode_passes=stats.decode_passes,
        mean_accepted_length=outcome.mean_accepted_length,
        tokens_per_target_pass=outcome.tokens_per_target_pass,
        by_reference={
            name: ReferenceUsage(drafted=figures.drafted, accepted=figures.accepted)
            for name, figures in outcome.by_reference.items()
        },
    )
