"""The model of the settings with its engine in another process. Needs no torch."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from apply_service.config import Settings
from apply_service.models.found_model import FoundModel, find_model
from apply_service.service import LoadedModel
from batching.config import ModelInfo
from batching.errors import EngineLostError, ModelLoadError
from batching.fingerprint import fingerprint_as, fingerprint_model
from batching.remote.engine_client import EngineClient
from batching.remote.engine_process import OwnedProcess, SharedEngine, python_command

_MODULE = "apply_service.models.engine_main"
# A shared engine may be started later than its servers, and loads its model first.
_WAIT_S = 120.0
_PAUSE_S = 0.25


def launch_model(
    settings: Settings, *, report: Callable[[str], None], found: FoundModel | None = None
) -> LoadedModel:
    """As `load_served_model`, with the engine in another process.

    It is one of our own, which ends with this one, or the one that listens at `engine_socket`.
    Raises ModelStoreError, PromptError or EngineError.
    """
    found = found or find_model(settings, report=report)
    location = found.location
    if settings.engine_socket is None:
        start = partial(OwnedProcess.start, python_command(_MODULE), msgspec.json.encode(settings))
        engine = EngineClient(start, stall_s=settings.stall_s)
    else:
        engine = _shared_engine(settings, location.path, report=report)
    return LoadedModel(
        name=location.name,
        engine=engine,
        profile=found.profile,
        adapter_sha256=location.manifest.adapter_sha256 if location.manifest else None,
    )


def _shared_engine(
    settings: Settings, model_path: Path, *, report: Callable[[str], None]
) -> EngineClient:
    """The engine at a socket, waited for. Raises EngineLostError, or ModelLoadError."""
    assert settings.engine_socket is not None, "it is shared"
    path = Path(settings.engine_socket)
    fingerprint = fingerprint_model(model_path)

    def check(info: ModelInfo) -> None:
        if info.fingerprint != fingerprint_as(fingerprint, info.dtype):
            raise ModelLoadError(
                f"the engine at {path} serves another model than the one in {model_path}; start"
                " both with the same --model and --revision"
            )

    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            connect = partial(SharedEngine.connect, path)
            return EngineClient(connect, check=check, stall_s=settings.stall_s)
        except EngineLostError as error:
            if time.monotonic() >= deadline:
                raise
            report(str(error))
            time.sleep(_PAUSE_S)
