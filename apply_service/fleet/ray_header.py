"""Has the proxies of Ray Serve read the affinity header. Needs no Ray."""

from __future__ import annotations

from collections.abc import Mapping

from apply_service.fleet.affinity import AFFINITY_HEADER

# Ray Serve's proxies read it when they start; it names the header that they hash.
HEADER_VARIABLE = "RAY_SERVE_SESSION_ID_HEADER_KEY"
# So do these, which answer for replicas that died.
PROXY_VARIABLE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"
PROXY_MIDDLEWARES = "apply_service.fleet.lost_replicas.middlewares"


class HeaderNotConfiguredError(Exception):
    """The proxies of this cluster do not read the affinity header."""


def check_header(environment: Mapping[str, str]) -> None:
    """Raise HeaderNotConfiguredError unless this environment names the affinity header."""
    name = environment.get(HEADER_VARIABLE)
    if name is None or name.lower().replace("_", "-") != AFFINITY_HEADER.lower():
        raise HeaderNotConfiguredError(
            f"{HEADER_VARIABLE} is {name!r}, so Ray Serve would not read the affinity header; set"
            f" it to {AFFINITY_HEADER.lower()} wherever `ray start` or `serve run` begins a node"
        )
