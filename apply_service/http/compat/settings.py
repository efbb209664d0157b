"""Settings for clients of other services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Review = Literal["refuse", "accept"]

DEFAULT_ALIASES = ("auto", "default", "morph-v3-fast", "morph-v3-large", "relace-apply-3")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatSettings:
    """How results that need review are answered, and the aliases of the served model.

    Other APIs cannot say "needs review", so unless that is accepted it is an error there.
    """

    review: Review = "refuse"
    model_aliases: tuple[str, ...] = DEFAULT_ALIASES


def parse_aliases(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list, each once."""
    names = (name.strip() for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))
