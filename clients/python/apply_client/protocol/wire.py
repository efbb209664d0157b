"""The service's answers, as its OpenAPI document describes them.

Unknown members are ignored, so that a newer service can be asked as well.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

Status = Literal["applied", "unchanged", "needs_review", "rejected"]
Acceptance = Literal["exact", "typical", "adaptive", "top-n"]

Content = TypeVar("Content", str, bytes)
AnyContent = TypeVar("AnyContent")


class Base64Content(msgspec.Struct, frozen=True):
    """A file as its bytes."""

    base64: bytes


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem that the checks found, with a hint for the author of the update."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str
    line: int | None = None


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the original as the Language Server Protocol counts: from 0, in UTF-16 units."""

    line: int
    character: int


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """What lies between two places of the original."""

    start: Position
    end: Position


class TextEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the original, and the text in its place; `edits_format` says which members."""

    range: Range | msgspec.UnsetType = msgspec.UNSET
    start: Position | int | msgspec.UnsetType = msgspec.UNSET
    end: Position | int | msgspec.UnsetType = msgspec.UNSET
    new_text: str | msgspec.UnsetType = msgspec.field(name="newText", default=msgspec.UNSET)
    text: str | msgspec.UnsetType = msgspec.UNSET


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of the original that the model rewrote, both included, counted from 1."""

    start_line: int
    end_line: int


class RemovedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the original that is not in the result, counted from 1."""

    line: int
    text: str


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One branch of a decision: the line that it writes, its source, and its probability."""

    text: str
    origin: str
    probability: float


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of the model among valid merges, at a line of the result, counted from 1."""

    line: int
    chosen: Branch
    alternatives: tuple[Branch, ...]
    probability: float
    outside_mass: float


class ChoiceWhere(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of the original, both included, counted from 1, and the definition around them."""

    symbol: str | None
    start_line: int
    end_line: int


class JudgeWord(msgspec.Struct, frozen=True, kw_only=True):
    """What the service's judge said of an edit in doubt: a choice's `id`, or None for none of them.

    `seconds` is how long that took.
    """

    model: str
    choice: str | None
    seconds: float


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One text that an update in doubt may mean: `ApplyClient.resolve` makes it the result.

    `diff` is what sets it apart from the other choices; `diff_lines_left_out` lines are cut off.
    """

    id: str
    diff: str
    diff_lines_left_out: int
    where: ChoiceWhere
    probability: float
    reason: str


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the request; `cached_tokens` of the prompt were not computed again."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int = 0


class ReferenceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Draft tokens that were copied from one reference."""

    drafted: int
    accepted: int


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """The share of drafts in the answer; `forced` tokens left the model no choice.

    With another `acceptance` than exact, drafts may have passed that the model had not written.
    """

    drafted: int
    accepted: int
    forced: int = 0
    target_passes: int
    decode_passes: int
    mean_accepted_length: float
    tokens_per_target_pass: float
    by_reference: dict[str, ReferenceUsage] = {}
    acceptance: Acceptance = "exact"


class PrefixLookup(msgspec.Struct, frozen=True, kw_only=True):
    """One search for a prompt's beginning below the KV cache; estimates are seconds."""

    tier: Literal["host", "redis"]
    decision: Literal["load", "compute", "miss"]
    reason: str | None
    tokens: int
    seconds: float
    load_estimate: float | None
    compute_estimate: float | None


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds; `total` includes the work on text before and after the model."""

    queue: float
    load: float = 0.0
    prefill: float
    decode: float
    total: float
    prefix_lookups: tuple[PrefixLookup, ...] = ()


class TracedToken(msgspec.Struct, frozen=True):
    """A token as text: `forced` by the valid merges, `drafted` and accepted, or `written`."""

    text: str
    origin: Literal["forced", "drafted", "written"]


class TracedStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one step wrote, `at_s` seconds after the model was first asked.

    `rejected` are the tokens of its draft, copied from `drafter`, that did not hold.
    """

    at_s: float
    drafter: str | None
    tokens: tuple[TracedToken, ...]
    rejected: tuple[str, ...]


class RegionTrace(msgspec.Struct, frozen=True):
    """The steps of one region that the model rewrote."""

    region: int
    steps: tuple[TracedStep, ...]


class ApplyResult(msgspec.Struct, Generic[AnyContent], frozen=True, kw_only=True):
    """A merged file with its verdict; `merged` is text or bytes as the original was sent.

    `applied` and `unchanged` may be used, `needs_review` asks which of its `choices` is meant,
    `rejected` comes only with the checks off. `edits` is None, since the client asks for text and
    diff. `deadline_s` is there where the service gave the edit less time than was asked for.
    """

    id: str
    status: Status
    confidence: float | None
    merged: AnyContent
    diff: str | None
    edits: tuple[TextEdit, ...] | None = None
    findings: tuple[Finding, ...]
    removed_lines: tuple[RemovedLine, ...]
    decisions: tuple[Decision, ...] | None = None
    choices: tuple[Choice, ...] = ()
    judge: JudgeWord | None = None
    source: Literal["model", "merge", "original", "update", "resolved", "judge", "writer"]
    scope: Literal["file", "region"]
    regions: tuple[Region, ...]
    usage: Usage
    speculation: Speculation
    timing: Timing
    model: str
    system_fingerprint: str | None = None
    trace: tuple[RegionTrace, ...] | None = None
    deadline_s: float | None = None

    @property
    def is_sure(self) -> bool:
        """True if the checks found nothing that a person should look at."""
        return self.status in ("applied", "unchanged")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The reason of a refusal (RFC 9457); `code` is its short name, `id` that of the edit."""

    status: int
    detail: str
    title: str = ""
    type: str = "about:blank"
    code: str = "unknown"
    field: str | None = None
    value: float | None = None
    limit: float | None = None
    remedy: str | None = None
    retry_after_s: float | None = None
    finish_reason: Literal["length"] | None = None
    id: str | None = None
    request_id: str | None = None
    findings: tuple[Finding, ...] | None = None
    choices: tuple[Choice, ...] | None = None


class FileResult(msgspec.Struct, Generic[AnyContent], frozen=True, kw_only=True):
    """What became of one of several files: a result, or a problem that says why there is none.

    There is neither for a file that is deleted, moved as it is or added without any text, nor for
    one that a common update does not speak of (`action` "none").
    """

    path: str
    action: Literal["update", "add", "delete", "move", "none"]
    new_path: str | None = None
    result: ApplyResult[AnyContent] | None = None
    problem: Problem | None = None


class FilesResult(msgspec.Struct, Generic[AnyContent], frozen=True, kw_only=True):
    """What became of several files, in the order of the request; new files of a patch come last.

    `status` is the worst one of a file, `in_doubt` has the paths of those with choices.
    """

    status: Literal["applied", "unchanged", "needs_review", "rejected", "failed"]
    atomic: bool
    files: tuple[FileResult[AnyContent], ...]
    in_doubt: tuple[str, ...]
    usage: Usage
    deadline_s: float | None = None

    @property
    def is_sure(self) -> bool:
        """True if every file is applied or unchanged."""
        return self.status in ("applied", "unchanged")


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is served; `max_context_tokens` bounds the prompt and its answer.

    `root` is its own name, where `id` is another one for it; it is served since `created`.
    """

    id: str
    max_context_tokens: int
    profile: str
    created: int = 0
    root: str = ""
    system_fingerprint: str = ""
    object: Literal["model"] = "model"
    owned_by: str = ""


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """The models that are served."""

    data: tuple[ModelCard, ...]
    object: Literal["list"] = "list"
