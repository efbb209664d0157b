"""The ASGI application: routes, error format and limits around one `ApplyService`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Server, Tag

from apply_service.apply.run import PipelineLimits
from apply_service.http.errors import handle_error
from apply_service.http.guard.request_ids import RequestIds
from apply_service.http.guard.stack import Protection, ResponseHeaders, protect
from apply_service.http.openapi_document import Document, OpenApiPlugin, complete
from apply_service.http.page.page_files import PageFiles
from apply_service.http.page.routes import PAGE_ROUTES
from apply_service.http.routes.about import (
    describe_edit_file,
    list_models,
    live,
    metrics,
    ready,
    show_model,
)
from apply_service.http.routes.apply import apply
from apply_service.http.routes.batches import batches
from apply_service.http.routes.chat import chat_completions
from apply_service.http.routes.code_apply import code_apply
from apply_service.http.routes.edit_run import FORESEEN_ERRORS
from apply_service.http.routes.hashlines import hashlines
from apply_service.http.routes.messages import messages
from apply_service.http.routes.responses import responses
from apply_service.observe.request_log import RequestLog
from apply_service.observe.tracing import Tracing
from apply_service.service import ApplyService
from apply_service.version import service_version


def create_app(
    service: ApplyService,
    *,
    max_body_bytes: int,
    protection: Protection | None = None,
    tracing: Tracing | None = None,
    page: PageFiles | None = None,
) -> Litestar:
    """The application; starting it starts to load the model, stopping it drains the engine.

    Without a protection everybody may do everything, which is for tests and for use in-process.
    """

    @asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            await service.stop()
            if protection is not None:
                await protection.limits.close()

    page_files = PageFiles() if page is None else page
    handlers: dict[Any, Any] = dict.fromkeys(
        (*FORESEEN_ERRORS, HTTPException, Exception), handle_error
    )
    app = Litestar(
        route_handlers=[
            apply,
            chat_completions,
            responses,
            messages,
            code_apply,
            batches,
            hashlines,
            list_models,
            show_model,
            describe_edit_file,
            live,
            ready,
            metrics,
            *PAGE_ROUTES,
        ],
        dependencies={
            "service": Provide(lambda: service, sync_to_thread=False),
            "page": Provide(lambda: page_files, sync_to_thread=False),
        },
        exception_handlers=handlers,
        lifespan=[lifespan],
        logging_config=None,
        openapi_config=OpenAPIConfig(
            title="apply-service",
            version=service_version(),
            path="/schema",
            servers=[Server(url=protection.root_path if protection else "/")],
            tags=[
                Tag("Edits", "Files with updates in, merged files with verdicts out."),
                Tag("Other APIs", "The same for clients of OpenAI, Anthropic, Morph and Relace."),
                Tag("Model", "The model that is served, and the tool that others are given."),
                Tag("Server", "Whether the server works, and its figures."),
            ],
            render_plugins=[OpenApiPlugin()],
        ),
        request_max_body_size=max_body_bytes,
    )
    # Around routing as well, so that unknown addresses are guarded and counted like all others.
    handler = app.asgi_handler
    if protection is not None:
        handler = protect(handler, protection)
    log = RequestLog(handler, service.telemetry, tracing)
    app.asgi_handler = RequestIds(ResponseHeaders(log))
    return app


def service_document() -> Document:
    """The OpenAPI document that `GET /schema` answers, without loading a model."""
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
