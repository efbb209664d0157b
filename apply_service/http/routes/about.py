"""The server about itself: `/health`, `/metrics`, `/v1/models` and `/v1/tools/edit_file`."""

from typing import Annotated, Literal

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, QueryParameter

from apply_service.apply.errors import ModelFailedError, NotReadyError, UnknownModelError
from apply_service.http.compat.error_shapes import OpenAIErrorBody
from apply_service.http.edit_tool import AnthropicTool, McpTool, OpenAITool, ToolForm, tool_in
from apply_service.http.schemas import Health, ModelCard, ModelList, Readiness
from apply_service.observe.telemetry import CONTENT_TYPE
from apply_service.service import ApplyService, ServedModel
from apply_service.shown_text import shown_line

_MODEL = QueryParameter(description="`ready`: be ready only once the model is loaded.")


@get(
    "/health/live", tags=["Server"], summary="Whether the server works; 503 if the engine is stuck"
)
async def live(service: NamedDependency[ApplyService]) -> Health:
    """Answer 200 while the engine makes steps or has nothing to do."""
    service.check_alive()
    return Health("live")


@get(
    "/health/ready",
    tags=["Server"],
    summary="Whether edits are taken; 503 while the server stops or is stuck, or without its model",
    description="Edits that need the model wait for it while it is being loaded, so the answer is"
    " 200 with `model` `loading`. If it cannot be loaded, the answer is 503 `model-failed`; edits"
    " that need no model are done all the same. It is 503 `text-work-stuck` while new edits would"
    " be refused, or wait longer than five seconds before they are begun, 503 `engine-stalled`"
    " while the engine's process shows no sign of life, and 503 `engine-lost` while it is being"
    " started again. With `?model=ready` it is 503 `not-ready` as well until the model is loaded.",
)
async def ready(
    service: NamedDependency[ApplyService], model: Annotated[Literal["ready"] | None, _MODEL] = None
) -> Readiness:
    """Ready from the start, until the server is told to stop or the model turns out not to load."""
    service.check_ready()
    service.check_room()
    service.check_engine()
    state = service.model_state
    if state == "failed" or model == "ready":
        _ = service.served
    return Readiness("ready", "ready" if state == "ready" else "loading")


@get("/metrics", tags=["Server"], summary="Figures for Prometheus", media_type="text/plain")
async def metrics(service: NamedDependency[ApplyService]) -> Response[bytes]:
    """Requests, findings, latencies, and the engine's counters of this moment."""
    return Response(service.telemetry.render(), headers={"Content-Type": CONTENT_TYPE})


@get(
    "/v1/models",
    tags=["Model"],
    summary="List the model that is served, and the other names that it goes by",
)
async def list_models(service: NamedDependency[ApplyService]) -> ModelList:
    """The one model, waited for while it is being loaded; none if it does not come."""
    try:
        return ModelList(data=_cards(service, await service.wait_for_model()))
    except (NotReadyError, ModelFailedError):
        return ModelList(data=[])


@get(
    "/v1/models/{model_id:path}",
    tags=["Model"],
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
        raise UnknownModelError(
            f"the model '{shown_line(name)}' is not served; choose one of {list(cards)}"
        )
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


_FORM = QueryParameter(description="The API whose form the tool is wanted in.")


@get(
    "/v1/tools/edit_file",
    tags=["Model"],
    summary="The description of the tool `edit_file`, for a model that writes updates",
    description="Goes into `tools` of a chat request as it is. A program that carries the tool out"
    " sends `code_edit` as `update` and `instructions` as `instruction` to `/v1/apply`.",
)
async def describe_edit_file(
    form: Annotated[ToolForm, _FORM] = "openai",
) -> OpenAITool | AnthropicTool | McpTool:
    """The same text in every form."""
    return tool_in(form)
