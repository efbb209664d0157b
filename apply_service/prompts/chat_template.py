"""A model's own chat template, rendered so that no message can pose as part of the template.

Messages are rendered as random sentinels. The result is cut at the sentinels: the text between
them is the template's and may hold control tokens, the messages themselves never do.
"""

from __future__ import annotations

import datetime
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from apply_service.prompts.errors import ChatTemplateError
from apply_service.prompts.substitution import Substitution
from apply_service.prompts.tokenizer import PromptTokenizer, TokenIds


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation; the model reads `content` as plain text."""

    role: Literal["system", "user", "assistant"]
    content: str


class ChatTemplate:
    """Encodes conversations for one model. `end_of_turn` is the token that ends its answers."""

    def __init__(
        self, source: str, tokenizer: PromptTokenizer, *, named_tokens: dict[str, str]
    ) -> None:
        """Compile a template; `named_tokens` holds `bos_token` and the like.

        Raises `ChatTemplateError` if it is damaged or its answers never end.
        """
        self._tokenizer = tokenizer
        self._named_tokens = named_tokens
        self._template = _compile(source)
        self.end_of_turn = self._find_end_of_turn()

    @classmethod
    def from_dir(cls, model_dir: Path, tokenizer: PromptTokenizer) -> ChatTemplate:
        """Read the template in the folder of a model. Raises `ChatTemplateError`."""
        settings = _read_json(model_dir / "tokenizer_config.json")
        path = model_dir / "chat_template.jinja"
        source = _read_text(path) if path.exists() else _inline(settings.get("chat_template"))
        if source is None:
            raise ChatTemplateError(
                f"{model_dir} has no chat template; choose a model that was trained for chat"
            )
        return cls(source, tokenizer, named_tokens=_named_tokens(settings))

    def encode(
        self,
        messages: Sequence[ChatMessage],
        *,
        substitution: Substitution,
        answer_prefix: str = "",
    ) -> TokenIds:
        """The tokens of a conversation, up to the start of the model's answer.

        `answer_prefix` is constant text at the beginning of the answer. Raises
        `ChatTemplateError` if the template refuses the messages, `TextNotEncodableError`.
        """
        parts = self._parts(messages, has_generation_prompt=True)
        parts[-1] += answer_prefix
        contents = substitution.apply([message.content for message in messages])
        token_ids = list(self._tokenizer.encode_template(parts[0]))
        for content, part in zip(contents, parts[1:], strict=True):
            token_ids += self._tokenizer.encode(content)
            token_ids += self._tokenizer.encode_template(part)
        return tuple(token_ids)

    def _parts(self, messages: Sequence[ChatMessage], *, has_generation_prompt: bool) -> list[str]:
        """The template's own text before, between and after the messages."""
        mark = secrets.token_hex(16)
        marked = [
            {"role": message.role, "content": f"{mark}n{position}n"}
            for position, message in enumerate(messages)
        ]
        try:
            text = self._template.render(
                messages=marked,
                add_generation_prompt=has_generation_prompt,
                enable_thinking=False,
                tools=None,
                documents=None,
                **self._named_tokens,
            )
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise ChatTemplateError(
                f"the model's chat template refuses these messages ({error})"
            ) from error
        pieces = re.split(f"{mark}n([0-9]+)n", text)
        if pieces[1::2] != [str(position) for position in range(len(messages))]:
            raise ChatTemplateError(
                "the model's chat template drops, repeats or reorders messages; send one user"
                " message"
            )
        return pieces[::2]

    def _find_end_of_turn(self) -> int:
        """The first control token that the template puts after an assistant's message."""
        turn = [ChatMessage("user", ""), ChatMessage("assistant", "")]
        after = self._parts(turn, has_generation_prompt=False)[-1]
        special = self._tokenizer.special_token_ids
        ends = [i for i in self._tokenizer.encode_template(after) if i in special]
        if ends:
            return ends[0]
        if "eos_token" not in self._named_tokens:
            raise ChatTemplateError("the model's chat template never ends an answer")
        return self._tokenizer.control_token_id(self._named_tokens["eos_token"])


def stop_token_ids(model_dir: Path) -> frozenset[int]:
    """The ids that end an answer by the model's own configuration; empty if it names none."""
    for name in ("generation_config.json", "config.json"):
        ids = _read_json(model_dir / name).get("eos_token_id")
        if ids is not None:
            return frozenset(ids if isinstance(ids, list) else [ids])
    return frozenset()


class _GenerationBlock(Extension):
    """`{% generation %}` marks the assistant's text for training; its body is rendered as it is."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _compile(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationBlock]
    )
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(
        value, ensure_ascii=False, indent=indent
    )
    try:
        return environment.from_string(source)
    except TemplateError as error:
        raise ChatTemplateError(f"the model's chat template is damaged ({error})") from error


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _inline(value: Any) -> str | None:
    """The template of a `tokenizer_config.json`: one text, or the default of a named list."""
    if isinstance(value, list):
        return {entry["name"]: entry["template"] for entry in value}.get("default")
    return value if isinstance(value, str) else None


def _named_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """`bos_token`, `eos_token` and the like; each value is text or `{"content": text}`."""
    named = {}
    for key, value in settings.items():
        content = value.get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and isinstance(content, str):
            named[key] = content
    return named


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ChatTemplateError(f"{path} cannot be read ({error})") from error


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if there is no such file."""
    if not path.exists():
        return {}
    try:
        value = json.loads(_read_text(path))
    except ValueError as error:
        raise ChatTemplateError(f"{path} is damaged ({error}); fetch the model again") from error
    return value if isinstance(value, dict) else {}
