"""The wire format of the native API: what `POST /v1/apply` takes and gives."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from apply_service.apply.outcome import Source
from apply_service.edit.forms.form import UpdateFormat
from apply_service.edit.verdict.verdict import Status
from batching.events import TokenOrigin
from batching.request import Acceptance

PriorityName = Literal["interactive", "batch"]


_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class Base64Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file as its bytes, in any text encoding; the answer comes in the same form."""

    base64: Annotated[bytes, Meta(extra_json_schema={"pattern": _BASE64})]


class SamplingBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the answer is drawn. The default is greedy; a seed makes a draw repeatable."""

    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Meta(ge=0)] = 0
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] = 0
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    acceptance: Annotated[
        Acceptance,
        Meta(
            description="Which drafts pass: exact those alone that the model would have written;"
            " the others are faster and change the text, and the server has to allow them."
        ),
    ] = "exact"


ChosenId = Annotated[
    Annotated[str, Meta(min_length=1, max_length=64)] | None,
    Meta(description="The `id` of a choice that this edit was answered with: it is the result."),
]


Original = Annotated[str | Base64Content, Meta(description="The whole file as it is now.")]
Update = str | dict[str, Any] | list[dict[str, Any]]
Format = Annotated[
    UpdateFormat | None, Meta(description="How the update is written; unset, by its shape.")
]
Language = Annotated[
    str | None, Meta(description="Language of the file; unset, by its name and content.")
]
Prediction = Annotated[
    str | None, Meta(description="A guess of the result; it only makes the answer faster.")
]


class EditOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What may be said of one edit or of several together."""

    instruction: str | None = None
    scope: Annotated[
        Literal["auto", "file", "region"],
        Meta(description="What the model rewrites: the whole file or the regions around the edit."),
    ] = "auto"
    checks: Annotated[
        Literal["on", "off"], Meta(description="`off` returns rejected results as well.")
    ] = "on"
    constraint: Annotated[
        Literal["merge", "none"] | None,
        Meta(
            description="`merge`: the answer is one of the valid merges; `none`: the model writes"
            " freely. Unset, the default of the model."
        ),
    ] = None
    use_model: Annotated[
        Literal["auto", "always", "never"] | None,
        Meta(
            description="`never`: the likeliest merge with its verdict, and no judge; `auto`: the"
            " model only where that merge is not certain, the embedded model nowhere; `always`: the"
            " model. Unset, the server's setting, by default `auto`."
        ),
    ] = None
    on_doubt: Annotated[
        Literal["ask", "best", "refuse"] | None,
        Meta(
            description="What becomes of a result in doubt. `ask`: it comes with `choices`; `best`:"
            " the likeliest merge is `applied`; `refuse`: it is rejected. Unset, the server's"
            " setting, by default `ask`."
        ),
    ] = None
    sampling: SamplingBody = SamplingBody()
    speculation: Literal["on", "off"] = "on"
    k: Annotated[
        Annotated[int, Meta(ge=1, le=256)] | None, Meta(description="Longest draft in tokens.")
    ] = None
    priority: PriorityName = "interactive"
    model: str | None = None
    response: Annotated[
        Literal["file", "diff", "both", "edits"],
        Meta(description="Form of the result; `edits` are text edits, as `edits_format` says."),
    ] = "both"
    edits_format: Annotated[
        Literal["lsp", "offsets"] | None,
        Meta(
            description="Form of `edits`. `lsp`: `range` and `newText` of the Language Server"
            " Protocol; `offsets`: `start` and `end` from the start of the file, and `newText`."
            " Unset, positions `start` and `end` with `text`, which is deprecated."
        ),
    ] = None
    position_encoding: Annotated[
        Literal["utf-8", "utf-16", "utf-32"],
        Meta(description="What positions of `edits` count: bytes, code units or code points."),
    ] = "utf-16"
    include: Annotated[
        list[Literal["decisions", "trace"]],
        Meta(
            description="More members of the answer: the `decisions` of the model; the `trace` of"
            " its steps."
        ),
    ] = []
    deadline_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Seconds until the edit is given up, waiting included. The server cuts"
                " a deadline over its `max_deadline_s`, and the answer says so.",
            ),
        ]
        | None
    ) = None


