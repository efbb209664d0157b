"""Prints the demo: a coloured diff, a verdict, figures, and a counter in one line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TextIO

from apply_service.cli.demo.edit_client import describe_finding
from apply_service.edit.text.words import counted

_RESET, _BOLD, _RED, _GREEN, _CYAN = "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m"
_CLEAR_LINE = "\r\x1b[K"
_LABEL_WIDTH = 12


class Screen:
    """Writes to one stream, in colour if asked to; the counter only moves on a terminal."""

    def __init__(self, stream: TextIO, *, has_color: bool) -> None:
        self._stream = stream
        self._has_color = has_color
        self._is_live = stream.isatty()

    def say(self, text: str = "", *, end: str = "\n") -> None:
        """One line, or with another `end` the beginning of one."""
        self._stream.write(text + end)
        self._stream.flush()

    def head(self, text: str) -> None:
        """The beginning of a part."""
        self.say("\n" + self._paint(text, _BOLD))

    def row(self, label: str, text: str) -> None:
        """A labelled line."""
        self.say(f"  {label:<{_LABEL_WIDTH}} {text}")

    def count(self, text: str) -> None:
        """Replace the counter; the next `row` or `say` should come after `end_count`."""
        if self._is_live:
            self.say(f"{_CLEAR_LINE}  {text}", end="")

    def end_count(self) -> None:
        """Take the counter away."""
        if self._is_live:
            self.say(_CLEAR_LINE, end="")

    def diff(self, text: str) -> None:
        """A unified diff, added lines green and removed ones red."""
        for line in text.splitlines():
            if line.startswith(("---", "+++")):
                self.say(self._paint(line, _BOLD))
            elif line.startswith("@@"):
                self.say(self._paint(line, _CYAN))
            elif line.startswith("+"):
                self.say(self._paint(line, _GREEN))
            elif line.startswith("-"):
                self.say(self._paint(line, _RED))
            else:
                self.say(line)

    def difference(self, expected: str, merged: str) -> None:
        """Print the lines in which a wrong merge differs from the expected one."""
        lines = difflib.unified_diff(
            expected.splitlines(), merged.splitlines(), "expected", "merged", lineterm=""
        )
        self.diff("\n".join(lines))

    def verdict(self, result: Mapping[str, Any], *, is_expected: bool) -> None:
        """Status and findings, and whether the merge is the expected one, byte for byte."""
        status = str(result["status"])
        color = _GREEN if status == "applied" and is_expected else _RED
        findings = result["findings"]
        judged = counted(len(findings), "finding") if findings else "no findings"
        checked = "equal to the expected merge" if is_expected else "NOT the expected merge"
        self.row("verdict", f"{self._paint(status, color)}, {judged}; {checked}")
        for finding in findings:
            self.row("", describe_finding(finding))

    def _paint(self, text: str, code: str) -> str:
        return f"{code}{text}{_RESET}" if self._has_color else text
