"""The table of real clients in docs/compatibility.md: the result of each edit with each client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
_COLUMNS = "| client | version |"


def documented() -> dict[str, dict[str, str]]:
    """The cells of the page by client and column."""
    page = PAGE.read_text(encoding="utf-8")
    table, _, _ = page[page.index(_COLUMNS) :].partition("\n\n")
    names, _, *rows = [_cells_of(line) for line in table.splitlines()]
    return {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in rows}


def _cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@dataclass(frozen=True, slots=True)
class Row:
    """The row of one client, filled in by its tests; each cell must equal the page's."""

    client: str
    version: str
    record: Callable[[str, object], None] = field(repr=False)

    def begin(self, column: str) -> None:
        """Begin the cell of a test; failures from here on stand in the table too."""
        for name, text in (("client", self.client), ("version", self.version), ("column", column)):
            self.record(name, text)

    def came(self, column: str, what: str) -> None:
        """Write the result into the cell."""
        self.record("came", what)
        assert documented()[self.client][column] == what, f"{PAGE.name} says something else"


def table_of(reports: Iterable[Any]) -> str:
    """The table as Markdown, in the order of the tests; empty without a client's test."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for report in reports:
        said: Mapping[str, str] = dict(getattr(report, "user_properties", ()))
        if "client" in said:
            came = said.get("came", "?") if report.outcome != "failed" else "**FAILED**"
            rows.setdefault((said["client"], said["version"]), {})[said["column"]] = came
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [["client", "version", *columns], ["---"] * (len(columns) + 2)]
    lines += [
        [*client, *(row.get(column, "not run") for column in columns)]
        for client, row in rows.items()
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) if rows else ""
