"""The snippets of the project's pages: all text between code fences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[3]
DEFAULT_URL = "http://127.0.0.1:8722"
_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class PageSnippet:
    """One snippet; `info` is the text behind the opening fence."""

    page: str
    line: int
    info: str
    body: str

    @property
    def first_line(self) -> str:
        return self.body.partition("\n")[0].strip()

    def at(self, url: str) -> str:
        """The snippet, with another service's address in place of the default."""
        return self.body.replace(DEFAULT_URL, url)


def pages() -> list[Path]:
    """All pages for users of the project."""
    folders = (ROOT.glob("*.md"), ROOT.glob("docs/**/*.md"), ROOT.glob("clients/**/*.md"))
    paths = (path for folder in folders for path in folder)
    return sorted(path for path in paths if "node_modules" not in path.parts)


def snippets_of(path: Path) -> list[PageSnippet]:
    """All snippets of a page, in order."""
    text = path.read_text(encoding="utf-8")
    return [
        PageSnippet(
            page=path.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, match.start()) + 1,
            info=match["info"].strip(),
            body=dedent(match["body"]),
        )
        for match in _FENCE.finditer(text)
    ]
