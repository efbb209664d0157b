"""An edit by the program `llm`, with the service among its models."""

import json
import os
import subprocess
import sys
from pathlib import Path

from task import read_task

# The kernel takes no longer argument; the program turns CRLF of what it reads elsewhere into LF.
MAX_ARGUMENT_CHARACTERS = 30_000

task = read_task()
settings = Path(task.folder).parent / "llm"
settings.mkdir(exist_ok=True)
model = {
    "model_id": "apply-service",
    "model_name": "auto",
    "api_base": f"{task.url}/v1",
    "api_key_name": "apply-service",
}
(settings / "extra-openai-models.yaml").write_text(json.dumps([model]))

command = [str(Path(sys.executable).with_name("llm")), "--model", "apply-service", "--no-log"]
command += ["--key", task.key, *([] if task.stream else ["--no-stream"])]
is_argument = len(task.message) <= MAX_ARGUMENT_CHARACTERS
run = subprocess.run(
    [*command, task.message] if is_argument else command,
    input=None if is_argument else task.message.encode(),
    stdin=subprocess.DEVNULL if is_argument else None,
    capture_output=True,
    env={**os.environ, "LLM_USER_PATH": str(settings)},
    check=False,
)
if run.returncode == 0:
    print(json.dumps({"text": run.stdout.decode().removesuffix("\n")}))
else:
    print(json.dumps({"error": run.stderr.decode()}))
