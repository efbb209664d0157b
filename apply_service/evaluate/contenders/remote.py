"""A fast-apply endpoint as a contender, whichever of the known APIs it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import CaseAnswer
from apply_service.evaluate.contenders.endpoint import Endpoint, EndpointError
from apply_service.evaluate.contenders.wire_formats import (
    FORMATS,
    Api,
    WireFormatError,
    format_finding,
)

API_KEY_VARIABLE = "APPLY_BENCH_API_KEY"

# The longest first: Relace's path ends as apply-service's does.
_APIS_BY_PATH: tuple[tuple[str, Api], ...] = (
    ("/code/apply", "relace"),
    ("/chat/completions", "morph"),
    ("/apply", "apply"),
)
# With these apply-service says that the update cannot be merged; with others it means the body.
_REFUSED_STATUSES = (400, 422)


def split_url(url: str) -> tuple[str, Api | None]:
    """Base address without the API's own path, and the API that this path tells."""
    base = url.rstrip("/")
    for path, api in _APIS_BY_PATH:
        if base.endswith(path):
            return base.removesuffix(path).removesuffix("/v1"), api
    return base.removesuffix("/v1"), None


def detect_api(endpoint: Endpoint) -> Api:
    """Ask for the list of models: apply-service signs it, others have it as OpenAI does.

    Raises EndpointError if there is no such list.
    """
    reply = endpoint.get("/v1/models")
    models = reply.content.get("data") if isinstance(reply.content, Mapping) else None
    if reply.status != 200 or not isinstance(models, list):
        raise EndpointError(
            f"{endpoint.base_url}/v1/models answers {reply.status} and no list of models, so the"
            " API is unknown; say --api morph, relace or apply"
        )
    owners = {model.get("owned_by") for model in models if isinstance(model, Mapping)}
    return "apply" if "apply-service" in owners else "morph"


class RemoteContender:
    """Sends each case as one request and reads the answer as the API means it."""

    def __init__(self, endpoint: Endpoint, api: Api, *, model: str | None = None) -> None:
        self.name = f"{endpoint.base_url} ({api})"
        self._endpoint = endpoint
        self._format = FORMATS[api]
        self._model = model

    def answer(self, case: Case) -> CaseAnswer:
        """The endpoint's answer; a request that fails for good is one with status "failed"."""
        try:
            reply = self._endpoint.post(self._format.path, self._format.body(case, self._model))
        except EndpointError as error:
            return CaseAnswer(status="failed", notes=(str(error),))
        if reply.status in _REFUSED_STATUSES and self._format.api == "apply":
            return CaseAnswer(
                status="rejected", notes=_error_notes(reply.content), seconds=reply.seconds
            )
        if reply.status != 200:
            notes = (f"HTTP {reply.status}", *_error_notes(reply.content))
            return CaseAnswer(status="failed", notes=notes, seconds=reply.seconds)
        try:
            answer = self._format.parse(case, _object(reply.content))
        except WireFormatError as error:
            return CaseAnswer(status="failed", notes=(str(error),), seconds=reply.seconds)
        return replace(answer, seconds=reply.seconds)

    def close(self) -> None:
        """Do nothing: no connection is kept."""


def _object(content: Any) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise WireFormatError(f"the answer is a {type(content).__name__}, not an object")
    return content


def _error_notes(content: Any) -> tuple[str, ...]:
    """What an error says, in the form of any of the APIs."""
    if not isinstance(content, Mapping):
        return ()
    findings = content.get("findings")
    if isinstance(findings, list) and findings:
        return tuple(format_finding(cast(Mapping[str, Any], finding)) for finding in findings)
    error = content.get("detail") or content.get("error") or content.get("message")
    if isinstance(error, Mapping):
        error = error.get("message")
    return (str(error),) if error else ()
