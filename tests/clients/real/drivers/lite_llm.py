"""An edit by LiteLLM, for which the service is one more of OpenAI's kind."""

import litellm
from openai import APIError
from task import read_task, tell_error, tell_pieces

task = read_task()
request = {
    "model": "openai/auto",
    "api_base": f"{task.url}/v1",
    "api_key": task.key,
    "messages": [{"role": "user", "content": task.message}],
}
try:
    if task.stream:
        deltas = [
            chunk.choices[0].delta.content for chunk in litellm.completion(**request, stream=True)
        ]
        tell_pieces([delta for delta in deltas if delta])
    else:
        tell_pieces([litellm.completion(**request).choices[0].message.content])
except APIError as error:
    tell_error(error)
