"""The adapter that is shipped with the service, as the model store sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from apply_service.models.manifest import AdapterMismatchError, file_sha256
from apply_service.prompts.calibration import CALIBRATION_NAME, read_calibration
from apply_service.prompts.errors import CalibrationError

SHIPPED_ADAPTER_DIR = Path(__file__).parent / "smollm2-135m-apply"
CARD_NAME = "apply_adapter.json"


class AdapterCard(msgspec.Struct, frozen=True):
    """The card of an adapter; other members are ignored."""

    base_model_sha256: str


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter folder; `sha256` covers its settings, card, weights and calibration."""

    path: Path
    sha256: str


def find_adapter(adapter_dir: Path, *, base_sha256: str) -> Adapter | None:
    """The adapter in a folder, or None if the folder holds none.

    Raises `AdapterMismatchError` unless its card names the base that has `base_sha256` and its
    calibration, if there is one, the weights that are there.
    """
    weights = sorted(adapter_dir.glob("adapter_model*.safetensors"))
    settings = adapter_dir / "adapter_config.json"
    if not weights or not settings.is_file():
        return None
    card_path = adapter_dir / CARD_NAME
    try:
        card = msgspec.json.decode(card_path.read_bytes(), type=AdapterCard)
    except (OSError, msgspec.MsgspecError) as error:
        raise AdapterMismatchError(
            f"{card_path} does not say which base the adapter needs ({error});"
            " install the package again"
        ) from error
    if card.base_model_sha256 != base_sha256:
        raise AdapterMismatchError(
            f"the adapter in {adapter_dir} was trained on the base {card.base_model_sha256},"
            f" the embedded base is {base_sha256}; install the package again"
        )
    digest = hashlib.sha256()
    for path in (settings, card_path, *weights, *_calibration_of(adapter_dir, weights)):
        digest.update(f"{path.name}\0{file_sha256(path)}\n".encode())
    return Adapter(adapter_dir, digest.hexdigest())


def _calibration_of(adapter_dir: Path, weights: Sequence[Path]) -> list[Path]:
    """The calibration's file, if there is one; it holds for these weights alone."""
    try:
        calibration = read_calibration(adapter_dir)
    except CalibrationError as error:
        raise AdapterMismatchError(str(error)) from error
    if calibration is None:
        return []
    path = adapter_dir / CALIBRATION_NAME
    if [calibration.weights_sha256] != [file_sha256(one) for one in weights]:
        raise AdapterMismatchError(
            f"{path} was measured with other weights ({calibration.weights_sha256}); measure these"
            " with `make calibrate`, or delete it"
        )
    return [path]
