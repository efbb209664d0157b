"""Services over HTTP: apply-service's own API, Morph's, Relace's, and any OpenAI-compatible model.

What a model is told is a prompt style: `morph` tags, `kortix` template, `rewrite` (the whole file
again) or `search_replace` (the model writes blocks; they are applied exactly).
"""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lazy_edit_bench.dialects import numbered_lines
from lazy_edit_bench.judge import Answer, file_text
from lazy_edit_bench.systems.exact_replace import ExactReplace
from lazy_edit_bench.task import DIALECTS, BenchError, Dialect, Task

TIMEOUT_S = 180
NUM_TRIES = 6
_LAZY_ALONE: tuple[Dialect, ...] = ("markers",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a service is and what it is asked for. `url` ends before the API's own path."""

    url: str
    model: str = "auto"
    key: str = ""


class HttpSystem:
    """One service. `send` makes the body of a task, `read` the answer of a reply."""

    def __init__(self, kind: str, endpoint: Endpoint) -> None:
        if kind not in _KINDS:
            raise BenchError(f"no API {kind!r}: use one of {', '.join(sorted(_KINDS))}")
        path, self.dialects, self._send, self._read = _KINDS[kind]
        self.name = kind if endpoint.model == "auto" else f"{kind}:{endpoint.model}"
        self.version = endpoint.model
        self.command = f"POST {endpoint.url.rstrip('/')}{path}"
        self._endpoint = endpoint
        self._url = endpoint.url.rstrip("/") + path
        self._kind = kind

    def answer(self, task: Task) -> Answer:
        """Ask, and ask again after HTTP 429 and 503 as long as Retry-After says."""
        body = self._send(task, self._endpoint.model)
        for attempt in range(NUM_TRIES):
            started = time.perf_counter()
            status, reply, wait_s = self._exchange(body)
            seconds = time.perf_counter() - started
            if status not in (429, 503) or attempt == NUM_TRIES - 1:
                break
            time.sleep(wait_s)
        try:
            return self._read(task, status, reply, seconds)
        except (KeyError, TypeError, IndexError) as error:
            return Answer(status="failed", seconds=seconds, note=f"HTTP {status}, no {error}")

    def choice_texts(self, task: Task, choice_ids: list[str]) -> tuple[str, ...]:
        """The texts that the choices of a question lead to (apply-service alone)."""
        texts = []
        for choice_id in choice_ids:
            body = {**self._send(task, self._endpoint.model), "resolve": choice_id}
            _, reply, _ = self._exchange(body)
            if isinstance(reply.get("merged"), str):
                texts.append(reply["merged"])
        return tuple(texts)

    def close(self) -> None:
        """Nothing was started."""

    def _exchange(self, body: dict[str, Any]) -> tuple[int, dict[str, Any], float]:
        headers = {"Content-Type": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        request = urllib.request.Request(
            self._url, json.dumps(body).encode(), headers, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                return reply.status, _object(reply.read()), 0.0
        except urllib.error.HTTPError as error:
            after = error.headers.get("Retry-After", "1")
            wait_s = float(after) if re.fullmatch(r"\d+(\.\d+)?", after) else 1.0
            return error.code, _object(error.read()), min(wait_s, 30.0)
        except (OSError, http.client.HTTPException) as error:
            return 0, {"error": str(error)}, 0.0


def _object(content: bytes) -> dict[str, Any]:
    try:
        read = json.loads(content)
    except ValueError:
        return {"error": content[:300].decode(errors="replace")}
    return read if isinstance(read, dict) else {"error": "the reply is no object"}


def _apply_send(task: Task, model: str) -> dict[str, Any]:
    update: Any = task.update
    if task.dialect == "hashline":
        update = json.loads(task.update)
    body = {
        "original": file_text(task),
        "update": update,
        "path": task.path,
        "response": "file",
    }
    if task.dialect not in ("markers", "whole_file"):
        body["format"] = task.dialect
    return {**body, "instruction": task.instruction} if task.instruction else body


def _chat(prompt: str, model: str, system: str = "") -> dict[str, Any]:
    told = [{"role": "system", "content": system}] if system else []
    messages = [*told, {"role": "user", "content": prompt}]
    return {"model": model, "messages": messages, "temperature": 0, "stream": False}


def _morph_send(task: Task, model: str) -> dict[str, Any]:
    return _chat(
        f"<instruction>{task.instruction}</instruction>\n<code>{file_text(task)}</code>\n"
        f"<update>{task.update}</update>",
        model,
    )


def _kortix_send(task: Task, model: str) -> dict[str, Any]:
    return _chat(
        "Merge all changes from the <update> snippet into the <code> below.\n"
        "- Preserve the code's structure, order, comments, and indentation exactly.\n"
        "- Output only the updated code, enclosed within <updated-code> and </updated-code> tags.\n"
        "- Do not include any additional text, explanations, placeholders, ellipses, or code"
        f" fences.\n\n<code>{file_text(task)}</code>\n\n<update>{task.update}</update>\n\n"
        "Provide the complete updated code.",
        model,
        "You are a coding assistant that helps merge code updates, ensuring every modification is"
        " fully integrated.",
    )


_EXPLAINED = {
    "markers": "In the edit, comments like `... existing code ...` stand for lines that stay.",
    "search_replace": "The edit has blocks of SEARCH text and the REPLACE text that follows it.",
    "diff": "The edit is a unified diff.",
    "hashline": "The edit names lines of the numbered file as NUMBER:HASH.",
    "whole_file": "The edit is the whole new file.",
}


def _told(task: Task) -> str:
    shown = file_text(task)
    if task.dialect == "hashline":
        shown += "\n\nThe file with its lines numbered:\n" + "\n".join(
            numbered_lines(task.original)
        )
    return (
        f"{_EXPLAINED[task.dialect]}\nInstruction: {task.instruction or '(none)'}\n\n"
        f"<file>\n{shown}</file>\n\n<edit>\n{task.update}</edit>\n\n"
        "If the edit fits several places or none, answer with <unclear/> alone."
    )


def _rewrite_send(task: Task, model: str) -> dict[str, Any]:
    asked = "Apply the edit to the file. Write the whole new file between <new> and </new>."
    return _chat(f"{asked}\n{_told(task)}", model)


def _search_replace_send(task: Task, model: str) -> dict[str, Any]:
    asked = (
        "Write the edit as blocks, each of them\n<<<<<<< SEARCH\nlines of the file, once in it\n"
        "=======\nnew lines\n>>>>>>> REPLACE\n"
    )
    return _chat(f"{asked}\n{_told(task)}", model)


def _fields_send(task: Task, model: str) -> dict[str, Any]:
    body = {"initial_code": file_text(task), "edit_snippet": task.update, "model": model}
    return {**body, "instruction": task.instruction} if task.instruction else body


def _problem(status: int, reply: dict[str, Any], seconds: float) -> Answer | None:
    """An answer for a reply that is no success."""
    if status == 200:
        return None
    said = reply.get("detail") or reply.get("error") or reply
    outcome = "refused" if status == 422 else "failed"
    return Answer(status=outcome, seconds=seconds, note=f"HTTP {status}: {said}"[:300])  # type: ignore[arg-type]


def _chat_read(task: Task, status: int, reply: dict[str, Any], seconds: float) -> Answer:
    problem = _problem(status, reply, seconds)
    if problem is not None:
        return problem
    text = reply["choices"][0]["message"]["content"]
    usage = reply.get("usage") or {}
    for tag in ("updated-code", "new"):
        inside = re.search(rf"<{tag}>\n?(.*)</{tag}>", text, re.DOTALL)
        text = inside[1] if inside else text
    unclear = text.strip() == "<unclear/>"
    return Answer(
        status="asked" if unclear else "applied",
        text=None if unclear else text,
        seconds=seconds,
        tokens_in=usage.get("prompt_tokens", 0),
        tokens_out=usage.get("completion_tokens", 0),
    )


def _blocks_read(task: Task, status: int, reply: dict[str, Any], seconds: float) -> Answer:
    answer = _chat_read(task, status, reply, seconds)
    if answer.status != "applied":
        return answer
    written = Task(
        id=task.id, language=task.language, kind=task.kind, dialect="search_replace",
        treat=task.treat, path=task.path, instruction="", original=task.original,
        update=(answer.text or "") + "\n", results=task.results, encoding=task.encoding,
    )  # fmt: skip
    made = ExactReplace().answer(written)
    return Answer(
        status=made.status,
        text=made.text,
        seconds=seconds,
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        note=made.note,
    )


def _fields_read(task: Task, status: int, reply: dict[str, Any], seconds: float) -> Answer:
    problem = _problem(status, reply, seconds)
    if problem is not None:
        return problem
    usage = reply.get("usage") or {}
    return Answer(
        status="applied",
        text=reply["mergedCode"] if "mergedCode" in reply else reply["merged_code"],
        seconds=seconds,
        tokens_in=usage.get("prompt_tokens", 0),
        tokens_out=usage.get("completion_tokens", 0),
    )


def _apply_read(task: Task, status: int, reply: dict[str, Any], seconds: float) -> Answer:
    problem = _problem(status, reply, seconds)
    if problem is not None:
        return problem
    usage = reply.get("usage") or {}
    tokens_in, tokens_out = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    said = reply["status"]
    if said in ("applied", "unchanged"):
        return Answer(
            status="applied" if said == "applied" else "refused",
            text=reply["merged"],
            seconds=seconds,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )
    choices = reply.get("choices") or []
    asked = said == "needs_review"
    return Answer(
        status="asked" if asked else "refused",
        choices=tuple(choice["id"] for choice in choices),
        seconds=seconds,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        note="; ".join(str(finding.get("code")) for finding in reply.get("findings") or [])[:300],
    )


class ApplyService(HttpSystem):
    """apply-service: a question's choices are resolved, so the judge sees the texts behind them."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__("apply-service", endpoint)

    def answer(self, task: Task) -> Answer:
        """Ask; where the service asks back, look what each of its choices would write."""
        answer = super().answer(task)
        if answer.status != "asked" or not answer.choices:
            return answer
        texts = self.choice_texts(task, list(answer.choices))
        return Answer(
            status="asked",
            choices=texts,
            seconds=answer.seconds,
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            note=answer.note,
        )


_Send = Callable[[Task, str], dict[str, Any]]
_Read = Callable[[Task, int, dict[str, Any], float], Answer]
_KINDS: dict[str, tuple[str, tuple[Dialect, ...], _Send, _Read]] = {
    "apply-service": ("/v1/apply", DIALECTS, _apply_send, _apply_read),
    "morph": ("/v1/chat/completions", _LAZY_ALONE, _morph_send, _chat_read),
    "relace": ("/v1/code/apply", _LAZY_ALONE, _fields_send, _fields_read),
    "chat-morph": ("/chat/completions", _LAZY_ALONE, _morph_send, _chat_read),
    "chat-kortix": ("/chat/completions", _LAZY_ALONE, _kortix_send, _chat_read),
    "chat-rewrite": ("/chat/completions", DIALECTS, _rewrite_send, _chat_read),
    "chat-search-replace": (
        "/chat/completions", DIALECTS, _search_replace_send, _blocks_read,
    ),
}  # fmt: skip
ENDPOINTS = tuple(_KINDS)
