"""The model of the settings with its engine in a process of its own. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from apply_service.config import Settings
from apply_service.models.found_model import FoundModel, find_model
from apply_service.service import LoadedModel
from batching.remote.engine_client import EngineClient
from batching.remote.engine_process import OwnedProcess, python_command

_MODULE = "apply_service.models.engine_main"


def launch_model(
    settings: Settings, *, report: Callable[[str], None], found: FoundModel | None = None
) -> LoadedModel:
    """As `load_served_model`, with the engine in another process, which ends with this one.

    Raises ModelStoreError, PromptError or EngineError.
    """
    found = found or find_model(settings, report=report)
    start = partial(OwnedProcess.start, python_command(_MODULE), msgspec.json.encode(settings))
    location = found.location
    return LoadedModel(
        name=location.name,
        engine=EngineClient(start),
        profile=found.profile,
        adapter_sha256=location.manifest.adapter_sha256 if location.manifest else None,
    )
