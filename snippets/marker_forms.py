"""Marker comments in the wordings of agents, in a language's comment syntax or their own."""

from __future__ import annotations

import random
from collections.abc import Sequence

from snippets.definitions import indent_of

_COMMENTS = {
    "python": ("# ", ""),
    "shell": ("# ", ""),
    "yaml": ("# ", ""),
    "toml": ("# ", ""),
    "html": ("<!-- ", " -->"),
    "css": ("/* ", " */"),
    "sql": ("-- ", ""),
}
_FORMS = (
    ("... existing code ...", 70),
    ("...existing code...", 4),
    ("... rest of code ...", 6),
    ("... rest of the code ...", 3),
    ("... keep existing code ...", 4),
    ("... code remains the same ...", 3),
    ("... unchanged code ...", 3),
    ("... rest of file ...", 3),
    ("...", 2),
    ("named", 8),
)
_SLASHES_ANYWHERE = 0.2
_INDENTED_SHARE = 0.4


class MarkerWriter:
    """Writes the markers of one snippet, all in the same style."""

    def __init__(
        self,
        language: str,
        rng: random.Random,
        *,
        forms: Sequence[tuple[str, float]] = _FORMS,
    ) -> None:
        """`forms` are the wordings with their weights; "named" names the code left out."""
        self._rng = rng
        self._opening, self._closing = _COMMENTS.get(language, ("// ", ""))
        if rng.random() < _SLASHES_ANYWHERE:
            self._opening, self._closing = "// ", ""
        forms, weights = zip(*forms, strict=True)
        self._form = rng.choices(forms, weights)[0]
        self._is_indented = rng.random() < _INDENTED_SHARE

    def comment(self, text: str) -> str:
        """`text` as a comment."""
        return self._opening + text + self._closing

    def marker(self, lines: Sequence[str], start: int, end: int) -> str:
        """The marker that stands for `lines[start:end]`."""
        text = self.text(lines[start:end])
        indent = ""
        if self._is_indented:
            neighbour = next((line for line in lines[start:end] if line.strip()), "")
            indent = indent_of(neighbour)
        return indent + text

    def text(self, omitted: Sequence[str]) -> str:
        """The marker that stands for these lines, without indentation."""
        if self._form == "named":
            return self.comment(f"... existing {self._noun(omitted)} ...")
        return self.comment(self._form)

    def _noun(self, omitted: Sequence[str]) -> str:
        code = [line.strip() for line in omitted if line.strip()]
        imports = ("import ", "from ", "use ", "#include", "const ")
        if code and all(line.startswith(imports) for line in code):
            return "imports"
        return self._rng.choice(("code", "methods", "functions", "code", "logic"))
