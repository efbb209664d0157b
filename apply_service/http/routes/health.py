"""`/health/live`, `/health/ready` and `/metrics`: for those who run the server."""

from typing import Annotated, Literal

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from apply_service.http.schemas import Health, Readiness
from apply_service.observe.telemetry import CONTENT_TYPE
from apply_service.service import ApplyService

_MODEL = QueryParameter(description="`ready`: be ready only once the model is loaded.")


@get("/health/live", summary="Whether the server works; 503 if the engine is stuck")
async def live(service: NamedDependency[ApplyService]) -> Health:
    """True while the engine makes steps, or has nothing to do."""
    service.check_alive()
    return Health("live")


@get(
    "/health/ready",
    summary="Whether edits are taken; 503 while the server stops or is stuck, or without its model",
    description="Edits that need the model wait for it while it is being loaded, so the answer is"
    " 200 with `model` `loading`. If it cannot be loaded, the answer is 503 `model-failed`; edits"
    " that need no model are done all the same. It is 503 `text-work-stuck` while new edits would"
    " be refused, or wait longer than five seconds before they are begun. With"
    " `?model=ready` it is 503 `not-ready` as well until the model is loaded.",
)
async def ready(
    service: NamedDependency[ApplyService], model: Annotated[Literal["ready"] | None, _MODEL] = None
) -> Readiness:
    """Ready from the start, until the server is told to stop or the model turns out not to load."""
    service.check_ready()
    service.check_room()
    state = service.model_state
    if state == "failed" or model == "ready":
        _ = service.served
    return Readiness("ready", "ready" if state == "ready" else "loading")


@get("/metrics", summary="Figures for Prometheus", media_type="text/plain")
async def metrics(service: NamedDependency[ApplyService]) -> Response[bytes]:
    """Requests, findings, latencies, and the engine's counters of this moment."""
    return Response(service.telemetry.render(), headers={"Content-Type": CONTENT_TYPE})
