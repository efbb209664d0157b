"""`/health/live`, `/health/ready` and `/metrics`: for those who run the server."""

from litestar import Response, get
from litestar.di import NamedDependency

from apply_service.schemas import Health
from apply_service.service import ApplyService
from apply_service.telemetry import CONTENT_TYPE


@get("/health/live", summary="Whether the process answers")
async def live() -> Health:
    """Always true when it can be asked."""
    return Health("live")


@get("/health/ready", summary="Whether edits are taken; 503 while the model is being loaded")
async def ready(service: NamedDependency[ApplyService]) -> Health:
    """Ready once the model is loaded."""
    service.check_ready()
    return Health("ready")


@get("/metrics", summary="Figures for Prometheus", media_type="text/plain")
async def metrics(service: NamedDependency[ApplyService]) -> Response[bytes]:
    """Requests, findings, latencies, and the engine's counters of this moment."""
    return Response(service.telemetry.render(), headers={"Content-Type": CONTENT_TYPE})
