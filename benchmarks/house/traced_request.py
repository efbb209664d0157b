"""Which files of a checkout one request passes; run as a program in that checkout.

    python traced_request.py ROOT

A server of the checkout starts in this process, with threads in place of processes for the work on
texts. A profile function on all threads then notes the file of every call until the answer to one
edit is there. The edit asks the model. The last line printed is a JSON list of paths below ROOT.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import FrameType
from typing import Any

EDIT = {
    "path": "names.py",
    "original": "def join(first, last):\n    return first + last\n\n\nprint(join('a', 'b'))\n",
    "update": "def join(first, last):\n    return f'{first} {last}'\n\n# ... existing code ...\n",
    "use_model": "always",
}
READY_TIMEOUT_S = 300.0


def main(root: Path) -> None:
    """Start the server, send one edit to warm it and one to follow, print, end the process."""
    os.chdir(root)
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def ask() -> None:
        _post_when_ready(port)
        seen.clear()
        _post(port)
        passed = sorted(
            path for path in seen if path.startswith(f"{root}/") and ".venv" not in path
        )
        own = str(Path(__file__).resolve())
        print(json.dumps([path for path in passed if path != own]), flush=True)
        os._exit(0)

    threading.Thread(target=ask, daemon=True).start()
    from apply_service.__main__ import main as serve

    flags = ("--port", str(port), "--text-workers", "0", "--threads", "1", "--use-model", "always")
    sys.exit(serve(["serve", *flags]))


def _post_when_ready(port: int) -> None:
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        try:
            _post(port)
        except OSError:  # nobody listens yet, or the model is still loading
            time.sleep(0.2)
        else:
            return
    os._exit(1)


def _post(port: int) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/apply",
        data=json.dumps(EDIT).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=READY_TIMEOUT_S) as answer:
        answer.read()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    main(Path(sys.argv[1]).resolve())
