"""The server's process does not bring what only the engine's needs."""

from __future__ import annotations

import subprocess
import sys


def test_the_servers_process_brings_no_torch() -> None:
    code = (
        "import sys, apply_service.cli.serve, apply_service.models.remote_engine;"
        "print(sorted({'torch', 'transformers', 'triton'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
