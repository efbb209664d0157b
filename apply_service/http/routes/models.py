"""`GET /v1/models`: what is served, in the shape that OpenAI's clients read."""

from litestar import get
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import FromPath

from apply_service.apply.errors import ModelFailedError, NotReadyError, UnknownModelError
from apply_service.http.compat.error_shapes import OpenAIErrorBody
from apply_service.http.schemas import ModelCard, ModelList
from apply_service.service import ApplyService, ServedModel


@get("/v1/models", summary="List the model that is served, and the other names that it goes by")
async def list_models(service: NamedDependency[ApplyService]) -> ModelList:
    """The one model, waited for while it is being loaded; none if it does not come."""
    try:
        return ModelList(data=_cards(service, await service.wait_for_model()))
    except (NotReadyError, ModelFailedError):
        return ModelList(data=[])


@get(
    "/v1/models/{model_id:path}",
    summary="Show one model, by any of its names",
    responses={
        status: ResponseSpec(OpenAIErrorBody, generate_examples=False, description=description)
        for status, description in {
            404: "There is no model of this name",
            503: "The model is not loaded",
        }.items()
    },
)
async def show_model(model_id: FromPath[str], service: NamedDependency[ApplyService]) -> ModelCard:
    """The card of a name. Raises NotReadyError, ModelFailedError, UnknownModelError."""
    name = model_id.lstrip("/")
    cards = {card.id: card for card in _cards(service, await service.wait_for_model())}
    if name not in cards:
        raise UnknownModelError(f"the model {name!r} is not served; choose one of {list(cards)}")
    return cards[name]


def _cards(service: ApplyService, served: ServedModel) -> list[ModelCard]:
    return [
        ModelCard(
            id=name,
            created=served.created,
            root=served.name,
            system_fingerprint=served.fingerprint,
            max_context_tokens=min(served.info.max_position, served.info.num_kv_tokens),
            profile=served.profile_name,
        )
        for name in dict.fromkeys((served.name, *service.compat.model_aliases))
    ]
