"""Edits of files with odd bytes over HTTP: every byte outside the edited lines must stay.

`python tests/oracle.py service.byte_fidelity --count 5000` prints, for each form, how many edits
were applied, asked about and refused, and each result that changes another byte. It exits with 1 if
there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from byte_edits import FORMS, ByteEdit, byte_edits, shown_edit
from serve_process import serve_process, wait_until_ready
from tiny_model import write_tiny_model

NUM_CLIENTS = 4
MAX_SHOWN = 5


def main() -> int:
    """Send all edits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_model(Path(folder), seed=0)
        flags = ("--model", folder, "--profile", "embedded", "--port", "0")
        with serve_process(*flags) as (_, url), httpx.Client(base_url=url, timeout=60) as client:
            wait_until_ready(url)

            def send(edit: ByteEdit) -> None:
                answer = client.post("/v1/apply", json=edit.body)
                if answer.status_code != 200:
                    counts[edit.form, f"{answer.status_code} {answer.json()['code']}"] += 1
                    return
                status = answer.json()["status"]
                result = edit.result_of(answer.json())
                is_right = result in edit.results
                counts[edit.form, f"{status}{'' if is_right else ', another text'}"] += 1
                if status in ("applied", "unchanged") and not is_right:
                    wrong.append(shown_edit(edit, result))

            with ThreadPoolExecutor(NUM_CLIENTS) as pool:
                list(pool.map(send, byte_edits(count=chosen.count, seed=chosen.seed)))
    for form in dict.fromkeys(FORMS):
        shown = ", ".join(
            f"{what}: {n}" for (one, what), n in sorted(counts.items()) if one == form
        )
        print(f"{form:12} {shown}")
    print(f"{counts.total()} edits, {len(wrong)} changed another byte unasked")
    print("\n".join(wrong[:MAX_SHOWN]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
