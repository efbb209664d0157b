"""Pictures of the server's page, taken in a browser at a server of this tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "clients" / "page" / "pictures.mjs"


def take_page_pictures(address: str, folder: Path) -> int:
    """Write the pictures of the page at this address into a folder; the exit code of the script."""
    command = ["node", str(SCRIPT), address, str(folder)]
    return subprocess.run(command, check=False).returncode
