"""How servers are bound to write one of the merges, and asked to write freely.

Servers ignore members of a request that they do not know, or refuse the request for them. So a
form is tried before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apply_service.apply.edit_request import SamplingOptions
from apply_service.apply.writer.task import WritingPart

FormName = Literal["structured_outputs", "grammar", "text"]

# Models that think aloud do so before they are bound; vLLM and llama.cpp leave it out on request.
_NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}


def _structured_outputs(grammar: str) -> dict[str, Any]:
    return {"structured_outputs": {"grammar": grammar}, **_NO_THINKING}


def _grammar(grammar: str) -> dict[str, Any]:
    return {"grammar": grammar, **_NO_THINKING}


# vLLM; llama.cpp and llama-cpp-python. Whoever knows neither writes freely.
BINDINGS: Mapping[FormName, Callable[[str], dict[str, Any]]] = {
    "structured_outputs": _structured_outputs,
    "grammar": _grammar,
}


def _predicted(max_tokens: int, sampling: SamplingOptions, prediction: str) -> dict[str, Any]:
    guess = {"prediction": {"type": "content", "content": prediction}} if prediction else {}
    return {**_plain(max_tokens, sampling, prediction), **guess}


def _plain(max_tokens: int, sampling: SamplingOptions, _prediction: str) -> dict[str, Any]:
    options: dict[str, Any] = {"max_tokens": max_tokens, "temperature": sampling.temperature}
    if sampling.temperature:
        options |= {"top_p": sampling.top_p, "seed": sampling.seed}
    return options


def _bare(max_tokens: int, _sampling: SamplingOptions, _prediction: str) -> dict[str, Any]:
    # Models that think refuse a temperature and count their thoughts as tokens of the answer.
    return {"max_completion_tokens": max_tokens + 2048}


# From the most that can be asked for to the least: the first one that a server takes is kept.
MANNERS = (_predicted, _plain, _bare)


@dataclass(frozen=True, slots=True)
class WriterForm:
    """A form and a manner of asking that a server understands."""

    name: FormName
    manner: Callable[[int, SamplingOptions, str], dict[str, Any]]

    @property
    def can_bind(self) -> bool:
        """True if the server keeps to a grammar."""
        return self.name in BINDINGS

    def body(
        self, part: WritingPart, sampling: SamplingOptions, *, model: str, grammar: str | None
    ) -> dict[str, Any]:
        """The body of a request that asks for one part; without a grammar it is free."""
        bounds = {} if grammar is None else BINDINGS[self.name](grammar)
        prediction = "" if grammar is not None else part.prediction
        return {
            "model": model,
            "messages": part.messages,
            "stream": False,
            **self.manner(sampling.max_tokens or part.max_tokens, sampling, prediction),
            **bounds,
        }
