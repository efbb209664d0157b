"""What becomes of a trust case without a model, and whether that is how it may end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec

from apply_service.apply.conclusion import doubt_about, settle_doubt, try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.forms.form_reader import form_of
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFile

_FOLDER = Path(__file__).parents[2] / "cases" / "trust"


class TrustCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One edit and how it may end.

    `update` is a text, or an object in one of the explicit forms. `applied`: the result is one of
    the expected texts. `asked`: it is not applied, and the choices have all of them. `safe`: one of
    the two, or a refusal.
    """

    id: str
    path: str
    original: str
    update: str | dict[str, Any]
    expected: str
    also: tuple[str, ...] = ()
    instruction: str | None = None
    ends: Literal["applied", "asked", "safe"]
    why: str


def trust_cases(kind: str) -> list[TrustCase]:
    """The cases of one kind."""
    decoder = msgspec.json.Decoder(TrustCase)
    return [decoder.decode(line) for line in (_FOLDER / f"{kind}.jsonl").read_bytes().splitlines()]


def trust_kinds() -> list[str]:
    """The kinds that there are cases of."""
    return sorted(path.stem for path in _FOLDER.glob("*.jsonl"))


def complaint_about(case: TrustCase) -> str | None:
    """What is wrong with the end of a case; None if nothing is."""
    form = None if isinstance(case.update, str) else form_of(case.update)
    edit = EditRequest(
        original=TextFile.from_text(case.original),
        update=case.update if isinstance(case.update, str) else json.dumps(case.update),
        path=case.path,
        format=form,
        instruction=case.instruction,
        use_model="never",
        on_doubt="ask",
    )
    try:
        plan = plan_edit(edit, max_file_bytes=1 << 20)
        outcome = try_conclude_alone(plan)
        assert outcome is not None, "without a model every edit is concluded"
        outcome = settle_doubt(plan, outcome)
    except SnippetError as error:
        return None if case.ends == "safe" else f"refused: {error}"
    texts = (case.expected, *case.also)
    status = outcome.verdict.status
    if status in ("applied", "unchanged"):
        if case.ends == "asked":
            return f"{status} unasked"
        return None if outcome.merged in texts else f"{status} and wrong:\n{outcome.diff}"
    codes = [finding.code for finding in outcome.verdict.findings]
    if case.ends == "applied":
        is_right = outcome.merged in texts
        return f"{status} with the {'right' if is_right else 'wrong'} text first: {codes}"
    doubt = None if plan.merge is None else doubt_about(plan, plan.merge)
    offered = {plan.file.join(lines) for lines in (doubt.texts() if doubt else ())}
    if case.ends == "safe" and status == "rejected" and not outcome.choices:
        return None
    missing = set(texts) - offered
    return f"{status}, {len(missing)} expected texts are no choice: {codes}" if missing else None
