"""The OpenAPI document without a server: for docs/openapi.json and whoever generates a client."""

from __future__ import annotations

from typing import NoReturn

from apply_service.apply.run import PipelineLimits
from apply_service.http.app import create_app
from apply_service.http.openapi_document import Document, complete
from apply_service.service import ApplyService


def service_document() -> Document:
    """What `GET /schema` answers, by a service that loads no model."""
    service = ApplyService(
        _load_nothing,
        model_name="embedded",
        limits=PipelineLimits(max_file_bytes=0, max_draft_tokens=0),
        default_deadline_s=1.0,
        drain_s=0.0,
    )
    return complete(create_app(service, max_body_bytes=0).openapi_schema.to_schema())


def _load_nothing() -> NoReturn:
    raise AssertionError("the service is never started")
