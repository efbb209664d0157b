"""What answers come from: the version of the service, and of the model behind it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

_NUM_DIGITS = 12


def service_version() -> str:
    """The installed version; a source tree that is not installed has none."""
    try:
        return version("apply-service")
    except PackageNotFoundError:
        return "0"


def system_fingerprint(model_fingerprint: str | None, adapter_sha256: str | None) -> str:
    """One text of service, model and adapter: the same answer may be expected where it is equal.

    The model's fingerprint is of the weights as they are used, an adapter in them included. There
    is none before the model is loaded.
    """
    model = model_fingerprint[:_NUM_DIGITS] if model_fingerprint else "none"
    adapter = adapter_sha256[:_NUM_DIGITS] if adapter_sha256 else "none"
    return f"apply-service-{service_version()}_model-{model}_adapter-{adapter}"
