"""Stores measurements of a machine for its next starts."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


class MachineFile:
    """A JSON object in a folder, one file for each machine and identity."""

    def __init__(self, folder: Path, **identity: object) -> None:
        """`identity`: everything beside the machine that the content depends on."""
        self._identity = {
            "processor": processor_name(),
            "cpu_count": str(os.cpu_count()),
            **{name: str(value) for name, value in identity.items()},
        }
        digest = hashlib.sha256(json.dumps(self._identity, sort_keys=True).encode()).hexdigest()
        self._path = folder / f"{digest[:32]}.json"

    def load(self, read: Callable[[Mapping[str, Any]], T]) -> T | None:
        """The stored object as `read` converts it; None if it is missing or damaged."""
        try:
            return read(json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            _LOGGER.warning("%s cannot be used, so it is measured again: %s", self._path, error)
            return None

    def store(self, content: Mapping[str, Any]) -> None:
        """Store an object; a folder that cannot be written is only logged."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self._path.with_suffix(f".{os.getpid()}.part")
            text = json.dumps({"identity": self._identity, **content}, indent=2)
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(self._path)
        except OSError as error:
            _LOGGER.warning("measurements are not kept in %s: %s", self._path, error)


def processor_name() -> str:
    """The processor's name from the system, or else the kind of machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
