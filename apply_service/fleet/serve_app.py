"""The service as an application of Ray Serve: `serve run apply_service.fleet.serve_app:build`.

Each replica runs the whole ASGI application with an engine of its own. Ray Serve listens, routes,
starts replicas and replaces those that are not healthy. `deploy/ray/serve.yaml` is an example.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from litestar.types import ASGIApp, Receive, Scope, Send
from ray import serve
from ray.serve import Application
from ray.serve.config import RequestRouterConfig

from apply_service.apply.errors import ApplyError, UsageError
from apply_service.config import Settings, load_settings
from apply_service.fleet.autoscaling import QUEUED_TOKENS
from apply_service.fleet.host_program import prepare_host
from apply_service.fleet.ray_header import check_header
from apply_service.fleet.routing import AffinityRouter
from apply_service.http.app import create_app
from apply_service.http.guard.from_settings import protection_of
from apply_service.http.guard.request_ids import HEADER as REQUEST_ID_HEADER
from apply_service.http.server.draining import Drain
from apply_service.models.found_model import try_find_model
from apply_service.observe.free_memory import keep_giving_back, keep_heaps_small
from apply_service.observe.log_format import configure_logging
from apply_service.observe.tracing import open_tracing
from apply_service.service import ApplyService
from apply_service.service_of_settings import service_of

# What Ray Serve has its own options for.
_SETTINGS_OF_SERVE = {
    "host": "http_options.host",
    "port": "http_options.port",
    "workers": "num_replicas",
    "max_connections": "max_ongoing_requests and max_queued_requests",
    "send_timeout_s": "http_options.request_timeout_s",
}
# Above what the engine computes at once, so that it can choose; then the next replica is asked.
_MAX_ONGOING = 128
_MAX_QUEUED = 512


def build(arguments: Mapping[str, Any]) -> Application:
    """The application; `arguments` are settings of `apply-service serve`, by name.

    Raises ConfigError, UsageError, or HeaderNotConfiguredError.
    """
    check_header(os.environ)
    for name in _SETTINGS_OF_SERVE.keys() & arguments.keys():
        raise UsageError(
            f"{name} is {arguments[name]!r}, and Ray Serve does not leave it to its applications;"
            f" leave it out and set {_SETTINGS_OF_SERVE[name]} of Ray Serve"
        )
    settings = load_settings(flags={}, environment=os.environ, arguments=arguments).settings
    deployment: Any = ApplyReplica
    return deployment.options(graceful_shutdown_timeout_s=settings.drain_s).bind(settings)


@serve.deployment(
    name="apply",
    max_ongoing_requests=_MAX_ONGOING,
    max_queued_requests=_MAX_QUEUED,
    backpressure_config={"status_code": 429, "retry_after_s": 1.0},
    request_router_config=RequestRouterConfig(request_router_class=AffinityRouter),
)
@serve.ingress()
class ApplyReplica:
    """One replica: the service, its engine in a process of its own, and its health."""

    def __init__(self, settings: Settings) -> None:
        """Raises ExposedWithoutKeysError, KeyFileError, ModelStoreError or PromptError."""
        prepare_host()
        configure_logging(
            settings.log_level, settings.log_format, shows_text=settings.log_text, stream=sys.stderr
        )
        # Keys that a replica makes for itself would be unknown to the others.
        protection = protection_of(settings, Drain(), is_private=False, may_create_key=False)
        self._service = service_of(settings, try_find_model(settings))
        app = create_app(
            self._service,
            max_body_bytes=settings.max_body_bytes,
            protection=protection,
            tracing=open_tracing(settings.otlp_endpoint, os.environ),
        )
        self._app = _ReplicaApp(app, self._service)
        keep_heaps_small()
        keep_giving_back()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """Called by Ray Serve once, which then runs the application's lifespan."""
        return self._app

    def check_health(self) -> None:
        """Raise what makes the replica useless; after three times Serve replaces it.

        A replica that is merely busy is healthy: to replace it would lose the work.
        """
        self._service.check_ready()
        self._service.check_alive()
        self._service.check_engine()
        _ = self._service.served

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What `QueuedTokensPolicy` reads."""
        return {QUEUED_TOKENS: float(self._service.num_queued_tokens())}


class _ReplicaApp:
    """The service's application as Ray Serve needs it.

    It has started only once the model is loaded, so that no edit is sent to a replica before. It
    sends no request id: Serve's proxy gives each request one, and adds it to the answer.
    """

    def __init__(self, app: ASGIApp, service: ApplyService) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or the lifespan on."""

        async def send_start(message: Any) -> None:
            if message["type"] == "lifespan.startup.complete":
                message = await self._model_outcome(message)
            elif message["type"] == "http.response.start":
                message["headers"] = [
                    (name, value) for name, value in message["headers"] if name != REQUEST_ID_HEADER
                ]
            await send(message)

        await self._app(scope, receive, send_start)

    async def _model_outcome(self, complete: Any) -> Any:
        try:
            await self._service.wait_for_model(is_patient=True)
        except ApplyError as error:
            return {"type": "lifespan.startup.failed", "message": str(error)}
        return complete