class ApplyBody(EditOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One edit: a file, a lazy update of it, and options."""

    original: Original
    update: Annotated[
        Update,
        Meta(
            description="Changed code, with markers such as `// ... existing code ...`, or another"
            " form of docs/agent-forms.md."
        ),
    ]
    format: Format = None
    path: Annotated[str | None, Meta(description="Name of the file, for the diff.")] = None
    language: Language = None
    stream: bool = False
    prediction: Prediction = None
    resolve: ChosenId = None


class HashlinesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file whose lines are to be named."""

    original: str | Base64Content


class Hashlines(msgspec.Struct, frozen=True):
    """The lines of a file, each as `NUMBER:HASH|TEXT`."""

    lines: list[str]


class FindingBody(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of the verdict; the codes stand in docs/verdicts.md."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str
    line: int | None = None


class PositionBody(msgspec.Struct, frozen=True):
    """A place in the original as the Language Server Protocol counts: from 0, in units."""

    line: int
    character: int


class RangeBody(msgspec.Struct, frozen=True):
    """What lies between two places of the original."""

    start: PositionBody
    end: PositionBody


class TextEditBody(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the original, and the text that takes its place.

    With `edits_format` `lsp` it has `range` and `newText`, with `offsets` numbers `start` and `end`
    and `newText`, without it positions `start` and `end` and `text`.
    """

    range: RangeBody | msgspec.UnsetType = msgspec.UNSET
    start: PositionBody | int | msgspec.UnsetType = msgspec.UNSET
    end: PositionBody | int | msgspec.UnsetType = msgspec.UNSET
    new_text: str | msgspec.UnsetType = msgspec.field(name="newText", default=msgspec.UNSET)
    text: str | msgspec.UnsetType = msgspec.UNSET


class RegionBody(msgspec.Struct, frozen=True):
    """Lines of the original that the model rewrote, both included, counted from 1."""

    start_line: int
    end_line: int


class RemovedLine(msgspec.Struct, frozen=True):
    """A line of the original that is not in the result, counted from 1."""

    line: int
    text: str


class BranchBody(msgspec.Struct, frozen=True, kw_only=True):
    """One way on: the line that it writes, where that comes from, and how probable it was."""

    text: str
    origin: str
    probability: float


class DecisionBody(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of the model among valid merges, at a line of the result, counted from 1.

    `probability` is that of `chosen` among all ways that were valid; `outside_mass` is what the
    model gave to everything else.
    """

    line: int
    chosen: BranchBody
    alternatives: list[BranchBody]
    probability: float
    outside_mass: float


class ChoiceWhere(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of the original, both included, counted from 1, and the definition around them."""

    symbol: str | None
    start_line: int
    end_line: int


class ChoiceBody(msgspec.Struct, frozen=True, kw_only=True):
    """One text that an update in doubt may mean; `resolve` with its `id` makes it the result.

    `diff` is what sets it apart from the other choices; `diff_lines_left_out` lines are cut off.
    """

    id: str
    diff: str
    diff_lines_left_out: int
    where: ChoiceWhere
    probability: float
    reason: str


class JudgeBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the server's judge said of an edit in doubt: a choice's `id`, or null for none of them.

    `seconds` is how long that took.
    """

    model: str
    choice: str | None
    seconds: float


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
    """How far drafts carried the answer; `forced` tokens left the model no choice.

    With another `acceptance` than exact, drafts may have passed that the model had not written.
    """

    acceptance: Acceptance = "exact"
    drafted: int
    accepted: int
    forced: int = 0
    target_passes: int
    decode_passes: int
    mean_accepted_length: float
    tokens_per_target_pass: float
    by_reference: dict[str, ReferenceUsage]


class PrefixLookupBody(msgspec.Struct, frozen=True, kw_only=True):
    """One search for a prompt's beginning below the KV cache: what was decided, and why.

    Estimates are seconds, null where nothing has been measured yet.
    """

    tier: Literal["host", "redis"]
    decision: Literal["load", "compute", "miss"]
    reason: str | None
    tokens: int
    seconds: float
    load_estimate: float | None
    compute_estimate: float | None


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; `load` is the part of `queue` that passed in searching the prefix cache, and `total`
    includes text work before and after the model. All but `total` are summed over the regions,
    which are computed side by side.
    """

    queue: float
    load: float = 0.0
    prefill: float
    decode: float
    total: float
    prefix_lookups: list[PrefixLookupBody] = []


class TracedTokenBody(msgspec.Struct, frozen=True):
    """A token as text: `forced` by the valid merges, `drafted` and accepted, or `written`."""

    text: str
    origin: TokenOrigin


class TracedStepBody(msgspec.Struct, frozen=True, kw_only=True):
    """What one step wrote, `at_s` seconds after the model was first asked.

    `rejected` are the tokens of its draft, copied from `drafter`, that did not hold.
    """

    at_s: float
    drafter: str | None
    tokens: list[TracedTokenBody]
    rejected: list[str]


class RegionTraceBody(msgspec.Struct, frozen=True):
    """The steps of one region; `region` is its number in the events of a stream."""

    region: int
    steps: list[TracedStepBody]


class ApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result with its verdict and figures."""

    id: str
    status: Status
    confidence: float | None
    merged: str | Base64Content | None
    diff: str | None
    edits: list[TextEditBody] | None
    findings: list[FindingBody]
    removed_lines: list[RemovedLine]
    decisions: list[DecisionBody] | None
    choices: Annotated[
        list[ChoiceBody],
        Meta(description="What the update may mean, the likeliest first, if it needs review."),
    ]
    judge: JudgeBody | None = None
    source: Source
    scope: Literal["file", "region"]
    regions: list[RegionBody]
    usage: Usage
    speculation: Speculation
    timing: Timing
    model: str
    system_fingerprint: str | None
    trace: Annotated[
        list[RegionTraceBody] | None,
        Meta(description="How the model's answers came about, those of dropped attempts included."),
    ] = None
    deadline_s: Annotated[
        float | None,
        Meta(description="The seconds that the edit had, where `deadline_s` asked for more."),
    ] = None


class RegionEvent(msgspec.Struct, frozen=True):
    """The model begins to rewrite lines of the original, both included, counted from 1."""

    region: int
    start_line: int
    end_line: int


class TokenEvent(msgspec.Struct, frozen=True):
    """A piece of a region's new text while it is written."""

    text: str
    region: int


class RegionEndEvent(msgspec.Struct, frozen=True):
    """A region is complete (`region_done`), or to be forgotten (`region_restart`)."""

    region: int


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is served, or with `root` another name for it."""

    id: str
    created: int
    root: str
    system_fingerprint: str
    max_context_tokens: int
    profile: str
    object: Literal["model"] = "model"
    owned_by: str = "apply-service"


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    """The model that is served, then its other names."""

    data: list[ModelCard]
    object: Literal["list"] = "list"


class Health(msgspec.Struct, frozen=True):
    """That the server works."""

    status: Literal["live"]


class Readiness(msgspec.Struct, frozen=True):
    """That the server takes edits, and whether those that need the model wait for it."""

    status: Literal["ready"]
    model: Literal["loading", "ready"]
