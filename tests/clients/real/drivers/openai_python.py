"""An edit by OpenAI's package for Python, as its documentation has it, at another base URL.

`openai_python.py responses` asks by the newer API.
"""

import sys
from collections.abc import Iterator
from typing import Any

from openai import APIStatusError, OpenAI
from task import Task, answer, read_task


def chat(client: OpenAI, task: Task, more: dict[str, Any]) -> Iterator[str]:
    request = {"model": "auto", "messages": [{"role": "user", "content": task.message}]}
    if not task.stream:
        completion = client.chat.completions.create(**request, extra_body=more)
        yield completion.choices[0].message.content
        return
    for chunk in client.chat.completions.create(**request, extra_body=more, stream=True):
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


def responses(client: OpenAI, task: Task, more: dict[str, Any]) -> Iterator[str]:
    request = {"model": "auto", "input": task.message}
    if not task.stream:
        yield client.responses.create(**request, extra_body=more).output_text
        return
    for event in client.responses.create(**request, extra_body=more, stream=True):
        if event.type == "response.output_text.delta":
            yield event.delta


task = read_task()
client = OpenAI(base_url=f"{task.url}/v1", api_key=task.key)
ask = responses if sys.argv[1:] == ["responses"] else chat
answer(task, lambda more: ask(client, task, more), APIStatusError)
