"""The model: prepared, whole to the last byte, with its adapter, and long enough."""

from __future__ import annotations

from apply_service.cli.doctor.check import Check, failed, passed, warned
from apply_service.cli.doctor.machine_checks import kv_memory_of, number_scale
from apply_service.config import Settings
from apply_service.models.info import ModelDescription, model_info
from apply_service.models.manifest import ModelStoreError
from apply_service.models.store import EMBEDDED_NAME, open_store

# A prompt with its answer for a file of some 200 lines, rewritten as a whole.
_USUAL_TOKENS = 4096


def check_model(settings: Settings, *, is_verified: bool) -> tuple[Check, ModelDescription | None]:
    """Look the model up without fetching it; with `is_verified` hash all of its files."""
    try:
        location = open_store().resolve_offline(settings.model, settings.revision)
        info = model_info(location, is_verified=is_verified)
    except ModelStoreError as error:
        return failed("model", str(error), model=settings.model), None
    hashed = "every byte" if is_verified else "files that have changed"
    is_known = location.manifest is not None
    checked = f"hashes of {hashed} are right" if is_known else "no hashes to check it by"
    text = f"{info.name} for the profile {settings.profile or info.profile}; {checked}; {info.path}"
    facts = {
        "path": str(info.path),
        "revision": info.revision,
        "profile": settings.profile or info.profile,
        "licence": info.licence,
        "size_bytes": info.size_bytes,
        "is_verified": is_verified and is_known,
    }
    return passed("model", text, **facts), info


def check_adapter(model: ModelDescription | None) -> Check | None:
    """The adapter of the embedded model; None for other models."""
    if model is None or model.name != EMBEDDED_NAME:
        return None
    if model.adapter_sha256 is None:
        return warned(
            "adapter",
            "the embedded model is served without its adapter and merges badly",
            remedy="install the package again; apply_service/models should hold an adapter",
        )
    return passed("adapter", f"SHA-256 {model.adapter_sha256[:16]}…", sha256=model.adapter_sha256)


def check_context(settings: Settings, model: ModelDescription) -> Check:
    """The longest prompt with its answer: bounded by the model and by the KV cache."""
    token_bytes = round(model.kv_bytes_per_token * number_scale(settings, model))
    kv_memory = kv_memory_of(settings)
    if kv_memory is None:
        text = f"{model.max_position} tokens for a prompt and its answer, if the GPU has room"
        return passed("context", text, max_tokens=model.max_position)
    num_kv_tokens = kv_memory // token_bytes
    limit = min(num_kv_tokens, model.max_position)
    text = (
        f"{limit} tokens for a prompt and its answer (model {model.max_position}; KV cache"
        f" {num_kv_tokens}, {token_bytes} bytes a token)"
    )
    facts = {"max_tokens": limit, "kv_tokens": num_kv_tokens, "kv_bytes_per_token": token_bytes}
    if num_kv_tokens < min(_USUAL_TOKENS, model.max_position):
        remedy = f"raise kv_memory to {_USUAL_TOKENS * token_bytes >> 20}MiB or more"
        return warned("context", text, remedy=remedy, **facts)
    return passed("context", text, **facts)
