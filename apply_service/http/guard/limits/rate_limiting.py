"""Middleware that sends the 429 of `rate_limits` and adds the headers of the limits."""

from __future__ import annotations

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from apply_service.http.guard.keys.caller import current_caller
from apply_service.http.guard.limits.allowance import Allowance, allowing
from apply_service.http.guard.limits.rate_limits import RateLimits, rate_problem
from apply_service.http.guard.paths import needed_scope
from apply_service.http.guard.refusal import refuse
from apply_service.observe.request_record import current_record


class RateLimiting:
    """Counts requests that make the engine work; model lists and metrics are free.

    The parts of a request that has some are charged by an `Allowance`, each before it is worked on.
    """

    def __init__(self, app: ASGIApp, limits: RateLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or serve and charge the caller for the tokens."""
        caller = current_caller()
        is_work = needed_scope(scope["path"]) in ("apply", "batch")
        if caller is None or not caller.is_limited or not is_work:
            await self._app(scope, receive, send)
            return
        admission = await self._limits.admit(caller.name)
        headers = admission.headers()
        if admission.refusal is not None:
            await refuse(scope, send, rate_problem(admission.refusal), headers=headers)
            return

        allowance = Allowance(self._limits, caller.name)
        is_finished = False

        async def finish() -> None:
            nonlocal is_finished
            if not is_finished:
                is_finished = True
                num_tokens = 0 if allowance.has_charged else _num_tokens()
                await self._limits.finish(admission, num_tokens=num_tokens)

        async def send_with_limits(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in headers.items()]
                message["headers"] = [*message["headers"], *added]
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                await finish()  # whoever has read all of an answer has paid for it
            await send(message)

        try:
            with allowing(allowance):
                await self._app(scope, receive, send_with_limits)
        finally:
            await finish()


def _num_tokens() -> int:
    """What the edits of the request that is served have cost."""
    record = current_record()
    return 0 if record is None else record.num_prompt_tokens + record.num_output_tokens
