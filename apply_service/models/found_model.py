"""Finds the model of the settings: its folder and its prompt profile. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apply_service.config import Settings
from apply_service.models.store import ModelLocation, resolve_model, try_resolve_at_hand
from apply_service.prompts.profile import Profile, load_profile


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that is ready to be loaded, with its prompt profile."""

    location: ModelLocation
    profile: Profile


def find_model(settings: Settings, *, report: Callable[[str], None]) -> FoundModel:
    """Find what the settings name, telling `report` of slow stages: it may have to be fetched.

    Raises ModelStoreError, PromptError, or EngineError if it cannot be converted.
    """
    return _found(settings, resolve_model(settings.model, settings.revision, report=report))


def try_find_model(settings: Settings) -> FoundModel | None:
    """Find what the settings name at once; None if it must be fetched, converted or merged first.

    Raises ModelStoreError or PromptError.
    """
    location = try_resolve_at_hand(settings.model, settings.revision)
    return None if location is None else _found(settings, location)


def _found(settings: Settings, location: ModelLocation) -> FoundModel:
    profile = load_profile(settings.profile or location.profile, location.path)
    return FoundModel(location, profile)
