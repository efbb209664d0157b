"""`/health/live`, `/health/ready` and `/metrics`: for those who run the server."""

from litestar import Response, get
from litestar.di import NamedDependency

from apply_service.schemas import Health
from apply_service.service import ApplyService
from apply_service.telemetry import CONTENT_TYPE


@get("/health/live", summary="Whether the server works; 503 if the engine is stuck")
async def live(service: NamedDependency[ApplyService]) -> Health:
    """True while the engine makes steps, or has nothing to do."""
    service.check_alive()
    return Health("live")


@get(
    "/health/ready",
    summary="Whether edits are taken; 503 while the server starts or stops",
)
async def ready(service: NamedDependency[ApplyService]) -> Health:
    """Ready once the model is loaded, until the server is told to stop."""
    service.check_ready()
    return Health("ready")


@get("/metrics", summary="Figures for Prometheus", media_type="text/plain")
async def metrics(service: NamedDependency[ApplyService]) -> Response[bytes]:
    """Requests, findings, latencies, and the engine's counters of this moment."""
    return Response(service.telemetry.render(), headers={"Content-Type": CONTENT_TYPE})
