"""An edit by LangChain's chat model for OpenAI's API."""

from langchain_openai import ChatOpenAI
from openai import APIStatusError
from task import read_task, tell_error, tell_pieces

task = read_task()
model = ChatOpenAI(model="auto", base_url=f"{task.url}/v1", api_key=task.key)
try:
    if task.stream:
        tell_pieces([piece.content for piece in model.stream(task.message) if piece.content])
    else:
        tell_pieces([model.invoke(task.message).content])
except APIStatusError as error:
    tell_error(error)
