"""`GET /v1/models`: what is served, in the shape that OpenAI's clients read."""

from litestar import get
from litestar.di import NamedDependency

from apply_service.schemas import ModelCard, ModelList
from apply_service.service import ApplyService


@get("/v1/models", summary="List the models that are served")
async def list_models(service: NamedDependency[ApplyService]) -> ModelList:
    """The one model that is loaded, none while it is being loaded."""
    if not service.is_ready:
        return ModelList(data=[])
    served = service.served
    limit = min(served.info.max_position, served.info.num_kv_tokens)
    return ModelList(
        data=[ModelCard(id=served.name, max_context_tokens=limit, profile=served.profile_name)]
    )
