"""An edit as a tagged message and as fields, for tests of the other APIs."""

from __future__ import annotations

import re
from typing import Any

ORIGINAL = "import os\n\n\ndef name(path):\n    return os.path.basename(path)\n"
UPDATE = "# ... existing code ...\ndef name(path):\n    return os.path.basename(path).lower()\n"
MERGED = "import os\n\n\ndef name(path):\n    return os.path.basename(path).lower()\n"
# The new line may belong behind either of two equal lines.
UNSURE_ORIGINAL = "a = 1\nb = 1\n\na = 1\nc = 1\n"
UNSURE_UPDATE = "# ...\na = 1\nprint(a, end=None)\n# ...\n"
# The old lines do not stand in the file.
MISPLACED = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


def tagged(original: str = ORIGINAL, update: str = UPDATE) -> list[Any]:
    """The messages of a chat request."""
    content = f"<instruction>Edit it.</instruction>\n<code>{original}</code>\n"
    return [{"role": "user", "content": f"{content}<update>{update}</update>"}]


def tells_both_places(message: str) -> bool:
    """True if a doubt about an update says where two merges part, and how each one goes on."""
    return re.search(r"another one has `.+` on line \d+, where it has `.+`", message) is not None


def fields(original: str = ORIGINAL, update: str = UPDATE) -> dict[str, Any]:
    """The body of a request to /v1/code/apply."""
    return {"initial_code": original, "edit_snippet": update}
