"""The built files of the page, read once and kept as they are sent."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

STATIC_DIR = Path(__file__).with_name("static")

# Nothing else is ever sent, whatever stands in the folder.
_CONTENT_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file; the digest names its content."""

    content: bytes
    compressed: bytes
    content_type: str
    digest: str


class PageFiles:
    """The files of one folder, by name."""

    def __init__(self, folder: Path = STATIC_DIR) -> None:
        self._folder = folder
        self._files: dict[str, PageFile] = {}

    def try_read(self, name: str) -> PageFile | None:
        """A file of the folder itself; None if there is none of this name."""
        file = self._files.get(name)
        if file is None and (file := self._try_load(name)) is not None:
            self._files[name] = file
        return file

    def _try_load(self, name: str) -> PageFile | None:
        content_type = _CONTENT_TYPES.get(Path(name).suffix)
        if content_type is None or Path(name).name != name or "\0" in name:
            return None
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        return PageFile(
            content=content,
            compressed=gzip.compress(content, mtime=0),
            content_type=content_type,
            digest=hashlib.sha256(content).hexdigest()[:32],
        )
