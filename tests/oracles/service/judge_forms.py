"""Whether a real server answers as a judge in each form that it has, for those who run one.

`python tests/oracle.py service.judge_forms --url http://127.0.0.1:8080/v1` asks about one edit that
may be meant at two places. For llama-cpp-python: `pip install 'llama-cpp-python[server]==0.3.36'`,
then `python -m llama_cpp.server --model MODEL.gguf --n_ctx 2048 --logits_all true`. It prints, for
all forms together and for each alone, how the server is asked, its choice and the seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Sequence

from apply_service.apply.conclusion import choices_of
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.judge.answer_form import FORMS, AnswerForm
from apply_service.apply.judge.judge import Judge
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.apply.remote.endpoint import JUDGE, RemoteEndpoint, RemoteError
from apply_service.apply.remote.server import RemoteTerms
from apply_service.config import JUDGE_KEY_VARIABLE
from apply_service.edit.text.text_file import TextFile

FILE = "class A:\n    def close(self):\n        self.fd = None\n\n\n"
FILE += "class B:\n    def close(self):\n        self.fd = None\n"
UPDATE = "# ...\n    def close(self):\n        log(self)\n        self.fd = None\n# ...\n"


async def try_forms(endpoint_url: str, forms: Sequence[AnswerForm], *, timeout_s: float) -> None:
    """Ask once with these forms alone, and print what came."""
    names = ", ".join(form.name for form in forms)
    edit = EditRequest(
        original=TextFile.from_text(FILE),
        update=UPDATE,
        path="files.py",
        instruction="Log that B is closed.",
    )
    choices = choices_of(plan_edit(edit, max_file_bytes=1 << 20))
    heard: list[str] = []
    judge = Judge(
        RemoteEndpoint(endpoint_url, api_key=os.environ.get(JUDGE_KEY_VARIABLE), role=JUDGE),
        RemoteTerms(accuracy=0.9, timeout_s=timeout_s),
        forms=forms,
        observe=lambda result, _seconds: heard.append(result),
    )
    started = time.monotonic()
    try:
        form = await judge.meet()
        tried_s = time.monotonic() - started
        word = await judge.ask(edit, choices)
        asked_s = time.monotonic() - started - tried_s
        named = None if word is None else "none" if word.number is None else word.number
        print(
            f"{names}: asked by {form} (tried in {tried_s:.1f} s); {heard[-1]}, choice {named} of"
            f" {[choice.symbol for choice in choices]} in {asked_s:.1f} s",
            flush=True,
        )
    except RemoteError as error:
        print(f"{names}: {error}", flush=True)
    finally:
        await judge.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--timeout", type=float, default=60.0)
    options = parser.parse_args()
    for forms in (FORMS, *((form,) for form in FORMS)):
        await try_forms(options.url, forms, timeout_s=options.timeout)


if __name__ == "__main__":
    asyncio.run(main())
