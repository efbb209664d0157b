"""Loads the model of the settings: chooses folder, device and number format."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable

import torch

from apply_service.config import Settings
from apply_service.models.cache_keys import read_cache_keys
from apply_service.models.found_model import FoundModel, find_model
from apply_service.models.store import cache_dir
from apply_service.service import LoadedModel
from batching.config import (
    CacheConfig,
    Device,
    Dtype,
    EngineConfig,
    SchedulerConfig,
    parse_drafters,
)
from batching.engine import build_engine
from kernels.instruction_set import has_bfloat16, has_fast_bfloat16

_LOGGER = logging.getLogger(__name__)

# Objects that are new and not yet looked at; Python's own number is 700.
_YOUNG_OBJECTS = 20_000


def load_served_model(
    settings: Settings, *, report: Callable[[str], None], found: FoundModel | None = None
) -> LoadedModel:
    """Load what the settings name, found already or not, telling `report` of slow stages.

    Raises ModelStoreError, PromptError or EngineError.
    """
    found = found or find_model(settings, report=report)
    location = found.location
    device = resolve_device(settings)
    engine = build_engine(
        EngineConfig(
            model_path=location.path,
            dtype=resolve_dtype(settings, device),
            device=device,
            kv_memory_bytes=settings.kv_memory,
            num_threads=settings.threads,
            cache=_cache_of(settings),
            draft_budget=settings.draft_budget,
            row_grouping=settings.row_grouping,
            drafters=parse_drafters(settings.drafters or ""),
            tensor_parallel=settings.tensor_parallel,
            step_cost_dir=cache_dir() / "step-costs",
            scheduler=SchedulerConfig(
                max_tokens_per_step=settings.max_tokens_per_step,
                max_running=settings.max_running,
                max_waiting=settings.max_waiting,
                max_draft_tokens=settings.max_draft_tokens,
            ),
        ),
        tokens=found.profile.tokenizer,
    )
    return LoadedModel(
        name=location.name,
        engine=engine,
        profile=found.profile,
        adapter_sha256=location.manifest.adapter_sha256 if location.manifest else None,
    )


def load_to_stay(
    settings: Settings, *, report: Callable[[str], None], found: FoundModel | None = None
) -> LoadedModel:
    """As `load_served_model`; the garbage collector no longer looks at what is there by now.

    Its half million objects stay to the end, and each look at them held everybody up for 0.3 s.
    What comes later it looks at less often: at Python's own pace it took a twentieth of planning.
    """
    loaded = load_served_model(settings, report=report, found=found)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    return loaded


def _cache_of(settings: Settings) -> CacheConfig:
    return CacheConfig(
        memory_bytes=settings.cache_memory,
        chunk_tokens=settings.cache_chunk_tokens,
        payload=settings.cache_payload,
        redis_url=settings.redis_url,
        secrets=read_cache_keys(settings, os.environ),
        timeout_s=settings.cache_timeout_s,
        connect_timeout_s=min(0.5, settings.cache_timeout_s),
        ttl_s=settings.cache_ttl_s,
    )


def resolve_device(settings: Settings) -> Device:
    """The device on which the model will run."""
    if settings.device != "auto":
        return settings.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def resolve_dtype(settings: Settings, device: Device) -> Dtype:
    """The number format of the model's weights on a device.

    A CPU that cannot compute in bfloat16 serves float32 instead, which the log says.
    """
    if settings.dtype == "bfloat16" and device == "cpu" and not has_bfloat16():
        _LOGGER.warning("this CPU cannot compute in bfloat16; the model is served in float32")
        return "float32"
    if settings.dtype != "auto":
        return settings.dtype
    return "bfloat16" if device == "cuda" or has_fast_bfloat16() else "float32"
