"""The service's address and API key: from arguments, else from the environment."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from apply_client.errors import ApplyClientError

URL_VARIABLE = "APPLY_SERVICE_URL"
KEY_VARIABLE = "APPLY_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8722"


class AddressError(ApplyClientError):
    """The address or the API key cannot be used."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a service without a slash at its end, and an API key or None."""

    url: str
    api_key: str | None = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        key = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        return {"User-Agent": "apply-client/0.1.0", **key}

    @property
    def is_loopback(self) -> bool:
        """True if the service is on this machine, where no proxy is to be asked."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def resolve_address(
    url: str | None, api_key: str | None, environment: Mapping[str, str] = os.environ
) -> Address:
    """The address to use; empty variables count as unset. Raises AddressError."""
    chosen = (url or environment.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
    try:
        parts = urlsplit(chosen)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise AddressError(
            f"the address {chosen!r} cannot be used; it must look like {DEFAULT_URL}, as an"
            f" argument or in {URL_VARIABLE}"
        )
    key = (api_key or environment.get(KEY_VARIABLE) or "").strip() or None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise AddressError(
            f"the API key has a character that no header can carry; see {KEY_VARIABLE}"
        )
    return Address(chosen, key)
