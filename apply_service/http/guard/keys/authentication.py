"""Authenticates callers by their key in `Authorization: Bearer` or `x-api-key`."""

from __future__ import annotations

from dataclasses import dataclass

from litestar.types import ASGIApp, Receive, Scope, Send

from apply_service.http.guard.keys import key_file
from apply_service.http.guard.keys.caller import Caller, serving
from apply_service.http.guard.keys.key_ring import KeyRing
from apply_service.http.guard.paths import is_metrics, is_open, is_page, needed_scope
from apply_service.http.guard.refusal import refuse
from apply_service.http.problems import Problem, make_problem

# Some clients take no key that does not begin like this; it may stand before any key of ours.
CLIENT_PREFIX = "sk-"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """Rules for requests without a key.

    `is_private`: nobody else can reach the server, so who has no key may do all while there are
    no keys. `allows_anonymous`: who has no key may edit, also where there are keys.
    """

    is_private: bool
    allows_anonymous: bool
    metrics_need_key: bool


class Authentication:
    """Lets requests through with a `Caller`, or answers 401 or 403."""

    def __init__(self, app: ASGIApp, keys: KeyRing, rules: AccessRules) -> None:
        self._app = app
        self._keys = keys
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or serve on behalf of the key's owner."""
        if self._is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        caller = self._identify(scope)
        if isinstance(caller, Problem):
            await refuse(scope, send, caller)
            return
        needed = needed_scope(scope["path"])
        if not caller.may(needed):
            await refuse(scope, send, _missing_scope(caller, needed))
            return
        with serving(caller):
            await self._app(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        is_public = is_open(path) or is_page(path)
        return is_public or (is_metrics(path) and not self._rules.metrics_need_key)

    def _identify(self, scope: Scope) -> Caller | Problem:
        """The caller, or why there is none."""
        text = _sent_key(scope)
        has_keys = self._keys.has_keys
        record = self._keys.find(text) if text and has_keys else None
        if record is not None:
            return Caller(
                name=record.id,
                scopes=frozenset(record.scopes),
                key_id=record.id,
                key_sha256=record.sha256,
            )
        # Clients that must send something send anything; only what looks like a key is one.
        is_wrong = has_keys and text is not None and key_file.has_key_form(text)
        if is_wrong:
            return _unauthorized("the API key is unknown, expired or revoked")
        if self._rules.allows_anonymous:
            return _anonymous(scope)
        if self._rules.is_private and not has_keys:
            return Caller(name="local", scopes=frozenset(key_file.SCOPES), is_limited=False)
        given = (
            "the text that was sent is not an API key of this server"
            if text
            else "an API key is needed"
        )
        return _unauthorized(given)


def _sent_key(scope: Scope) -> str | None:
    """The text of the key that was sent, without a prefix that only its client asked for."""
    sent = _sent_text(scope)
    bare = None if sent is None else sent.removeprefix(CLIENT_PREFIX)
    return bare if bare is not None and key_file.has_key_form(bare) else sent


def _sent_text(scope: Scope) -> str | None:
    """What stands in the place of a key; a bearer token comes before `x-api-key`."""
    headers: dict[bytes, str] = {
        name: value.decode("latin-1").strip() for name, value in scope["headers"]
    }
    kind, _, token = headers.get(b"authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get(b"x-api-key") or None


def _anonymous(scope: Scope) -> Caller:
    """Somebody without a key; limits tell them apart by their address."""
    client = scope["client"]
    address = client[0] if client else "unknown"
    return Caller(name=f"anonymous-{address}", scopes=frozenset(("apply", "batch")))


def _unauthorized(detail: str) -> Problem:
    return make_problem(
        401,
        code="unauthorized",
        title="An API key is needed",
        detail=detail,
        remedy="send `Authorization: Bearer KEY`; whoever runs the server makes keys with"
        " `apply-service key create`",
    )


def _missing_scope(caller: Caller, needed: key_file.Scope | None) -> Problem:
    return make_problem(
        403,
        code="missing-scope",
        title="The API key lacks a scope",
        detail=f"the scope {needed!r} is needed, the key has {', '.join(sorted(caller.scopes))}",
        remedy=f"use a key that was made with `--scopes {needed}`",
    )
