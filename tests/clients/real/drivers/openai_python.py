"""An edit by OpenAI's package for Python, as its documentation has it, at another base URL."""

from openai import APIStatusError, OpenAI
from task import read_task, tell_error, tell_pieces

task = read_task()
client = OpenAI(base_url=f"{task.url}/v1", api_key=task.key)
request = {"model": "auto", "messages": [{"role": "user", "content": task.message}]}
try:
    if task.stream:
        chunks = list(client.chat.completions.create(**request, stream=True))
        deltas = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        tell_pieces([delta for delta in deltas if delta])
    else:
        tell_pieces([client.chat.completions.create(**request).choices[0].message.content])
except APIStatusError as error:
    tell_error(error)
