"""An edit by Anthropic's package for Python, as its documentation has it, at another base URL."""

from collections.abc import Iterator
from typing import Any

from anthropic import Anthropic, APIStatusError
from task import answer, read_task

task = read_task()
client = Anthropic(base_url=task.url, api_key=task.key)


def ask(more: dict[str, Any]) -> Iterator[str]:
    messages = [{"role": "user", "content": task.message}]
    request = {"model": "auto", "max_tokens": 4096, "messages": messages, "extra_body": more}
    if not task.stream:
        yield client.messages.create(**request).content[0].text
        return
    with client.messages.stream(**request) as stream:
        yield from stream.text_stream


answer(task, ask, APIStatusError)
