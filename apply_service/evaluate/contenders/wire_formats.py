"""Wire formats of fast-apply endpoints: apply-service, Morph and Relace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import RESULT_STATUSES, CaseAnswer

Api = Literal["apply", "morph", "relace"]


class WireFormatError(Exception):
    """An answer does not have the form that its API has."""


@dataclass(frozen=True, slots=True)
class WireFormat:
    """Wire format of one API: its path, how a body is built and how an answer is parsed."""

    api: Api
    path: str
    body: Callable[[Case, str | None], dict[str, Any]]
    parse: Callable[[Case, Mapping[str, Any]], CaseAnswer]


def _apply_body(case: Case, model: str | None) -> dict[str, Any]:
    body = {"original": case.original, "update": case.update, "path": case.path, "response": "file"}
    optional = {"instruction": case.instruction, "model": model}
    return body | {name: value for name, value in optional.items() if value is not None}


def _parse_apply(_case: Case, content: Mapping[str, Any]) -> CaseAnswer:
    status = content.get("status")
    if status not in RESULT_STATUSES:
        raise WireFormatError(f"`status` is {status!r}; apply-service has no such status")
    usage, speculation = content.get("usage") or {}, content.get("speculation") or {}
    return CaseAnswer(
        status=status,
        text=_text(content, "merged"),
        notes=tuple(map(format_finding, content.get("findings") or ())),
        source=content.get("source"),
        num_output_tokens=usage.get("completion_tokens"),
        num_target_passes=speculation.get("target_passes"),
    )


def _morph_body(case: Case, model: str | None) -> dict[str, Any]:
    instruction = f"<instruction>{case.instruction}</instruction>\n" if case.instruction else ""
    content = f"{instruction}<code>{case.original}</code>\n<update>{case.update}</update>"
    return {"model": model or "auto", "messages": [{"role": "user", "content": content}]}


def _parse_morph(case: Case, content: Mapping[str, Any]) -> CaseAnswer:
    try:
        message = content["choices"][0]["message"]
    except (KeyError, IndexError, TypeError) as error:
        raise WireFormatError("there is no choices[0].message") from error
    return _vouched(case, _text(message, "content"), content)


def _relace_body(case: Case, model: str | None) -> dict[str, Any]:
    body = {
        "model": model or "auto",
        "initial_code": case.original,
        "edit_snippet": case.update,
        "stream": False,
    }
    return body | ({"instruction": case.instruction} if case.instruction else {})


def _parse_relace(case: Case, content: Mapping[str, Any]) -> CaseAnswer:
    name = "mergedCode" if "mergedCode" in content else "merged_code"
    return _vouched(case, _text(content, name), content)


def _vouched(case: Case, text: str, content: Mapping[str, Any]) -> CaseAnswer:
    """These APIs have no status: what they return without an error is to be used as it is."""
    return CaseAnswer(
        status="unchanged" if text == case.original else "applied",
        text=text,
        num_output_tokens=(content.get("usage") or {}).get("completion_tokens"),
    )


def _text(content: Mapping[str, Any], name: str) -> str:
    text = content.get(name) if isinstance(content, Mapping) else None
    if not isinstance(text, str):
        raise WireFormatError(f"`{name}` is not a text")
    return text


def format_finding(finding: Mapping[str, Any]) -> str:
    """A finding of apply-service in one line."""
    return f"{finding.get('severity')} {finding.get('code')}: {finding.get('message')}"


FORMATS: dict[Api, WireFormat] = {
    "apply": WireFormat("apply", "/v1/apply", _apply_body, _parse_apply),
    "morph": WireFormat("morph", "/v1/chat/completions", _morph_body, _parse_morph),
    "relace": WireFormat("relace", "/v1/code/apply", _relace_body, _parse_relace),
}
